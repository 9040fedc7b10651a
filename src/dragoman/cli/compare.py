"""`dragoman compare`: several runs on one test set, by the length of the source, as table and picture."""

from collections.abc import Sequence
from enum import StrEnum
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import (
    Alpha,
    BatchTokensIfGiven,
    Beam,
    BleuTokenizer,
    Checkpoint,
    Device,
    Lowercase,
    ScoreName,
)
from dragoman.errors import UserError, missing_extra

if TYPE_CHECKING:
    from dragoman.data.config import SourceConfig
    from dragoman.decode.search.config import SearchConfig
    from dragoman.decode.translator.base import BaseTranslator
    from dragoman.evaluate.lengths import Comparison
    from dragoman.evaluate.metrics import Metric
    from dragoman.runs.directory import Run


class Counted(StrEnum):
    words = "words"
    characters = "characters"


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories, or exports.")],
    test: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILES",
            help="Test files: test.en test.de, or a table; by default the test set of the first run.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Name of the files to write; .png, .svg and .tsv are added.")
    ] = Path("lengths"),
    label: Annotated[
        list[str] | None,
        typer.Option(help="Label of a run, in their order; by default its directory name (repeatable)."),
    ] = None,
    metric: Annotated[ScoreName, typer.Option(help="Metric of each bucket.")] = ScoreName.bleu,
    unit: Annotated[Counted, typer.Option(help="Unit of the source length.")] = Counted.words,
    edges: Annotated[
        str | None,
        typer.Option(help="Upper bounds of the buckets, as in 5,10,15,20; by default from the data."),
    ] = None,
    min_sentences: Annotated[
        int, typer.Option(min=1, help="Smallest bucket, if the edges come from the data.")
    ] = 30,
    curves: Annotated[
        bool, typer.Option("--curves", help="Overlay the learning curves of the runs; needs no test set.")
    ] = False,
    beam: Beam = None,
    alpha: Alpha = None,
    tokenize: BleuTokenizer = "13a",
    lowercase: Lowercase = False,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Bootstrap samples for 95% intervals and p-values; 0 disables them.")
    ] = 1000,
    batch_tokens: BatchTokensIfGiven = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Compare runs and exports on a test set by source length, as a table and a plot, or learning curves of
    runs."""
    if find_spec("matplotlib") is None:  # before minutes of translating
        raise missing_extra("matplotlib", "plots", "drawing a picture")
    from dragoman.cli.output import output_stem, write_beside
    from dragoman.cli.overlap import warn_of_overlap
    from dragoman.cli.translators import open_directed, with_changes
    from dragoman.data.contexts import in_their_documents
    from dragoman.data.formats import read_pairs
    from dragoman.evaluate import lengths
    from dragoman.evaluate.metrics import FURTHER, make_scorers
    from dragoman.evaluate.plot import draw_lengths

    stem = output_stem(out)
    directories, files = runs_and_tests(runs, test or [])
    labels = run_labels(directories, label or [])
    if curves:
        overlay(dict(zip(labels, directories, strict=True)), stem)
        return
    further = [metric.value] if metric.value in FURTHER else []
    make_scorers(tokenize, further=further)  # a wrong name or a missing package is told now
    opened = (open_directed(directory, (), checkpoint, device) for directory in directories)
    first = next(opened)  # the others follow one by one
    source = chosen_test(directories[0], first.run, files)
    pairs = list(read_pairs(source, *first.languages))
    sources, references = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    buckets = lengths.make_buckets(
        lengths.source_lengths(sources, unit.value), parse_edges(edges), min_sentences
    )
    hypotheses = {}
    searches = set()
    for name, directory, own in zip(labels, directories, chain([first], opened), strict=True):
        search = with_changes(own.translator.search, None, [], beam=beam, alpha=alpha, n_best=1)
        searches.add(search)
        typer.echo(f"{name}: {directory}, {search.summary}")
        asked = [src for src, _ in in_their_documents(pairs, own.translator.context, blank=True)]
        hypotheses[name] = translated_texts(own.translator, search, asked, batch_tokens)
        if own.run is not None:
            warn_of_overlap(own.run, sources, references)
    if len(searches) > 1:
        typer.echo("warning: the runs search in different ways; --beam and --alpha make them equal", err=True)
    found = lengths.compare_by_length(
        hypotheses,
        references,
        buckets,
        metric=metric.value,
        unit=unit.value,
        tokenize=tokenize,
        lowercase=lowercase,
        bootstrap=bootstrap,
    )
    print_table(found, Path(source.files[0]).name)
    table = "".join("\t".join(row) + "\n" for row in found.rows())
    pictures = draw_lengths(found)
    write_beside(stem, {".png": pictures["png"], ".svg": pictures["svg"], ".tsv": table.encode()})


def overlay(directories: dict[str, Path], stem: Path) -> None:
    """The learning curves of all runs in one picture, and the last and the best value of each."""
    from dragoman.cli.output import write_beside
    from dragoman.probe.figures.curves import draw_overlaid, overlaid
    from dragoman.runs.directory import Run

    panels = overlaid({label: Run.open(directory).metrics for label, directory in directories.items()})
    table = ["run\tfield\tupdate\tvalue"]
    for title, lines in panels:
        typer.echo(title)
        for label, updates, values in lines:
            typer.echo(f"  {label}: {values[-1]:.4g} at update {updates[-1]}, lowest {min(values):.4g}")
            table += [f"{label}\t{title}\t{x}\t{y}" for x, y in zip(updates, values, strict=True)]
    pictures = draw_overlaid(panels)
    written = {".png": pictures["png"], ".svg": pictures["svg"], ".tsv": ("\n".join(table) + "\n").encode()}
    write_beside(stem, written)


def runs_and_tests(given: Sequence[Path], test: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """An option takes one value, so of  --test a.en a.de  the second file stands among the runs."""
    files = [path for path in given if path.is_file()]
    runs = [path for path in given if path not in files]
    if files and len(test) != 1:
        raise UserError(f"{files[0]}: this is a file, not a run directory; name test files after --test")
    if not runs:
        raise UserError("compare: give at least one run directory")
    tests = [*test, *files]
    if len(tests) == 1:  # perhaps a table; but a missing second file was taken for a run
        missing = next((path for path in runs if not path.exists()), None)
        if missing is not None:
            raise UserError(f"{missing}: there is no such run directory or test file")
    return runs, tests


def chosen_test(directory: Path, first: "Run | None", files: Sequence[Path]) -> "SourceConfig":
    from dragoman.data.config import SourceConfig

    if files:
        return SourceConfig(tuple(map(str, files)))
    if first is None:
        raise UserError(f"{directory}: an export names no test set; give one with --test")
    tests = first.config.data.test
    if len(tests) != 1:
        found = "no test set" if not tests else f"{len(tests)} test sets"
        raise UserError(f"{directory}: its configuration names {found}; give one with --test")
    return tests[0]


def run_labels(runs: Sequence[Path], given: Sequence[str]) -> list[str]:
    if given and len(given) != len(runs):
        raise UserError(f"--label: expected one for each of the {len(runs)} runs, found {len(given)}")
    labels = list(given) or [run.resolve().name for run in runs]
    for label in labels:
        if not label.strip() or not label.isprintable():
            raise UserError(f"--label: expected printable text, found {label!r}")
        if labels.count(label) > 1:
            raise UserError(f"the label '{label}' stands for two runs; name each of them with --label")
    return labels


def parse_edges(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"--edges: expected whole numbers as in 5,10,15,20, found '{text}'") from None


def translated_texts(
    translator: "BaseTranslator", search: "SearchConfig", sources: list[str], batch_tokens: int | None
) -> list[str]:
    from dragoman.cli.progress import progress_bar

    with progress_bar(len(sources)) as progress:
        found = translator.hypotheses(sources, search=search, batch_tokens=batch_tokens, progress=progress)
    cut_off = sum(best.finish_reason == "length" for best, *_ in found)
    if cut_off:
        typer.echo(f"  cut off at the length limit: {cut_off} of {len(sources)} translations")
    return [best.text for best, *_ in found]


def print_table(found: "Comparison", title: str) -> None:
    """A row for each run; below the names of the buckets, how many sentences are in each."""
    buckets = found.buckets
    name = found.runs[0].by_length[0].name
    typer.echo(f"\n{title}: {name} by the length of the source in {found.unit}")
    overall = [metric.name for metric in found.runs[0].overall.values()]
    rows = [
        ["", *overall, "p", *(bucket.label for bucket in buckets)],
        [
            "sentences",
            str(found.num_sentences),
            *[""] * len(overall),
            *(str(len(bucket.places)) for bucket in buckets),
        ],
    ]
    for number, run in enumerate(found.runs):
        chance = "" if run.p_value is None else f"{run.p_value:.3f}"
        scores = [metric_text(metric) for metric in run.overall.values()]
        rows.append(
            [
                run.label,
                *scores,
                chance or ("first" if number == 0 else "–"),
                *map(metric_text, run.by_length),
            ]
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
        typer.echo("  " + "  ".join(cells).rstrip())
    if len(found.runs) > 1:
        typer.echo(f"  p: paired bootstrap on {name}, each run against the first")
    for metric in found.runs[0].overall.values():
        typer.echo(f"  {metric.name:6} {metric.signature}")


def metric_text(metric: "Metric") -> str:
    return f"{metric.value:.1f}" + ("" if metric.half_width is None else f" ± {metric.half_width:.1f}")

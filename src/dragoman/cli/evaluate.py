"""`dragoman evaluate`: BLEU, chrF and TER of a run or an export on a test set, with signatures and intervals;
or the perplexity of a language model."""

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
    FurtherRuns,
    Lowercase,
    Precision,
    RunOrExport,
    SearchFields,
)

if TYPE_CHECKING:
    from dragoman.evaluate.testset import Evaluation
    from dragoman.runs.directory import Run


def evaluate(
    run: RunOrExport,
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Test files; by default the test set of the run's configuration."),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(metavar="FILES", help="The same as FILES, as in other commands.")
    ] = None,
    also: FurtherRuns = None,
    method: Annotated[str | None, typer.Option(help="beam, sample or mbr.")] = None,
    beam: Beam = None,
    alpha: Alpha = None,
    fields: SearchFields = None,
    tokenize: BleuTokenizer = "13a",
    lowercase: Lowercase = False,
    bootstrap: Annotated[
        int, typer.Option(help="Bootstrap samples for the 95% intervals; 0 disables them.")
    ] = 1000,
    name: Annotated[
        str | None, typer.Option(help="Name of the results; by default the name of the test file.")
    ] = None,
    batch_tokens: BatchTokensIfGiven = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
    precision: Precision = "float32",
) -> None:
    """Print BLEU, chrF and TER of a run or an export on a test set, or the perplexity of a language model.

    The translations and the scores are kept in RUN/evaluation.
    """
    from dragoman.cli.overlap import warn_of_overlap
    from dragoman.cli.progress import progress_bar
    from dragoman.cli.searching import with_changes
    from dragoman.cli.translators import open_translator
    from dragoman.data.config import SourceConfig
    from dragoman.data.formats import read_pairs
    from dragoman.errors import UserError
    from dragoman.evaluate.testset import evaluate as evaluate_on
    from dragoman.learning import learning_of
    from dragoman.runs.directory import Run

    files = [*(files or []), *(test or [])]
    if Run.exists(run) and learning_of((own := Run.open(run)).config).learns_from == "text":
        _print_text(own, files, checkpoint, device)
        return
    opened = open_translator(run, also or [], checkpoint, device, precision)
    translator = opened.translator
    search = with_changes(translator.search, method, fields or [], beam=beam, alpha=alpha)
    named = [] if opened.run is None else opened.run.config.data.test
    tests = [SourceConfig(tuple(files))] if files else list(named)
    if not tests:
        what = "an export" if opened.run is None else "its configuration"
        raise UserError(f"{run}: {what} names no test set; give the test files after it")
    for source in tests:
        pairs = list(read_pairs(source, *opened.languages))
        sources, references = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
        with progress_bar(len(sources)) as progress:
            found = evaluate_on(
                translator,
                sources,
                references,
                search=search,
                batch_tokens=batch_tokens or translator.default_batch_tokens,
                tokenize=tokenize,
                lowercase=lowercase,
                bootstrap=bootstrap,
                progress=progress,
            )
        title = name or Path(source.files[0]).name
        directory = _write(run, title, found, list(source.files), [str(path) for path in also or []])
        _print(title, found, directory)
        if opened.run is not None:
            warn_of_overlap(opened.run, sources, references)


def _print_text(run: "Run", files: list[str], checkpoint: str, device: str) -> None:
    from dragoman.errors import UserError
    from dragoman.learning.text_evaluation import text_metrics

    if not files:
        raise UserError(f"{run.directory}: give the files of text after the run")
    for name, value in text_metrics(run, files, checkpoint, device).items():
        typer.echo(f"{name}\t{value:.4f}")


def _write(run: Path, title: str, found: "Evaluation", files: list[str], others: list[str]) -> Path:
    """The translations and the figures, so that nobody has to translate again to look closer."""
    import json

    from dragoman.files import explained, make_directories, replace_file

    directory = run / "evaluation" / title
    lines = (text.replace("\n", " ") for text in found.hypotheses)
    report = {"files": files, "with": others, **found.report()}
    with explained(directory):
        make_directories(directory)
        replace_file(directory / "hypotheses.txt", "".join(f"{line}\n" for line in lines).encode())
        replace_file(directory / "report.json", json.dumps(report, indent=1, ensure_ascii=False).encode())
    return directory


def _print(title: str, found: "Evaluation", directory: Path) -> None:
    speed = len(found.hypotheses) / max(found.seconds, 1e-9)
    typer.echo(f"{title}: {len(found.hypotheses)} sentences in {found.seconds:.1f} s ({speed:.1f} a second)")
    for metric in found.metrics:
        interval = "" if metric.half_width is None else f" ± {metric.half_width:.2f}"
        typer.echo(f"  {metric.name:6} {metric.value:6.2f}{interval}   {metric.signature}")
    typer.echo(f"  exact  {found.exact:6.2f}%")
    if found.cut_off:
        typer.echo(f"  {_counted(found.cut_off)} cut off at the length limit")
    if found.loops:
        typer.echo(f"  {_counted(found.loops)} stuck in a loop and redone")
    typer.echo(f"  written to {directory}")


def _counted(number: int) -> str:
    return "1 translation was" if number == 1 else f"{number} translations were"

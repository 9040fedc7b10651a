"""`dragoman search-report`: does the beam miss the best translation, and is the best one any good?"""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import BatchTokens, Beams, Checkpoint, Device, RunDirectory, parse_beams
from dragoman.errors import missing_extra

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.evaluate.search_errors import SearchErrors

NOTES = (
    "Misses: there is a translation with a better score, so the search is at fault.",
    "Worse, better: the optimum's chrF against the beam's; where it is worse, the model is at fault.",
    "Empty: the optimum has no text at all.",
)


def search_report(
    run: RunDirectory,
    files: Annotated[list[str], typer.Argument(help="Test files: source and target, or one table of pairs.")],
    beams: Beams = "1,2,4,8,16",
    sentences: Annotated[
        int, typer.Option(min=1, help="Number of sentences, evenly spread over the test set.")
    ] = 200,
    max_nodes: Annotated[
        int | None, typer.Option(help="Prefixes to examine for each sentence before giving up the proof.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="Length penalty; 0 is none, and often prefers empty text.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Name of the files to write; .png, .svg and .tsv are added.")
    ] = None,
    batch_tokens: BatchTokens = 2048,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Separate search errors from model errors, by exhaustive search."""
    if out is not None and find_spec("matplotlib") is None:  # before minutes of searching
        raise missing_extra("matplotlib", "plots", "drawing a picture")
    from rich.console import Console

    from dragoman.cli.output import output_stem, write_beside
    from dragoman.cli.progress import progress_bar
    from dragoman.cli.translators import with_changes
    from dragoman.data.config import SourceConfig
    from dragoman.data.formats import read_pairs
    from dragoman.evaluate.plot import draw_search_errors
    from dragoman.evaluate.search_errors import evenly, search_errors
    from dragoman.runs.directory import Run

    stem = None if out is None else output_stem(out)
    widths = parse_beams(beams)
    opened = Run.open(run)
    data = opened.config.data
    pairs = list(read_pairs(SourceConfig(tuple(files)), data.src_lang, data.tgt_lang))
    asked = [pair for pair in pairs if pair.src.strip()]
    chosen = [asked[place] for place in evenly(len(asked), sentences)]
    translator = opened.translator(checkpoint, device)
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(f"{Path(files[0]).name}: {len(chosen)} of {len(pairs)} sentences", end="")
    console.print(f" ({len(pairs) - len(asked)} have a blank source)" if len(asked) < len(pairs) else "")
    with progress_bar(len(chosen) * (len(widths) + 1)) as progress:
        found = search_errors(
            translator,
            [pair.src for pair in chosen],
            [pair.tgt for pair in chosen],
            beams=widths,
            search=with_changes(translator.search, "exhaustive", [], alpha=alpha, max_nodes=max_nodes),
            batch_tokens=batch_tokens,
            progress=progress,
        )
    print_search_errors(console, found)
    if stem is not None and found.unproven < len(chosen):
        table = "".join("\t".join(row) + "\n" for row in found.table())
        pictures = draw_search_errors(found)
        write_beside(stem, {".png": pictures["png"], ".svg": pictures["svg"], ".tsv": table.encode()})


def print_search_errors(console: "Console", found: "SearchErrors") -> None:
    from rich.table import Table

    rows = found.overall()
    settings = found.search
    if not rows:
        console.print(f"No optimum was proven within {settings.max_nodes:,} prefixes; raise --max-nodes.")
        return
    table = Table(title=f"Each beam against the optimum, {found.ranked_by}", title_justify="left")
    for heading in (
        "beam",
        "misses it",
        "mean gap",
        "optimum is worse",
        "optimum is better",
        "chrF",
        "optimum's chrF",
    ):
        table.add_column(heading, justify="right")
    for row in rows:
        gap = f"{row.gap:.4f}" if row.missed else "–"
        shares = (percentage(row.worse), percentage(row.better), f"{row.chrf:.1f}", f"{row.optimum_chrf:.1f}")
        table.add_row(str(row.beam), percentage(row.missed), gap, *shares)
    console.print(table)
    table = Table(title="How often beam k misses it, by pieces of the source", title_justify="left")
    for heading in ("pieces", "proven", "not proven", "empty"):
        table.add_column(heading, justify="right")
    for beam in found.beams:
        table.add_column(f"k = {beam}", justify="right")
    for group in (*found.by_length(), rows):
        first = group[0]
        counts = (first.bucket, str(first.sentences), str(first.unproven), percentage(first.empty))
        table.add_row(*counts, *(percentage(row.missed) for row in group))
    console.print(table)
    for line in NOTES:
        console.print(line)
    if found.unproven:
        console.print(
            f"{found.unproven} of {len(found.sentences)} sentences took more than {settings.max_nodes:,} "
            "prefixes and are left out. They are the hard ones: raise --max-nodes."
        )


def percentage(value: float) -> str:
    return f"{100 * value:.1f}%"

"""`dragoman tune`: the beam and the length penalty that a run wants, by its validation set."""

from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import BatchTokens, Beams, Checkpoint, Device, RunDirectory, ScoreName, parse_beams
from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.evaluate.tune import Tuned
    from dragoman.runs.directory import Run


def tune(
    run: RunDirectory,
    files: Annotated[
        list[str] | None, typer.Argument(help="Validation files; without any, the run's own validation set.")
    ] = None,
    beams: Beams = "1,2,4,5,8",
    alphas: Annotated[
        str, typer.Option(help="Length normalisations to try.")
    ] = "0,0.2,0.4,0.6,0.8,1,1.2,1.4,1.6,1.8,2",
    metric: Annotated[ScoreName, typer.Option(help="What to choose by.")] = ScoreName.bleu,
    sentences: Annotated[
        int | None, typer.Option(min=1, help="Only so many, from all over the validation set.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Store what was chosen in the run.")] = False,
    batch_tokens: BatchTokens = 2048,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Choose beam and length penalty on validation data.

    Each beam is searched once and its hypotheses are ranked by every alpha. Never tune on the test set.
    """
    from dataclasses import replace

    from dragoman.cli.progress import progress_bar
    from dragoman.decode.search.config import BeamSearch
    from dragoman.evaluate.tune import tune_search as tune_on
    from dragoman.evaluate.tune import validation_openings
    from dragoman.runs.directory import Run

    widths, penalties = parse_beams(beams), parse_alphas(alphas)
    opened = Run.open(run)
    sources, references = _validation(opened, files or [], sentences)
    translator = opened.translator(checkpoint, device, undirected=not files)
    openings = None if files else validation_openings(opened.prepared(), sentences)
    with progress_bar(len(sources) * len(widths)) as progress:
        found = tune_on(
            translator,
            sources,
            references,
            beams=widths,
            alphas=penalties,
            metric=metric.value,
            batch_tokens=batch_tokens,
            progress=progress,
            openings=openings,
        )
    print_tuned(found, metric.value, len(sources))
    chosen, now = found.chosen, opened.config.search
    assert isinstance(now, BeamSearch), "others cannot be tuned"
    same = (chosen.beam, chosen.alpha) == (now.beam, now.alpha)
    if write:
        search = replace(now, beam=chosen.beam, alpha=chosen.alpha, n_best=min(now.n_best, chosen.beam))
        with opened.locked():  # it also removes what a process that died here has left
            if not same:
                opened.replace_config(replace(opened.config, search=search))
    if same:
        typer.echo("the run searches like this already")
    else:
        typer.echo(
            f"stored in {run}" if write else "store it with --write, or translate with  --beam … --alpha …"
        )


def parse_alphas(text: str) -> list[float]:
    from dragoman.decode.search.job import MOST_ALPHA

    try:
        alphas = [float(part) for part in text.split(",")]
    except ValueError:
        alphas = []
    if not alphas or not all(0 <= alpha <= MOST_ALPHA for alpha in alphas):
        most = f"{MOST_ALPHA:g}"
        raise UserError(f"--alphas: expected numbers from 0 to {most}, as in 0,0.5,1, found '{text}'")
    return alphas


def _validation(run: "Run", files: list[str], sentences: int | None) -> tuple[list[str], list[str]]:
    from dragoman.data.config import SourceConfig
    from dragoman.data.contexts import in_their_documents
    from dragoman.data.formats import read_pairs
    from dragoman.evaluate.search_errors import evenly
    from dragoman.evaluate.tune import validation_pairs
    from dragoman.text.context import sentence_of

    data = run.config.data
    if not files:
        prepared = run.prepared()
        if not len(prepared.valid):
            raise UserError(f"{run.directory}: it has no validation set; give validation files after the run")
        return validation_pairs(prepared, sentences)
    read = read_pairs(SourceConfig(tuple(files)), data.src_lang, data.tgt_lang)
    pairs = list(in_their_documents(read, data.context))
    places = evenly(len(pairs), sentences or len(pairs))
    return [pairs[place][0] for place in places], [sentence_of(pairs[place][1]) for place in places]


def print_tuned(found: "Tuned", metric: str, sentences: int) -> None:
    """A row for each beam, a column for each alpha; a star at the best."""
    from dragoman.evaluate.metrics import NAMES

    name = NAMES[metric]
    typer.echo(f"{name} of {sentences} validation sentences by beam and alpha")
    rows = [["beam", *(f"{alpha:g} " for alpha in found.alphas)]]
    for beam in found.beams:
        cells = []
        for alpha in found.alphas:
            star = "*" if (beam, alpha) == (found.chosen.beam, found.chosen.alpha) else " "
            cells.append(f"{found.scores[beam, alpha]:.2f}{star}")
        rows.append([str(beam), *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        typer.echo("  " + "  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)).rstrip())
    typer.echo(f"best: beam {found.chosen.beam}, alpha {found.chosen.alpha:g} ({name} {found.best:.2f})")

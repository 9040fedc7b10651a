"""`dragoman back-translate`: a synthetic source for text of the target language."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import BatchTokens, Beam, Checkpoint, Cluster, Device, FurtherRuns, SearchFields
from dragoman.errors import UserError


def back_translate(
    run: Annotated[Path, typer.Argument(help="Run for the reverse direction (target to source).")],
    mono: Annotated[Path, typer.Argument(help="Text in your target language, one sentence a line.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the synthetic source, line by line.")],
    tag: Annotated[str, typer.Option(help="Tag before each synthetic sentence, such as '<BT>'.")] = "",
    sample: Annotated[
        bool, typer.Option("--sample", help="Sample translations instead of beam search.")
    ] = False,
    beam: Beam = None,
    also: FurtherRuns = None,
    fields: SearchFields = None,
    batch_tokens: BatchTokens = 2048,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
    cluster: Cluster = None,
) -> None:
    """Translate target-language text back, to train on it (back-translation).

    Line n of OUT is the translation of line n of MONO. Train on the two files together with real pairs. If
    it is interrupted, the same command continues where it stopped.
    """
    if sample and beam is not None:
        raise UserError("--sample: a sample has no beam; leave out --beam")
    if tag != tag.strip() or not tag.isprintable():
        raise UserError(f"--tag: expected printable text without spaces around it, found {tag!r}")
    from dragoman.cli.synthetic import corpus_progress, tell
    from dragoman.cli.translators import with_changes
    from dragoman.data.formats import read_lines
    from dragoman.files import hash_file
    from dragoman.runs.corpus_job import CorpusTask, translate_corpus
    from dragoman.runs.directory import Run
    from dragoman.runs.identity import identity
    from dragoman.runs.opening import open_translator

    total = sum(1 for _ in read_lines(mono))
    runs = [Run.open(path) for path in (run, *(also or []))]
    translator = open_translator(runs, checkpoint, "cpu" if cluster else device)
    method = "sample" if sample else None
    search = with_changes(translator.search, method, fields or [], beam=beam, n_best=1)
    task = CorpusTask(
        search, hash_file(mono), runs[0].config.data.clean.max_length, prefix=f"{tag} " if tag else ""
    )
    with ExitStack() as stack:
        spread = None
        if cluster:
            from dragoman.cli.clustered import cluster_at, corpus_spread

            connected = stack.enter_context(cluster_at(cluster))
            paths = [one.directory for one in runs]
            spread = corpus_spread(connected, paths, checkpoint, device, batch_tokens, identity(translator))
        progress = stack.enter_context(corpus_progress(total))
        done = translate_corpus(
            translator,
            read_lines(mono),
            out,
            task,
            batch_tokens=batch_tokens,
            progress=progress,
            total=total,
            spread=spread,
        )
    tell(done)
    typer.echo(f"the pairs are {out} and {mono}; train on them together with real pairs (data.train)")

"""`dragoman align`: which words of given translations belong to which words of their sources."""

from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.options import (
    Checkpoint,
    Device,
    FirstWord,
    FromLanguage,
    Output,
    RunOrExport,
    ToLanguage,
    ZeroShot,
)


def align(
    run: RunOrExport,
    files: Annotated[
        list[str], typer.Argument(help="Two parallel files, or one TSV, CSV, JSONL or Parquet file.")
    ],
    output: Output = None,
    gold: Annotated[
        Path | None, typer.Option(help="Hand-made links (0-0 1p2); prints the alignment error rate.")
    ] = None,
    gold_first: FirstWord = 0,
    to: ToLanguage = None,
    source: FromLanguage = None,
    zero_shot: ZeroShot = False,
    batch_tokens: Annotated[int, typer.Option(help="Tokens in a batch.")] = 2048,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Print word alignments of given translations, from the model's attention.

    One line for each pair, as 0-0 1-2. If the model has a head that was trained to align, that head is used.
    """
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import chunks
    from dragoman.cli.translators import open_directed
    from dragoman.data.alignment.links import pharaoh
    from dragoman.data.config import SourceConfig
    from dragoman.data.formats import read_pairs
    from dragoman.evaluate.alignment import read_gold, score_alignments

    opened = open_directed(run, (), checkpoint, device, "float32", to, source, zero_shot)
    pairs = read_pairs(SourceConfig(tuple(files)), *opened.languages)
    right = None if gold is None else read_gold(gold, gold_first)
    aligner = opened.translator.aligner
    found: list[list[tuple[int, int]]] = []
    with open_output(output) as write:
        for chunk in chunks(pairs):
            for links in aligner.links_of_texts([(pair.src, pair.tgt) for pair in chunk], batch_tokens):
                write(pharaoh(links))
                if right is not None:
                    found.append(links)
    look = "chosen at export" if opened.fast else aligner.look
    if right is not None:
        typer.echo(f"{score_alignments(found, right)}; attention: {look}", err=True)
    elif not opened.fast and aligner.look is not None and aligner.look.guided_head is not None:
        typer.echo(f"attention: {look}", err=True)

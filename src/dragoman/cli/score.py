"""`dragoman score`: how probable a model finds given translations."""

from typing import Annotated

import typer

from dragoman.cli.options import (
    Checkpoint,
    Device,
    FromLanguage,
    FurtherRuns,
    Output,
    RunOrExport,
    ToLanguage,
    ZeroShot,
)


def score(
    run: RunOrExport,
    files: Annotated[
        list[str], typer.Argument(help="Two parallel files, or one TSV, CSV, JSONL or Parquet file.")
    ],
    to: ToLanguage = None,
    source: FromLanguage = None,
    zero_shot: ZeroShot = False,
    also: FurtherRuns = None,
    output: Output = None,
    alpha: Annotated[float | None, typer.Option(help="Length penalty of the score.")] = None,
    json_lines: Annotated[
        bool, typer.Option("--json", help="JSON lines with the score of every piece.")
    ] = False,
    batch_tokens: Annotated[int | None, typer.Option(help="Tokens in a batch.")] = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Print how probable the model finds given translations.

    One line for each pair: score, log p(target | source), number of tokens."""
    from dragoman.cli.hypotheses import as_json
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import chunks
    from dragoman.cli.translators import open_translator
    from dragoman.data.config import SourceConfig
    from dragoman.data.formats import read_pairs

    opened = open_translator(run, also or [], checkpoint, device, "float32", to, source, zero_shot)
    pairs, translator = read_pairs(SourceConfig(tuple(files)), *opened.languages), opened.translator
    size = batch_tokens or translator.default_batch_tokens
    with open_output(output) as write:
        for chunk in chunks(pairs):
            found = translator.score([(p.src, p.tgt) for p in chunk], alpha=alpha, batch_tokens=size)
            for pair, scored in zip(chunk, found, strict=True):
                if json_lines:
                    write(as_json(pair.src, [scored]))
                else:
                    write(f"{scored.score:.5f}\t{scored.log_prob:.5f}\t{len(scored.token_scores)}")

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
    UseContext,
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
    context: UseContext = True,
    batch_tokens: Annotated[int | None, typer.Option(help="Tokens in a batch.")] = None,
    checkpoint: Checkpoint = "best",
    device: Device = "auto",
) -> None:
    """Print how probable the model finds given translations.

    One line for each pair: score, log p(target | source), number of tokens. A run that was trained with the
    sentences before reads them in the files; blank lines, which end documents, get no line."""
    from dragoman.cli.hypotheses import as_json
    from dragoman.cli.output import open_output
    from dragoman.cli.texts import chunks
    from dragoman.cli.translators import open_translator
    from dragoman.data.config import SourceConfig
    from dragoman.data.contexts import in_their_documents
    from dragoman.data.formats import read_pairs
    from dragoman.text.context import sentence_of

    opened = open_translator(run, also or [], checkpoint, device, "float32", to, source, zero_shot, context)
    translator = opened.translator
    read = read_pairs(SourceConfig(tuple(files)), *opened.languages)
    pairs = in_their_documents(read, translator.context)
    size = batch_tokens or translator.default_batch_tokens
    with open_output(output) as write:
        for chunk in chunks(pairs):
            found = translator.score(chunk, alpha=alpha, batch_tokens=size)
            for (src, _), scored in zip(chunk, found, strict=True):
                if json_lines:
                    write(as_json(sentence_of(src), [scored]))
                else:
                    write(f"{scored.score:.5f}\t{scored.log_prob:.5f}\t{len(scored.token_scores)}")

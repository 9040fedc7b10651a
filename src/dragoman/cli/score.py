"""`dragoman score`: how probable a model finds given translations."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from dragoman.cli.options import (
    Checkpoint,
    Cluster,
    Device,
    FromLanguage,
    FurtherRuns,
    Output,
    RunOrExport,
    ToLanguage,
    UseContext,
    ZeroShot,
)
from dragoman.cli.output import WrittenLines

if TYPE_CHECKING:
    from dragoman.cli.translators import Asked, Opened


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
    cluster: Cluster = None,
) -> None:
    """Print how probable the model finds given translations.

    One line for each pair: score, log p(target | source), number of tokens. A run that was trained with the
    sentences before reads them in the files; blank lines, which end documents, get no line."""
    from dragoman.cli.output import write_lines
    from dragoman.cli.texts import chunks
    from dragoman.cli.translators import Asked
    from dragoman.data.config import SourceConfig
    from dragoman.data.contexts import in_their_documents
    from dragoman.data.formats import read_pairs

    asked = Asked(run, tuple(also or ()), checkpoint, "float32", to, source, zero_shot, context)
    opened = asked.open("cpu" if cluster else device)
    read = read_pairs(SourceConfig(tuple(files)), *opened.languages)
    pairs = chunks(in_their_documents(read, opened.translator.context))
    work = Scoring(asked, alpha, json_lines, batch_tokens)
    if not cluster:
        write_lines(map(work.using(opened), pairs), output)
        return
    from dragoman.cli.clustered import cluster_at, parts_on

    with cluster_at(cluster) as connected:
        write_lines(parts_on(connected, device, work, opened, pairs), output)


@dataclass(frozen=True)
class Scoring:
    """What is done with some pairs: here, or on a machine of a cluster."""

    asked: "Asked"
    alpha: float | None
    json_lines: bool
    batch_tokens: int | None

    def using(self, opened: "Opened") -> "Callable[[Sequence[tuple[str, str] | None]], WrittenLines]":
        from dragoman.cli.output import as_json
        from dragoman.text.context import sentence_of

        size = self.batch_tokens or opened.translator.default_batch_tokens

        def written(pairs: "Sequence[tuple[str, str] | None]") -> WrittenLines:
            texts = [pair or ("", "") for pair in pairs]
            out: list[str] = []
            found = opened.translator.score(texts, alpha=self.alpha, batch_tokens=size)
            for (src, _), pair, scored in zip(texts, pairs, found, strict=True):
                if self.json_lines:
                    failed = '{"failed": true}'
                    out.append(failed if pair is None else as_json(sentence_of(src), [scored]))
                elif pair is None:
                    out.append("nan\tnan\t0")
                else:
                    out.append(f"{scored.score:.5f}\t{scored.log_prob:.5f}\t{len(scored.token_scores)}")
            return WrittenLines(out, len(pairs), failed=pairs.count(None))

        return written

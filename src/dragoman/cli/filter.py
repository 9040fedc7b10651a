"""`dragoman filter`: the pairs of a corpus that are worth learning from."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dragoman.cli.options import Cluster, Device
from dragoman.errors import UserError

_WORST = -1e9
"""The score of a pair that no machine can score."""

if TYPE_CHECKING:
    from dragoman.data.filter import PairScorer
    from dragoman.data.formats import Pair


def filter_corpus(
    files: Annotated[
        list[str], typer.Argument(metavar="FILES", help="Source and target file, tables, memories.")
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Name of the files: NAME.en, NAME.de, NAME.dropped.tsv."),
    ],
    run: Annotated[
        Path | None, typer.Option(help="Run that translates this direction: improbable pairs go too.")
    ] = None,
    backward: Annotated[
        Path | None, typer.Option(help="Run for the other direction; a run of several languages has both.")
    ] = None,
    keep: Annotated[
        float, typer.Option(min=0.01, max=1, help="With --run: share of the faultless pairs to keep.")
    ] = 0.9,
    device: Device = "auto",
    cluster: Cluster = None,
) -> None:
    """Write the pairs of a corpus without its faults: empty, copied, repeated, misaligned, other languages.

    With a run, the pairs that it finds least probable are left out too. NAME.dropped.tsv has the reason for
    each pair that is left out.
    """
    from collections import Counter

    from dragoman.cli.corpus import progress_of_stages
    from dragoman.cli.help import refuse_overwriting
    from dragoman.cli.output import open_output
    from dragoman.data.filter import judged_pairs
    from dragoman.data.formats import group_files
    from dragoman.data.languages import languages_of
    from dragoman.files import scratch_directory

    if backward is not None and run is None:
        raise UserError("--backward: it goes together with --run, which translates this direction")
    if not out.name or out.is_dir():
        raise UserError(f"--out {out}: this is a directory; give a name for the files, as in {out / 'clean'}")
    sources = group_files(files)
    languages = languages_of(sources[0]) or ("src", "tgt")
    if cluster and run is None:
        raise UserError(
            "--cluster: only a run, which scores the pairs, is worth it; give --run, or leave it out"
        )
    names = [out.with_name(f"{out.name}.{ending}") for ending in (*languages, "dropped.tsv")]
    refuse_overwriting(names, files)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        score = None
        if run is not None:
            work = PairScores(run, backward, languages, "cpu" if cluster else device)
            score = on_cluster(stack, cluster, work, device) if cluster else partial(map, work.open())
        scratch = stack.enter_context(scratch_directory())
        progress = stack.enter_context(progress_of_stages())
        src, tgt, dropped = (stack.enter_context(open_output(name)) for name in names)
        for one in judged_pairs(sources, languages, scratch, progress, score, keep if run else 1.0):
            counts[one.reason or "kept"] += 1
            if one.reason is None:
                src(_one_line(one.pair.src))
                tgt(_one_line(one.pair.tgt))
            else:
                told = "" if one.score is None else f"{one.score:.4f}"
                dropped(
                    "\t".join((one.reason, one.origin, told, *map(_one_line, (one.pair.src, one.pair.tgt))))
                )
    total = sum(counts.values())
    typer.echo(f"{counts['kept']:,} of {total:,} pairs written to {names[0]} and {names[1]}")
    for reason, count in counts.most_common():
        if reason != "kept":
            typer.echo(f"  {count:9,}  {reason.replace('_', ' ')} ({count / total:.1%})")


def on_cluster(stack: ExitStack, address: str, work: "PairScores", device: str) -> "PairScorer":
    """The same scores from the machines of a cluster, which is connected to as long as the stack is."""
    from dragoman.cli.clustered import cluster_at

    work.open()  # a mistake is told before anything starts
    cluster = stack.enter_context(cluster_at(address))
    there = replace(work.resolved(), device=cluster.device(device))
    return lambda chunks: cluster.map(there, chunks, there.device)


@dataclass(frozen=True)
class PairScores:
    """Scores pairs by the cross-entropies of the run, and of another one for the way back where there is
    one: here, or on a machine of a cluster."""

    run: Path
    backward: Path | None
    languages: tuple[str, str]
    device: str

    def resolved(self) -> "PairScores":
        backward = None if self.backward is None else self.backward.resolve()
        return replace(self, run=self.run.resolve(), backward=backward)

    def open(self) -> "Callable[[Sequence[Pair | None]], list[float]]":
        from dragoman.cli.translators import open_directed
        from dragoman.data.directions import Directions
        from dragoman.data.filter import dual_score
        from dragoman.runs.directory import Run

        directions: Directions | None = Run.open(self.run).config.data.directions
        src, tgt = self.languages if directions is not None else (None, None)
        ahead = open_directed(self.run, [], "best", self.device, "float32", tgt, src).translator
        back: Any = None
        if self.backward is not None:
            back = open_directed(self.backward, [], "best", self.device).translator
        elif directions is not None and self.languages[::-1] in directions.trained:
            back = open_directed(self.run, [], "best", self.device, "float32", src, tgt).translator

        def entropies(translator: Any, pairs: "list[tuple[str, str]]") -> list[float]:
            found = translator.score(pairs, alpha=1.0)
            return [-one.log_prob / max(1, len(one.token_scores)) for one in found]

        def score(pairs: "Sequence[Pair | None]") -> list[float]:
            texts = [("", "") if pair is None else (pair.src, pair.tgt) for pair in pairs]
            forward = entropies(ahead, texts)
            other: Sequence[float | None] = [None] * len(texts)
            if back is not None:
                other = entropies(back, [(tgt, src) for src, tgt in texts])
            scores = map(dual_score, forward, other)
            return [_WORST if pair is None else one for pair, one in zip(pairs, scores, strict=True)]

        return score


def _one_line(text: str) -> str:
    from dragoman.text.segment import one_line

    return one_line(text).replace("\t", " ")

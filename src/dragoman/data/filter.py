"""Selects the pairs of a corpus worth training on: without faults or suspicions, and probable under a
model."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import numpy as np

from dragoman.data.config import CleanConfig, DataConfig, SourceConfig
from dragoman.data.corpus import scanned_once
from dragoman.data.directions import Languages
from dragoman.data.drop_reasons import KEPT_CODE, reason_of
from dragoman.data.formats import Pair, read_pairs
from dragoman.data.mark_suspects import mark_suspects
from dragoman.data.scan import StageProgress

IMPROBABLE = "improbable"
"""The reason for dropping pairs that the model finds less probable than the others."""
_CHUNK = 2048
PairScorer = Callable[[Iterator[list[Pair]]], Iterator[Sequence[float]]]
"""Scores pairs with a model, chunk by chunk. Higher is better."""


@dataclass(frozen=True)
class FilteredPair:
    """A pair with the reason for dropping it, or None if it is kept."""

    pair: Pair
    origin: str
    reason: str | None
    score: float | None


def dual_score(forward: float, backward: float | None) -> float:
    """Score from two per-token cross-entropies: best if both are low and similar (Junczys-Dowmunt 2018)."""
    if backward is None:
        return -forward
    return -(abs(forward - backward) + (forward + backward) / 2)


def judged_pairs(
    sources: Sequence[SourceConfig],
    languages: Languages,
    scratch: Path,
    progress: StageProgress,
    score: PairScorer | None = None,
    keep: float = 1.0,
    seed: int = 1,
) -> Iterator[FilteredPair]:
    """All pairs in order. Of the pairs without a fault, the share `keep` with the best scores is kept."""
    clean = CleanConfig(drop_copies=True, drop_suspects=("all",))
    data = DataConfig(tuple(sources), src_lang=languages[0], tgt_lang=languages[1], clean=clean)
    with scanned_once(data, scratch, seed, progress) as scanned:
        mark_suspects(data, scanned, scratch, progress)
        codes = np.array(scanned.codes)
    scores = None if score is None else _scores(data, codes, score, progress)
    least = -np.inf
    if scores is not None and keep < 1:
        least = (
            float(np.quantile(scores[codes == KEPT_CODE], 1 - keep))
            if (codes == KEPT_CODE).any()
            else -np.inf
        )
    for number, (origin, pair) in enumerate(_pairs(data)):
        reason = None if codes[number] == KEPT_CODE else reason_of(int(codes[number]))
        own = None if scores is None or reason is not None else float(scores[number])
        if own is not None and own < least:
            reason = IMPROBABLE
        yield FilteredPair(pair, origin, reason, own)


def _pairs(data: DataConfig) -> Iterator[tuple[str, Pair]]:
    return chain.from_iterable(
        ((f"{source.files[0]}:{pair.line}", pair) for pair in read_pairs(source, *data.languages_of(source)))
        for source in data.train
    )


def _scores(data: DataConfig, codes: np.ndarray, score: PairScorer, progress: StageProgress) -> np.ndarray:
    """The scores of the pairs without a fault. Other pairs are not scored."""
    scores = np.zeros(len(codes))
    pairs = (pair for _, pair in _pairs(data))
    asked: deque[tuple[np.ndarray, int]] = deque()

    def chunks() -> Iterator[list[Pair]]:
        done = 0
        while chunk := list(islice(pairs, _CHUNK)):
            places = np.flatnonzero(codes[done : done + len(chunk)] == KEPT_CODE)
            asked.append((done + places, done + len(chunk)))
            done += len(chunk)
            yield [chunk[place] for place in places.tolist()]

    for found in score(chunks()):
        places, done = asked.popleft()
        scores[places] = found
        progress("score", done, len(codes))
    return scores

"""Sampling: translations drawn from the model's distribution, full or truncated.

    log p ─ ÷ temperature ─ top_k ─ top_p ─ min_p ─ softmax ─ draw

top_k: Fan et al. 2018; top_p: Holtzman et al. 2020; min_p: Nguyen et al. 2024. They are applied in this
order. Scores of samples are the model's own log-probabilities, not those of the truncated distribution.

A draw looks up u·Σp in the cumulative sum of p, where u is a hash of (seed, source ids, index of the sample,
position). There is no random generator with a state: a sentence gets the same samples in any batch, anywhere
in a file and on any device, as far as the model's arithmetic is the same. A repeated sentence gets the same
samples again.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch

from dragoman.data.seeded_random import GOLDEN, splitmix
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import SampleSearch
from dragoman.decode.search.job import Ended
from dragoman.decode.search.one_path import Hear, Pick, search_one_path
from dragoman.decode.search.scorer import Scorer
from dragoman.nn.loss import widest
from dragoman.shapes import Float, Int, Tensor

_SCORES_AT_ONCE = 1 << 26
"""Most rows × vocabulary of one step: further samples are drawn afterwards."""


def sample(
    scorer: Scorer, batch: SearchBatch, config: SampleSearch, hear: Hear | None = None
) -> list[list[Ended]]:
    """`n_best` independent samples of every sentence, in the order of drawing."""
    sources, limits = [job.source for job in batch.jobs], batch.limits
    at_once = max(1, _SCORES_AT_ONCE // (len(sources) * scorer.vocab.tgt_size))
    found: list[list[Ended]] = [[] for _ in sources]
    for first in range(0, config.n_best, at_once):
        numbers = range(first, min(first + at_once, config.n_best))
        draws = uniforms(config.seed, sources, numbers, int(limits.max()))
        pick = _pick(torch.from_numpy(draws).to(limits.device).flatten(0, 1), config)
        drawn = search_one_path(scorer, batch, pick, len(numbers), hear)
        for own, new in zip(found, drawn, strict=True):
            own += new
    return found


def _pick(draws: Float[Tensor, "N T"], config: SampleSearch) -> Pick:
    def pick(scores: Float[Tensor, "N V"], rows: Int[Tensor, "N"], position: int) -> Int[Tensor, "N"]:
        sums = truncated(scores, config).cumsum(dim=-1)
        target = draws[rows, position, None] * sums[:, -1:]
        return torch.searchsorted(sums, target, right=True)[:, 0]  # the first sum above it: its p is not 0

    return pick


def truncated(scores: Float[Tensor, "N V"], config: SampleSearch) -> Float[Tensor, "N V"]:
    """The distribution to draw from, in float64 where the device has it; 0 for truncated tokens."""
    if config.temperature == 0:  # the limit for temperature → 0
        return torch.zeros_like(scores, dtype=widest(scores.device)).scatter_(
            1, scores.argmax(1, keepdim=True), 1.0
        )
    left = scores.to(widest(scores.device)) / config.temperature
    if 0 < config.top_k < left.size(1):
        best = left.topk(config.top_k, dim=1)
        left = torch.full_like(left, -torch.inf).scatter_(1, best.indices, best.values)
    p = left.softmax(dim=1)
    if config.top_p < 1:
        ordered, places = p.sort(dim=1, descending=True, stable=True)
        before = ordered.cumsum(dim=1) - ordered  # the mass of all more probable tokens
        p = torch.zeros_like(p).scatter_(1, places, ordered.masked_fill(before >= config.top_p, 0.0))
    if config.min_p > 0:
        p = p.masked_fill(p < config.min_p * p.amax(dim=1, keepdim=True), 0.0)
    return p / p.sum(dim=1, keepdim=True)


def uniforms(seed: int, sources: Sequence[Sequence[int]], numbers: range, positions: int) -> np.ndarray:
    """Numbers in [0, 1) for every source, index of a sample and position."""
    keys = [hashlib.blake2b(np.asarray([seed, *ids], "<u8").tobytes(), digest_size=8) for ids in sources]
    per_source = np.asarray([int.from_bytes(key.digest(), "little") for key in keys], dtype=np.uint64)
    per_sample = splitmix(per_source[:, None] + _steps(numbers.start, numbers.stop))  # B K
    mixed = splitmix(per_sample[:, :, None] + _steps(0, positions))  # B K T
    return (mixed >> np.uint64(12)) * 2.0**-52


def _steps(first: int, end: int) -> np.ndarray:
    return np.arange(first + 1, end + 1, dtype=np.uint64) * GOLDEN

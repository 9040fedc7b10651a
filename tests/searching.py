"""Searches over padded sources, as models take them, and what they are held against."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from dragoman.data.batch import unpadded
from dragoman.decode.rules.constraints import FREE, Constraints
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Cancelled, Ended, Job, never
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import search as search_jobs
from dragoman.models.base import EncoderDecoder
from dragoman.shapes import Bool, Int, Tensor
from dragoman.text.piece_bytes import Spelling


def jobs_of(
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    constraints: Sequence[Constraints] | None = None,
    spelling: Spelling | None = None,
    cancelled: Sequence[Cancelled] | None = None,
) -> list[Job]:
    sources = unpadded(src_ids, src_mask)
    constraints = constraints or [FREE] * len(sources)
    cancelled = cancelled or [never] * len(sources)
    return [
        Job(tuple(ids), replace(own, spelling=spelling), left)
        for ids, own, left in zip(sources, constraints, cancelled, strict=True)
    ]


def batch_of(model: EncoderDecoder, jobs: Sequence[Job], config: SearchConfig) -> SearchBatch:
    scorer = Scorer([model])
    return SearchBatch.of(jobs, config, scorer.vocab, scorer.device)


def search(
    scorer: Scorer,
    src_ids: Int[Tensor, "B S"],
    src_mask: Bool[Tensor, "B S"],
    config: SearchConfig,
    constraints: Sequence[Constraints] | None = None,
    spelling: Spelling | None = None,
) -> list[list[Ended]]:
    """Without the loop guard: what random models write often goes in circles."""
    if isinstance(config, BeamSearch):
        config = replace(config, loop_guard=False)
    return search_jobs(scorer, jobs_of(src_ids, src_mask, constraints, spelling), config)


def search_guarded(
    scorer: Scorer, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], config: SearchConfig
) -> list[list[Ended]]:
    return search_jobs(scorer, jobs_of(src_ids, src_mask), config)


def token_scores_of(model: EncoderDecoder, src: Int[Tensor, "S"]) -> Callable[[tuple[int, ...]], list[float]]:
    """Log-probabilities of the pieces of an output, from full forward passes; one for each prefix."""

    @functools.cache
    def after(prefix: tuple[int, ...]) -> Tensor:
        with torch.no_grad():
            hidden = model(
                src[None], torch.ones_like(src[None], dtype=torch.bool), torch.tensor([[1, *prefix]])
            )
            return model.project(hidden)[0].log_softmax(-1)

    def scores(tokens: tuple[int, ...]) -> list[float]:
        return after(tokens[:-1]).gather(1, torch.tensor(tokens)[:, None])[:, 0].tolist()

    return scores


def rescored(
    model: EncoderDecoder, src: Int[Tensor, "S"], strings: Sequence[tuple[int, ...]]
) -> list[list[float]]:
    """Token scores of given outputs for one source, all in one pass."""
    width = max(map(len, strings))
    out = torch.tensor([[*string, *[0] * (width - len(string))] for string in strings])
    tgt_in = torch.cat([torch.full((len(out), 1), 1), out[:, :-1]], dim=1)
    sources = src.expand(len(out), -1)
    with torch.no_grad():
        hidden = model(sources, torch.ones_like(sources, dtype=torch.bool), tgt_in)
        scores = model.project(hidden).log_softmax(-1).gather(2, out[:, :, None])[:, :, 0].tolist()
    return [row[: len(string)] for row, string in zip(scores, strings, strict=True)]


def brute_force(
    model: EncoderDecoder, src: Int[Tensor, "S"], limit: int, alpha: float, shortest: int = 0
) -> list[tuple[float, tuple[int, ...]]]:
    """Every string there is, best first."""
    ordinary = range(3, model.vocab.tgt_size)
    bodies = (itertools.product(ordinary, repeat=length) for length in range(shortest, limit))
    strings = [(*body, 2) for body in itertools.chain.from_iterable(bodies)]
    totals = map(math.fsum, rescored(model, src, strings))
    return sorted(((t / len(s) ** alpha, s) for t, s in zip(totals, strings, strict=True)), reverse=True)

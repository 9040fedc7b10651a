"""Searches over padded sources, as models take them."""

from collections.abc import Sequence
from dataclasses import replace

from dragoman.data.batch import unpadded
from dragoman.decode.rules.constraints import FREE, Constraints
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Cancelled, Ended, Job, never
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.search.search import search as search_jobs
from dragoman.models.base import EncoderDecoder
from dragoman.shapes import Bool, Int, Tensor
from dragoman.text.spelling import Spelling


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

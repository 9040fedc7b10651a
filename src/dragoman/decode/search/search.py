"""Search the n best hypotheses of each job with the configured method."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from dragoman.decode.search.allocate import Banks, best_extensions
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.beam import Beam
from dragoman.decode.search.config import BeamSearch, ExhaustiveSearch, MbrOfBeam, MbrOfSamples, SearchConfig
from dragoman.decode.search.exhaustive import Exhaustive
from dragoman.decode.search.job import Ended, Job
from dragoman.decode.search.loops import without_loops
from dragoman.decode.search.one_path import most_probable, walk
from dragoman.decode.search.sample import sample
from dragoman.decode.search.scorer import ListedScorer, Scorer
from dragoman.decode.search.trace import TraceRecorder
from dragoman.errors import UserError

_WIDEST_RAISE = 24
"""A beam is widened up to this size if required phrases need banks."""


def search(scorer: Scorer, jobs: Sequence[Job], config: SearchConfig) -> list[list[Ended]]:
    """The n best hypotheses of every job, best first; samples in the order of drawing. For minimum Bayes risk
    these are the candidates; they are ranked later by their texts. A cancelled job has fewer hypotheses, or
    none.

    Jobs that need another beam size or vocabulary are searched separately: required phrases widen the beam,
    and a job with constraints may need any token, so it cannot use a shortlist.
    """
    if isinstance(config, MbrOfSamples | MbrOfBeam):
        config = config.for_candidates()
    groups: dict[tuple[int, bool, bool], list[int]] = {}
    for row, job in enumerate(jobs):
        _refuse(job, config, scorer)
        listed = config.shortlist and not job.constrained
        groups.setdefault((_width(config, job), bool(job.constraints.required), listed), []).append(row)
    found: list[list[Ended]] = [[] for _ in jobs]
    for (width, _, listed), rows in groups.items():
        alike = [jobs[row] for row in rows]
        with torch.inference_mode():
            own = scorer.among(alike) if listed else scorer
            wide = replace(config.widened(width), shortlist=listed)
            results = _METHODS[wide.method](own, SearchBatch.of(alike, wide, own.vocab, own.device), wide)
        if isinstance(own, ListedScorer):
            results = own.restore(results)
        for row, hypotheses in zip(rows, results, strict=True):
            found[row] = hypotheses
    return without_loops(found, jobs, config, lambda again, calm: search(scorer, again, calm))


def _by_beam(scorer: Scorer, batch: SearchBatch, config: BeamSearch) -> list[list[Ended]]:
    plain = scorer.device.type == "cuda" and not any(job.constrained for job in batch.jobs)
    if plain and scorer.rooms.take(scorer.models, config):
        return scorer.rooms.search(scorer.models[0], batch, config)
    if config.beam == 1 and not (config.record or config.watched or batch.required):
        return walk(scorer, batch, most_probable)
    allocation = best_extensions if batch.required is None else Banks(batch.required, scorer.vocab.eos_id)
    if not config.record:
        return Beam(scorer, batch, config, allocation).run()
    recorder = TraceRecorder(len(batch.jobs), config.beam, scorer.vocab.eos_id)
    stop = "complete" if config.beam == 1 else config.stop  # greedy search stops at the first `</s>`
    found = Beam(scorer, batch, replace(config, stop=stop), allocation, recorder).run()
    recorded = zip(found, recorder.traces, strict=True)
    return [[replace(hypothesis, trace=trace) for hypothesis in best] for best, trace in recorded]


def _exhaustively(scorer: Scorer, batch: SearchBatch, config: ExhaustiveSearch) -> list[list[Ended]]:
    first = _by_beam(scorer, batch, config.first())
    return [Exhaustive(scorer, batch, row, config, own).run() for row, own in enumerate(first)]


_METHODS: dict[str, Callable[[Scorer, SearchBatch, Any], list[list[Ended]]]] = {
    "beam": _by_beam,
    "exhaustive": _exhaustively,
    "sample": sample,
}


def _refuse(job: Job, config: SearchConfig, scorer: Scorer) -> None:
    spelling = job.constraints.spelling
    if job.constrained and (spelling is None or len(spelling) != scorer.vocab.tgt_size):
        raise UserError("spelling: constraints need the text of every piece of the target vocabulary")
    if job.constraints.required and isinstance(config, BeamSearch) and config.groups > 1:
        raise UserError(f"groups: phrases that are required need the whole beam, not {config.groups} groups")


def _width(config: SearchConfig, job: Job) -> int:
    """Room for every bank, so that a narrow beam is not forced to produce the phrases at once."""
    beam = config.beam if isinstance(config, BeamSearch | ExhaustiveSearch) else 1
    if not job.constraints.required:
        return beam
    banks = job.constraints.required_pieces + 1
    return max(beam, min(_WIDEST_RAISE, -(-banks // 4) * 4))

"""Streaming: every token is emitted as soon as the search can no longer change it.

With a beam, the common prefix of all hypotheses that can still win is final: the live ones, and the best
ended one (worse ended ones cannot win). With beam 1 every token is final at once. Text is emitted in whole
characters, and its parts concatenate to the translation exactly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.beam import Beam
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Ended, Job
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError


def stream_tokens(scorer: Scorer, job: Job, config: SearchConfig) -> Iterator[tuple[int, ...] | Ended]:
    """The tokens of one sentence as they become final, without `</s>`; then the best hypothesis.

    Greedy search is a beam of 1 that stops at the first `</s>`.
    """
    if not isinstance(config, BeamSearch):
        raise UserError(f"search.method: only a beam can be streamed, not {config.method}")
    stop = "complete" if config.beam == 1 else config.stop
    config = replace(config, n_best=1, stop=stop, record=False)
    if not config.shortlist:
        return _finals(scorer, job, config)
    listed = scorer.among([job])
    return map(listed.in_vocabulary, _finals(listed, job, config))


def _finals(scorer: Scorer, job: Job, config: BeamSearch) -> Iterator[tuple[int, ...] | Ended]:
    with torch.inference_mode():
        beam = Beam(scorer, SearchBatch.of([job], config, scorer.vocab, scorer.device, scorer.texts), config)
    sent = 0
    while not beam.finished:
        with torch.inference_mode():  # not held across a yield: it would affect the caller too
            beam.advance()
            final = _agreed(beam)
        if len(final) > sent and not beam.finished:
            yield final[sent:]
            sent = len(final)
    ((best,),) = beam.results()
    if len(best.tokens) - 1 > sent:
        yield best.tokens[sent:-1]
    yield best


def _agreed(beam: Beam) -> tuple[int, ...]:
    """The common prefix of the live hypotheses of the only sentence and its best ended one."""
    live = beam.tokens[0, beam.sums[0].isfinite(), : beam.length].tolist()
    candidates = [tuple(tokens) for tokens in live]
    if beam.ended[0]:
        candidates.append(max(beam.ended[0], key=beam.rank).tokens[:-1])
    return _common_prefix(candidates)


def _common_prefix(rows: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    if not rows:
        return ()
    first, last = min(rows), max(rows)  # in lexical order all others are between them
    length = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:length]

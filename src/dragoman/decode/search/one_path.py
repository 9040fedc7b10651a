"""Searches without backtracking or beams: each hypothesis picks one token at each position.

    step ─▶ log-probabilities ─▶ rules ─▶ pick ─▶ one token/row ──┐
      ▲                                                            │
      └────────────────────────────────────────────────────────────┘

Greedy search picks the most probable token; sampling draws one.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch

from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.beam_allocation import best_piece
from dragoman.decode.search.job import COMPACT_AT, Ended, FinishReason
from dragoman.decode.search.scorer import JointState, Scorer
from dragoman.nn.state import rows_of
from dragoman.shapes import Float, Int, Tensor


class Pick(Protocol):
    def __call__(
        self, scores: Float[Tensor, "N V"], rows: Int[Tensor, "N"], position: int
    ) -> Int[Tensor, "N"]:
        """One token for each row of scores, which rules may have reweighed. `rows` are their indices in the
        whole batch."""
        ...


Hear = Callable[[Int[Tensor, "N"]], None]
"""Is given the new tokens of all rows after each step."""


def most_probable(scores: Float[Tensor, "N V"], rows: Int[Tensor, "N"], position: int) -> Int[Tensor, "N"]:  # noqa: ARG001
    return best_piece(scores)


def search_one_path(
    scorer: Scorer, batch: SearchBatch, pick: Pick, times: int = 1, hear: Hear | None = None
) -> list[list[Ended]]:
    """`times` hypotheses of each sentence; fewer if it was cancelled. Ended rows stay idle until their
    sentence leaves the batch."""
    limits, cancellable = batch.limits, batch.can_be_cancelled
    eos, count, device = scorer.vocab.eos_id, len(limits), limits.device
    state = scorer.start(batch.src_ids, batch.src_mask)
    longest = int(limits.max())
    if times > 1:
        state = state.expand(times)
    row_limits = limits.repeat_interleave(times)
    tokens = torch.zeros(count * times, longest, dtype=torch.long, device=device)
    token_scores = torch.zeros(count * times, longest, device=device)
    lengths = torch.zeros_like(row_limits)  # 0 if a row has not ended
    sentences = torch.arange(count, device=device)
    rows = rows_of(sentences, times)
    last = torch.full_like(row_limits, scorer.vocab.bos_id)
    for length in range(1, longest + 1):
        if cancellable:
            jobs = [batch.jobs[sentence] for sentence in sentences.tolist()]
            alive = [place for place, job in enumerate(jobs) if not job.cancelled()]
            if not alive:
                break
            if len(alive) < len(sentences):
                state, last, sentences = _leave(state, last, sentences, alive, times)
                rows = rows_of(sentences, times)
        scores, state = scorer.step(last, state)
        ranked = batch.rules(scores, tokens[rows, : length - 1], sentences.repeat_interleave(times))
        last = torch.where(row_limits[rows] <= length, eos, pick(ranked, rows, length - 1))
        tokens[rows, length - 1] = last
        if hear is not None:
            hear(last)
        token_scores[rows, length - 1] = scores.gather(1, last[:, None])[:, 0].to(token_scores.dtype)
        going = lengths[rows] == 0
        lengths[rows[going & (last == eos)]] = length
        alive = (lengths[rows] == 0).view(-1, times).any(dim=1).nonzero()[:, 0]
        if not len(alive):
            break
        if len(sentences) - len(alive) > len(sentences) // COMPACT_AT:
            state, last, sentences = _leave(state, last, sentences, alive, times)
            rows = rows_of(sentences, times)
    found = zip(tokens.tolist(), token_scores.tolist(), lengths.tolist(), row_limits.tolist(), strict=True)
    ended = [_ended(*row) for row in found]
    by_sentence = (ended[first : first + times] for first in range(0, len(ended), times))
    return [[one for one in own if one is not None] for own in by_sentence]


def _leave(
    state: JointState,
    last: Int[Tensor, "N"],
    sentences: Int[Tensor, "A"],
    alive: Sequence[int] | Int[Tensor, "L"],
    times: int,
) -> tuple[JointState, Int[Tensor, "M"], Int[Tensor, "L"]]:
    """Keep only the sentences at the indices `alive`."""
    kept = torch.as_tensor(alive, device=last.device)
    return state.keep(kept), last[rows_of(kept, times)], sentences[kept]


def _ended(tokens: list[int], token_scores: list[float], length: int, limit: int) -> Ended | None:
    """None if it was cancelled before its end."""
    if not length:
        return None
    reason: FinishReason = "length" if length == limit else "stop"
    return Ended(tuple(tokens[:length]), tuple(token_scores[:length]), reason)

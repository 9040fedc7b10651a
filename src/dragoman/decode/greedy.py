"""Greedy search: the best piece at every position."""

import torch

from dragoman.decode.constrain import Rules
from dragoman.decode.ended import COMPACT_AT, Ended
from dragoman.decode.hypothesis import FinishReason
from dragoman.decode.scorer import JointState, Scorer
from dragoman.shapes import Int, Tensor


def greedy(scorer: Scorer, state: JointState, limits: Int[Tensor, "B"], rules: Rules) -> list[Ended]:
    """Rows that have ended go on idly until they leave the batch."""
    eos, count, device = scorer.vocab.eos_id, len(limits), limits.device
    longest = int(limits.max())
    tokens = torch.zeros(count, longest, dtype=torch.long, device=device)
    token_scores = torch.zeros(count, longest, device=device)
    lengths = torch.zeros_like(limits)  # 0 where a sentence has not ended
    sentences = torch.arange(count, device=device)
    last = torch.full_like(limits, scorer.vocab.bos_id)
    for length in range(1, longest + 1):
        scores, state = scorer.step(last, state)
        ranked = rules(scores, tokens[sentences, : length - 1], sentences)
        last = ranked.argmax(dim=-1).where(limits[sentences] > length, eos)
        best = scores.gather(1, last[:, None])[:, 0]
        tokens[sentences, length - 1] = last
        token_scores[sentences, length - 1] = best.float()
        going = lengths[sentences] == 0
        lengths[sentences[going & (last == eos)]] = length
        alive = (lengths[sentences] == 0).nonzero()[:, 0]
        if not len(alive):
            break
        if len(sentences) - len(alive) > len(sentences) // COMPACT_AT:
            state, last, sentences = state.keep(alive), last[alive], sentences[alive]
    rows = zip(tokens.tolist(), token_scores.tolist(), lengths.tolist(), limits.tolist(), strict=True)
    return [_ended(*row) for row in rows]


def _ended(tokens: list[int], token_scores: list[float], length: int, limit: int) -> Ended:
    reason: FinishReason = "length" if length == limit else "stop"
    return Ended(tuple(tokens[:length]), tuple(token_scores[:length]), reason)

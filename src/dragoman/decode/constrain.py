"""Rules on what may come next.

A rule takes the scores of every row, what the row has written so far, and which sentence it belongs to, and
returns the scores with −∞ for what may not follow. It keeps nothing between steps, so a search may exchange,
drop or revisit rows as it likes. What is left keeps its true log-probability: nothing is renormalised.
"""

from collections.abc import Sequence
from typing import Protocol

import torch

from dragoman.decode.config import SearchConfig
from dragoman.models.base import Vocab
from dragoman.shapes import Float, Int, Tensor


class Rule(Protocol):
    def __call__(
        self, scores: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> Float[Tensor, "N V"]:
        """May write into `scores` and return them. `prefix` has the pieces after `<s>`."""
        ...


class NoEndBefore:
    """`</s>` may not come before a sentence has its least number of pieces."""

    def __init__(self, vocab: Vocab, shortest: Int[Tensor, "B"]) -> None:
        self.eos_id, self.shortest = vocab.eos_id, shortest

    def __call__(
        self, scores: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> Float[Tensor, "N V"]:
        early = prefix.size(1) < self.shortest[sentences]
        scores[:, self.eos_id] = scores[:, self.eos_id].masked_fill(early, -torch.inf)
        return scores


class Rules:
    """All rules of a search, one after the other. Padding and `<s>` are no text and never come."""

    def __init__(self, vocab: Vocab, rules: Sequence[Rule] = ()) -> None:
        self.vocab, self.rules = vocab, tuple(rules)

    def __call__(
        self, scores: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> Float[Tensor, "N V"]:
        scores[:, self.vocab.pad_id] = -torch.inf
        scores[:, self.vocab.bos_id] = -torch.inf
        for rule in self.rules:
            scores = rule(scores, prefix, sentences)
        return scores


def rules_for(config: SearchConfig, vocab: Vocab, source_lengths: Int[Tensor, "B"]) -> Rules:
    """The rules that a configuration asks for."""
    rules: list[Rule] = []
    if config.min_length or config.min_ratio:
        shortest = [config.shortest(n) for n in source_lengths.tolist()]
        rules.append(NoEndBefore(vocab, torch.tensor(shortest, device=source_lengths.device)))
    return Rules(vocab, rules)

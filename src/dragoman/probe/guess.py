"""Predictions for one position of a text, by networks that read both sides of it.

BERT    the position is replaced by <mask>, and the network predicts it
ELMo    p(piece | left) and p(piece | right), multiplied and normalised: neither reads the position itself
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch

from dragoman.data.noise import MASK
from dragoman.decode.search.scorer import log_probs
from dragoman.errors import UserError
from dragoman.learning.text import special_id
from dragoman.models import Network
from dragoman.shapes import Float, Tensor
from dragoman.text.tokenizer import BOS_ID, EOS_ID, Tokenizer


class Guesser(Protocol):
    network: Any
    tokenizer: Tokenizer
    blank: int
    """The id of an unknown position: the mask."""

    def guess(self, rows: Sequence[Sequence[int]], places: Sequence[int]) -> Float[Tensor, "N V"]:
        """log p of every piece at one position of each row. Rows have equal lengths and no <s> or </s>."""
        ...


def guesser_of(network: Network, tokenizer: Tokenizer) -> Guesser:
    if network.abilities.predicts_masked:
        return MaskedGuesser(network, tokenizer)
    if network.abilities.reads_both_ways:
        return BothWaysGuesser(network, tokenizer)
    raise UserError("this model cannot predict a piece from both sides")


class _Guesser:
    def __init__(self, network: Network, tokenizer: Tokenizer, blank: int) -> None:
        self.network: Any = network.eval()
        self.tokenizer, self.blank = tokenizer, blank
        self.device = next(network.parameters()).device
        marks = (tokenizer.pad_id, BOS_ID, EOS_ID, blank)
        self._never = torch.tensor(sorted(set(marks)), device=self.device)

    def _ids(self, rows: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor([[BOS_ID, *row, EOS_ID] for row in rows], device=self.device)

    def _scores(self, logits: Float[Tensor, "N V"]) -> Float[Tensor, "N V"]:
        """Scores without special pieces."""
        return log_probs(logits.index_fill(1, self._never, -torch.inf)).cpu()


class MaskedGuesser(_Guesser):
    def __init__(self, network: Network, tokenizer: Tokenizer) -> None:
        super().__init__(network, tokenizer, special_id(tokenizer, MASK))

    @torch.inference_mode()
    def guess(self, rows: Sequence[Sequence[int]], places: Sequence[int]) -> Float[Tensor, "N V"]:
        ids = self._ids(rows)
        numbers = torch.arange(len(rows), device=self.device)
        at = torch.tensor(places, device=self.device) + 1  # after <s>
        ids[numbers, at] = self.blank
        hidden = self.network.read(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids))
        return self._scores(self.network.project(hidden[numbers, at]))

    @torch.inference_mode()
    def layers(self, row: Sequence[int], place: int) -> Float[Tensor, "L V"]:
        """log p at one masked position if the network ended after each layer, starting with the embedding."""
        ids = self._ids([row])
        ids[0, place + 1] = self.blank
        found = self.network.read_layers(ids, torch.ones_like(ids, dtype=torch.bool), torch.zeros_like(ids))
        return self._scores(self.network.project(torch.stack([layer[0, place + 1] for layer in found])))


class BothWaysGuesser(_Guesser):
    def __init__(self, network: Network, tokenizer: Tokenizer) -> None:
        super().__init__(network, tokenizer, EOS_ID)

    def sides(
        self, rows: Sequence[Sequence[int]], places: Sequence[int]
    ) -> tuple[Float[Tensor, "N V"], Float[Tensor, "N V"]]:
        """log p of every piece given the left context, and given the right context."""
        ids = self._ids(rows)
        numbers = torch.arange(len(rows), device=self.device)
        at = torch.tensor(places, device=self.device) + 1
        with torch.inference_mode():
            ahead, back = self.network.both_ways(ids, torch.ones_like(ids, dtype=torch.bool))
            left, right = ahead[-1][numbers, at - 1], back[-1][numbers, at + 1]
            return self._scores(self.network.project(left)), self._scores(self.network.project(right))

    def guess(self, rows: Sequence[Sequence[int]], places: Sequence[int]) -> Float[Tensor, "N V"]:
        left, right = self.sides(rows, places)
        return log_probs(left + right)

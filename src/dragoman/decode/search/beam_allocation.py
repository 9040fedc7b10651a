"""Which extensions of a sentence's hypotheses stay in the beam if phrases are required: some of every bank.
Without required phrases the best ones stay (`best_extensions` in `beam.py`).

With required phrases, the best extensions alone might never contain them. Post and Vilar (2018) divide the
beam into banks by how many constraints are met, and give each bank its share; Hu et al. (2019) do it for a
whole batch. Here a bank is what is still needed, and the banks take turns: the best extension of each, the
second best of each, and so on; banks that need least come first.

    need 0   a₁ a₂ a₃ a₄         order   a₁ b₁ c₁ a₂ b₂ a₃ a₄
    need 1   b₁ b₂
    need 3   c₁
"""

from typing import Protocol

import torch

from dragoman.decode.rules.required_phrases import FAR, Required
from dragoman.shapes import Float, Int, Tensor

_LAST = 1 << 62  # the turn of extensions that cannot continue
TOP_K_BLOCK = 64  # width of the blocks whose maxima locate the best tokens of a large vocabulary


class Allocation(Protocol):
    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        sums: Float[Tensor, "A K"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "A"],
        count: int,
    ) -> tuple[Float[Tensor, "A C"], Int[Tensor, "A C"], Int[Tensor, "A C"]]:
        """At most `count` extensions of each sentence, in order of preference: the sum of each, the
        hypothesis that it extends, and the token."""
        ...


class Banks:
    """Turns for every bank. The candidates are the best tokens of each hypothesis, and every token that
    continues a phrase that it still needs."""

    def __init__(self, required: Required, eos_id: int) -> None:
        self.required, self.eos_id = required, eos_id

    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        sums: Float[Tensor, "A K"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "A"],
        count: int,
    ) -> tuple[Float[Tensor, "A C"], Int[Tensor, "A C"], Int[Tensor, "A C"]]:
        values, pieces, need = self._candidates(
            scores, prefix, sentences.repeat_interleave(sums.size(1)), count
        )
        width = values.size(1)
        extended = (sums.view(-1, 1) + values).view(len(sums), -1)  # A M
        need, pieces = need.view_as(extended), pieces.view_as(extended)
        extended, by_sum = extended.sort(dim=1, descending=True, stable=True)
        need = need.gather(1, by_sum)
        turn = (_rank_within(need) * (FAR + 1) + need).masked_fill(extended.isneginf(), _LAST)
        first = turn.argsort(dim=1, stable=True)[:, :count]
        flat = by_sum.gather(1, first)
        return extended.gather(1, first), flat // width, pieces.gather(1, flat)

    def _candidates(
        self,
        scores: Float[Tensor, "N V"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],
        count: int,
    ) -> tuple[Float[Tensor, "N C"], Int[Tensor, "N C"], Int[Tensor, "N C"]]:
        """Scores, tokens, and what is needed after each token."""
        values, pieces = best_pieces(scores, min(count, scores.size(1)))
        progress = self.required.progress(prefix, sentences)
        going_on, wanted = progress.pieces, progress.then < FAR
        known = (going_on[:, :, None] == pieces[:, None]).any(dim=2)
        twice = (going_on[:, :, None] == going_on[:, None]) & wanted[:, None]
        useful = wanted & ~known & ~twice.tril(diagonal=-1).any(dim=2)
        extra = scores.gather(1, going_on).masked_fill(~useful, -torch.inf)
        values, pieces = torch.cat([values, extra], dim=1), torch.cat([pieces, going_on], dim=1)
        by_phrase = progress.then[:, None].where(going_on[:, None] == pieces[:, :, None], FAR).amin(dim=2)
        need = torch.minimum(self.required.after(progress).gather(1, self.required.kind[pieces]), by_phrase)
        return values, pieces, need.masked_fill(pieces == self.eos_id, 0)


def _rank_within(bank: Int[Tensor, "A M"]) -> Int[Tensor, "A M"]:
    """For each entry how many earlier ones are in the same bank."""
    grouped, order = bank.sort(dim=1, stable=True)
    place = torch.arange(bank.size(1), device=bank.device) - torch.searchsorted(grouped, grouped)
    return torch.zeros_like(bank).scatter(1, order, place)


def best_pieces(scores: Float[Tensor, "N V"], count: int) -> tuple[Float[Tensor, "N C"], Int[Tensor, "N C"]]:
    """The `count` best of each row. In a large row they are in the `count` blocks with the highest maxima, so
    only those are sorted."""
    rows, size = scores.shape
    blocks = size // TOP_K_BLOCK
    if blocks <= 4 * count:
        return scores.topk(count, dim=1)
    body = scores[:, : blocks * TOP_K_BLOCK].view(rows, blocks, TOP_K_BLOCK)
    top_blocks = body.amax(dim=2).topk(count, dim=1).indices  # N C
    inner = torch.arange(TOP_K_BLOCK, device=scores.device)
    within = (top_blocks[:, :, None] * TOP_K_BLOCK + inner).flatten(1)  # N C·64
    rest = torch.arange(blocks * TOP_K_BLOCK, size, device=scores.device).expand(rows, -1)
    places = torch.cat([within, rest], dim=1)
    values, chosen = scores.gather(1, places).topk(count, dim=1)
    return values, places.gather(1, chosen)


def best_piece(scores: Float[Tensor, "N V"]) -> Int[Tensor, "N"]:
    """`argmax` with the first index among equals. On a long row argmax is many times slower than max, because
    it tracks an index for every value; so the block of the maximum is found first."""
    rows, size = scores.shape
    blocks = size // TOP_K_BLOCK
    if blocks < 4:
        return scores.argmax(dim=1)
    tops = scores[:, : blocks * TOP_K_BLOCK].view(rows, blocks, TOP_K_BLOCK).amax(dim=2)  # N V/64
    if size % TOP_K_BLOCK:
        tops = torch.cat([tops, scores[:, blocks * TOP_K_BLOCK :].amax(dim=1, keepdim=True)], dim=1)
    first = tops.argmax(dim=1) * TOP_K_BLOCK
    places = (first[:, None] + torch.arange(TOP_K_BLOCK, device=scores.device)).clamp_(max=size - 1)  # N 64
    return places.gather(1, scores.gather(1, places).argmax(dim=1, keepdim=True))[:, 0]

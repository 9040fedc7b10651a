"""Noise for denoising objectives: the model learns to undo it.

    mask_pieces     a b c d e f  ─▶  a <mask> c d x f             BERT (Devlin et al. 2019, section 3.1)
    corrupt_spans   a b c d e f  ─▶  a <0> d e <1>   and   <0> b c <1> f <2>     T5 (Raffel et al. 2020)
    mask_each       a b c d e f  ─▶  a <mask> c d <mask> f        BART (Lewis et al. 2020, section 2.2)
    delete          a b c d e f  ─▶  a c d f
    infill          a b c d e f  ─▶  a <mask> d <mask> e f        each span, even an empty one, is a mask
    rotate          a b c d e f  ─▶  d e f a b c
    permute         lines in another order

Each function is pure: it depends on the pieces and the dice, whose key is (seed, epoch, example index).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from dragoman.data.seeded_random import Dice
from dragoman.errors import UserError

MASK = "<mask>"
Step = Literal["permute", "mask", "delete", "infill", "rotate"]


@dataclass(frozen=True)
class NoiseConfig:
    share: float = 0.15
    """Share of the pieces that are hidden. BART uses 0.3."""
    mean_span: float = 3.0
    whole_words: bool = False
    """masked: whether all pieces of a word are hidden together."""
    steps: tuple[Step, ...] = ("permute", "infill")
    """denoise: the noise steps, in order."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UserError(f"share: expected a share above 0 and below 1, found {self.share}")
        if not 1 <= self.mean_span < 100:
            raise UserError(f"mean_span: expected a number from 1 up to 100, found {self.mean_span}")
        if not self.steps:
            raise UserError("steps: expected at least one, found none")
        if "permute" in self.steps[1:]:
            raise UserError("steps: lines are lines before anything else is done; let permute be the first")

    def sentinels(self, length: int) -> tuple[str, ...]:
        """The control pieces for the spans of a text of `length` pieces: one per span and one for the end."""
        return tuple(f"<extra_id_{number}>" for number in range(self.spans(length)[1] + 1))

    def spans(self, length: int) -> tuple[int, int]:
        """The number of hidden pieces, and of spans, in a text of `length` pieces."""
        hidden = _hidden(length, self.share, most=max(1, length - 1))
        return hidden, min(max(1, round(hidden / self.mean_span)), length - hidden + 1)


def _hidden(length: int, share: float, most: int) -> int:
    return min(most, max(1, round(length * share)))


@dataclass(frozen=True)
class Pieces:
    """What masking needs to know about a vocabulary."""

    mask_id: int
    first: int
    """The first id that is not a control piece."""
    size: int
    word_starts: np.ndarray | None = None
    """Whether each piece begins a word. Needed if whole words are masked."""


def mask_pieces(
    ids: np.ndarray,
    dice: Dice,
    *,
    share: float,
    mask_id: int,
    first: int,
    size: int,
    word_starts: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The input, and which pieces are to be predicted: a `share` of them, of which 80% become the mask, 10% a
    random piece from `first` to before `size`, and 10% stay. With `word_starts`, whole words are chosen as
    far as they fit."""
    chosen = _chosen(ids, dice, share, word_starts)
    count = int(chosen.sum())
    fate, others = dice.uniform(count), first + dice.below(size - first, count)
    read = ids.copy()
    read[chosen] = np.where(fate < 0.8, mask_id, np.where(fate < 0.9, others, ids[chosen]))
    return read, chosen


def _chosen(ids: np.ndarray, dice: Dice, share: float, word_starts: np.ndarray | None) -> np.ndarray:
    wanted = _hidden(len(ids), share, most=len(ids))
    if word_starts is None:
        chosen = np.zeros(len(ids), dtype=bool)
        chosen[dice.order(len(ids))[:wanted]] = True
        return chosen
    word_of = np.cumsum(word_starts) - word_starts[0]
    sizes = np.bincount(word_of)
    order, room, taken = dice.order(len(sizes)).tolist(), wanted, []
    for word in order:
        if sizes[word] <= room:
            taken.append(word)
            room -= int(sizes[word])
    return np.isin(word_of, taken or order[:1])  # a word that is too long is better than none


def corrupt_spans(
    ids: np.ndarray, dice: Dice, config: NoiseConfig, sentinels: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Cut out spans and leave a sentinel for each. The target is each sentinel with its span, and one more
    sentinel for the end. Hidden pieces are divided at random into spans, the others into the parts around
    them; only the first and last part may be empty."""
    if len(ids) < 2:
        return np.array(sentinels[:1]), np.concatenate([sentinels[:1], ids, sentinels[1:2]]).astype(np.int64)
    hidden, spans = config.spans(len(ids))
    stay = _divided(len(ids) - hidden + 2, spans + 1, dice)
    stay[[0, -1]] -= 1
    parts = np.stack([stay[:-1], _divided(hidden, spans, dice)], axis=1)
    edges = [0, *np.cumsum(parts.ravel()).tolist(), len(ids)]
    pieces = [ids[begin:end] for begin, end in pairwise(edges)]
    src: list[np.ndarray] = []
    tgt: list[np.ndarray] = []
    for number in range(spans):
        mark = np.array([sentinels[number]])
        src += [pieces[2 * number], mark]
        tgt += [mark, pieces[2 * number + 1]]
    return np.concatenate([*src, pieces[-1]]), np.concatenate([*tgt, [sentinels[spans]]])


def _divided(total: int, parts: int, dice: Dice) -> np.ndarray:
    """`parts` numbers of at least 1 that add up to `total`, drawn uniformly from all such divisions."""
    cuts = np.sort(dice.order(total - 1)[: parts - 1]) + 1
    return np.diff(np.concatenate([[0], cuts, [total]]))


def mask_each(ids: np.ndarray, dice: Dice, share: float, mask_id: int) -> np.ndarray:
    return np.where(_chosen(ids, dice, share, None), mask_id, ids)


def delete(ids: np.ndarray, dice: Dice, share: float) -> np.ndarray:
    return ids[~_chosen(ids, dice, share, None)]


def infill(ids: np.ndarray, dice: Dice, share: float, mean_span: float, mask_id: int) -> np.ndarray:
    """Replace a `share` of the pieces by masks. Span lengths follow a Poisson distribution, and spans and
    kept pieces are shuffled together. A span of length 0 is a mask inserted where nothing was. The text never
    grows."""
    wanted = _hidden(len(ids), share, most=len(ids))
    drawn = dice.poisson(mean_span, 2 * wanted)
    drawn = np.concatenate([drawn[:wanted], np.maximum(drawn[wanted:], 1)])  # so that the total is reached
    ends = np.minimum(np.cumsum(drawn), wanted)
    lengths = np.diff(ends[: int(np.searchsorted(ends, wanted)) + 1], prepend=0)
    lengths = lengths[np.flatnonzero(lengths)] if len(lengths) > wanted else lengths
    kept = len(ids) - wanted
    is_span = dice.order(kept + len(lengths)) < len(lengths)
    widths = np.ones(len(is_span), dtype=np.int64)
    widths[is_span] = lengths
    begins = np.cumsum(widths) - widths
    return np.where(is_span, mask_id, ids[np.minimum(begins, len(ids) - 1)])


def rotate_pieces(ids: np.ndarray, dice: Dice) -> np.ndarray:
    return np.roll(ids, -dice.one_below(len(ids)))


def permute(lines: Sequence[np.ndarray], dice: Dice) -> list[np.ndarray]:
    return [lines[number] for number in dice.order(len(lines)).tolist()]


def denoising_source(
    lines: Sequence[np.ndarray], dice: Dice, config: NoiseConfig, mask_id: int
) -> np.ndarray:
    """Apply BART's noise steps in the configured order."""
    if config.steps[0] == "permute":
        lines = permute(lines, dice)
    ids = np.concatenate(lines)
    for step in config.steps:
        if step == "mask":
            ids = mask_each(ids, dice, config.share, mask_id)
        elif step == "delete":
            ids = delete(ids, dice, config.share)
        elif step == "infill":
            ids = infill(ids, dice, config.share, config.mean_span, mask_id)
        elif step == "rotate" and len(ids):
            ids = rotate_pieces(ids, dice)
    return ids

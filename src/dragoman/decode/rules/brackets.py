"""Keeps brackets balanced: a stack automaton, computed from the tokens of a row at every step.

    tokens of a row   (S ▁(NP ▁the ) ▁(VP        open: S, VP        may close twice, may not end

A token closes brackets that were open before it, then opens new ones; pairs inside a token are ignored. It is
allowed if it closes the innermost open brackets, and if the length limit leaves enough tokens to close what
is open after it. `</s>` is allowed when nothing is open. A prefix and required phrases take precedence over
this rule; a bracket that they close without opening it does not count.
"""

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.errors import UserError
from dragoman.models.base import Vocab
from dragoman.shapes import Bool, Float, Int, Tensor
from dragoman.text.piece_bytes import Spelling


class BracketTables:
    """What every piece of the vocabulary closes and opens. Pieces with the same brackets form one class;
    every table has one row per class."""

    def __init__(self, pairs: str, vocab: Vocab, spelling: Spelling, device: torch.device) -> None:
        found = [brackets_of(piece, pairs) for piece in spelling.pieces]
        numbers = {own: number for number, own in enumerate(dict.fromkeys(found))}
        for number in range(1, len(pairs) // 2 + 1):
            if ((number,), ()) not in numbers:
                raise UserError(
                    f"search.brackets: no piece of the vocabulary is '{pairs[2 * number - 1]}' alone, so it "
                    "could not always be written in time; leave this pair out"
                )
        self.kind = torch.tensor([numbers[own] for own in found], device=device)  # V
        self.never = torch.tensor([own is None for own in numbers], device=device)  # C
        both = [own or ((), ()) for own in numbers]
        self.closes = _padded([closed for closed, _ in both], device)  # C P
        self.opens = _padded([opened for _, opened in both], device)  # C Q
        self.closing, self.opening = (self.closes > 0).sum(dim=1), (self.opens > 0).sum(dim=1)  # C
        self.eos_id = vocab.eos_id

    def allowed(
        self, depth: Int[Tensor, "N"], innermost: Int[Tensor, "N P"], room: Int[Tensor, "N"]
    ) -> Bool[Tensor, "N V"]:
        """The pieces that may come next, from the number of open brackets, the last of them, last opened
        first, and the number of tokens that may follow, `</s>` not counted."""
        fits = self.closing <= depth[:, None]  # N C
        for place in range(self.closes.size(1)):
            wanted = self.closes[:, place]
            fits &= (wanted == 0) | (wanted == innermost[:, place, None])
        after = depth[:, None] - self.closing + self.opening
        fits &= ((after <= room[:, None]) | (after < depth[:, None])) & ~self.never
        allowed = fits[:, self.kind]
        allowed[:, self.eos_id] = depth == 0
        return allowed


class Balanced:
    """Masks tokens that would unbalance the brackets."""

    def __init__(self, pairs: str, vocab: Vocab, spelling: Spelling, limits: Int[Tensor, "B"]) -> None:
        self.tables = BracketTables(pairs, vocab, spelling, limits.device)
        self.limits = limits

    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        free: Float[Tensor, "N V"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],
    ) -> Float[Tensor, "N V"]:
        room = self.limits[sentences] - 2 - prefix.size(1)  # tokens after one more, without `</s>`
        allowed = self.tables.allowed(*self._open(self.tables.kind[prefix]), room)
        scores.masked_fill_(~allowed, -torch.inf)
        if free is scores:
            return scores
        stuck = scores.amax(dim=1).isneginf()  # another rule forbids all remaining tokens
        return scores.copy_(torch.where(stuck[:, None], free.masked_fill(~allowed, -torch.inf), scores))

    def _open(self, kinds: Int[Tensor, "N T"]) -> tuple[Int[Tensor, "N"], Int[Tensor, "N P"]]:
        """The number of open brackets, and the innermost ones, last opened first; 0 beyond the depth."""
        tables = self.tables
        rows, width = len(kinds), tables.closes.size(1)
        depth = torch.zeros(rows, dtype=torch.long, device=kinds.device)
        if not kinds.size(1):
            return depth, torch.zeros(rows, width, dtype=torch.long, device=kinds.device)
        opening = tables.opening[kinds]  # N T
        free = (opening - tables.closing[kinds]).cumsum(dim=1)
        # Closing a bracket that is not open does not count: the depth never falls below 0.
        below = (free - opening).cummin(dim=1).values.clamp(max=0)
        depths = free - below  # N T: after each token
        base = depths - opening  # before its own brackets: what it leaves below them stays as it was
        depth = depths[:, -1]
        level = depth[:, None] - torch.arange(width, device=kinds.device)  # N P
        # The last token that wrote this level: the last one that began below it.
        lowest = base.flip(1).cummin(dim=1).values.flip(1)  # from each token on
        place = (torch.searchsorted(lowest, level) - 1).clamp(min=0)  # N P
        which = (level - base.gather(1, place) - 1).clamp(0, tables.opens.size(1) - 1)
        brackets = tables.opens[kinds.gather(1, place), which]
        return depth, brackets.where(level > 0, 0)


PieceBrackets = tuple[tuple[int, ...], tuple[int, ...]]
"""The brackets that a piece closes, in order, and those that it leaves open, as pair numbers from 1."""


def brackets_of(piece: bytes, pairs: str) -> PieceBrackets | None:
    """The brackets of a piece. None if a bracket closes a different one opened in the same piece."""
    closes: list[int] = []
    opens: list[int] = []
    for byte in piece:
        place = pairs.find(chr(byte)) if byte < 128 else -1
        if place < 0:
            continue
        number = place // 2 + 1
        if place % 2 == 0:
            opens.append(number)
        elif not opens:
            closes.append(number)
        elif opens.pop() != number:
            return None
    return tuple(closes), tuple(opens)


def _padded(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    table = np.zeros((len(rows), max(1, *map(len, rows))), dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return torch.from_numpy(table).to(device)

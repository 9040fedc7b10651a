"""The brackets that every beam has open: the automaton of `rules/brackets.py` for searches of fixed shape.

The rule computes the open brackets anew from all tokens of a row. Here every beam has a stack that moves with
it, so that a step has a fixed shape and costs the same at every position. Tests check that both allow the
same tokens.
"""

import torch

from dragoman.decode.rules.brackets import BracketTables
from dragoman.shapes import Bool, Int, Tensor


class OpenBrackets:
    """Stacks for `sentences` with `beams` each, of up to `capacity` brackets: no sentence opens more than it
    has tokens left to close."""

    def __init__(
        self, tables: BracketTables, sentences: int, beams: int, capacity: int, device: torch.device
    ) -> None:
        self.tables, self.capacity, self.beams = tables, capacity, beams
        self.depth = torch.zeros(sentences, beams, dtype=torch.long, device=device)
        room = capacity + tables.opens.size(1)
        self.stack = torch.zeros(sentences, beams, room, dtype=torch.uint8, device=device)
        self._last = torch.arange(1, tables.closes.size(1) + 1, device=device)

    def admit(self, rows: Int[Tensor, "R"]) -> None:
        """Start new sentences in these slots, with nothing open."""
        self.depth.index_fill_(0, rows, 0)

    def allowed(self, room: Int[Tensor, "B"]) -> Bool[Tensor, "N V"]:
        """The pieces that may come next. `room` is the number of tokens that may follow them."""
        places = self.depth[:, :, None] - self._last  # B K P
        innermost = self.stack.gather(2, places.clamp(min=0)).long().where(places >= 0, 0)
        by_row = room.repeat_interleave(self.beams)
        return self.tables.allowed(self.depth.flatten(), innermost.flatten(0, 1), by_row)

    def follow(self, parents: Int[Tensor, "B K"], token: Int[Tensor, "B K"]) -> None:
        """Every beam takes over the stack of its parent and writes a token. Beams that are dead, or whose
        sentence is done, may write anything; they only have to stay inside the stack."""
        kind, opens = self.tables.kind[token], self.tables.opens
        stack = self.stack.gather(1, parents[:, :, None].expand_as(self.stack))
        base = self.depth.gather(1, parents) - self.tables.closing[kind]
        base = base.clamp(min=0, max=self.capacity)
        for number in range(opens.size(1)):  # zeros beyond what is opened are above the depth
            opened = opens[kind, number].to(stack.dtype)
            stack.scatter_(2, (base + number)[:, :, None], opened[:, :, None])
        self.stack.copy_(stack)
        self.depth.copy_(base + self.tables.opening[kind])

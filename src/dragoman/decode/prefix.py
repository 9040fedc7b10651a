"""The rule of translations whose beginning is given."""

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.decode.constraints import Constraints, agreeing
from dragoman.models.base import Vocab
from dragoman.shapes import Float, Int, Tensor
from dragoman.text.spelling import Spelling


class BeginsWith:
    """First the pieces of the head, then pieces that write the tail, then a piece that ends the word.

        head  ▁the   tail  ▁cat     before ▁      ▁  ▁c  ▁ca  ▁cat  ▁cats  ▁catalogue …
                                    before c      c  ca  cat  cats …
                                    before t      t  ts …        (without what goes on if the word ends)

    A table has a row for every place in a tail: which pieces agree with what is left of it. The place is the
    number of bytes written since the head, so it needs no memory.
    """

    def __init__(
        self, vocab: Vocab, constraints: Sequence[Constraints], spelling: Spelling, device: torch.device
    ) -> None:
        heads = [len(own.head) for own in constraints]
        places = max(len(own.tail) for own in constraints) + 2  # the last one: anything
        rows: dict[tuple[bytes, bool, bool], int] = {}
        where = np.zeros((len(constraints), places), dtype=np.int64)
        table = [np.ones(len(spelling), dtype=bool)]
        for sentence, own in enumerate(constraints):
            if not own.longest_prefix:
                continue
            for place in range(len(own.tail) + 1):
                key = (own.tail[place:], own.ends_word, own.goes_on)
                if key not in rows:
                    rows[key] = len(table)
                    table.append(agreeing(*key, spelling, vocab.eos_id))
                where[sentence, place] = rows[key]
        self.table = torch.from_numpy(np.stack(table)).to(device)  # R V
        self.where = torch.from_numpy(where).to(device)  # B P
        self.heads = torch.tensor(heads, device=device)  # B
        self.pieces = torch.zeros(len(constraints), max(heads) + 1, dtype=torch.long, device=device)  # B T
        for sentence, own in enumerate(constraints):
            self.pieces[sentence, : len(own.head)] = torch.tensor(own.head, dtype=torch.long, device=device)
        self.widths = torch.from_numpy(spelling.widths).to(device)  # V
        self.tails = torch.tensor([len(own.tail) + own.goes_on for own in constraints], device=device)  # B
        self.over = max(own.longest_prefix + 1 for own in constraints)

    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        free: Float[Tensor, "N V"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],
    ) -> Float[Tensor, "N V"]:
        length = prefix.size(1)
        if length >= self.over:
            return scores
        head = self.heads[sentences]  # N
        positions = torch.arange(length, device=prefix.device)
        written = (self.widths[prefix] * (positions >= head[:, None])).sum(dim=1)  # N
        row = self.where[sentences, written.clamp(max=self.where.size(1) - 1)]
        allowed = self.table[row.where(head <= length, 0)]  # N V
        forced = self.pieces[sentences, min(length, self.pieces.size(1) - 1)]  # N
        only = torch.arange(scores.size(1), device=scores.device) == forced[:, None]
        inside = head > length
        allowed = torch.where(inside[:, None], only, allowed)
        scores.masked_fill_(~allowed, -torch.inf)
        # Where another rule forbids all that agrees, the prefix wins.
        stuck = scores.amax(dim=1).isneginf() & (inside | (written < self.tails[sentences]))
        return scores.copy_(torch.where(stuck[:, None], free.masked_fill(~allowed, -torch.inf), scores))

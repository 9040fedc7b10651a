"""Required phrases: which have occurred, what is still needed, what may come next.

    tokens of a row   ▁the ▁new ▁yo            required   ▁new ▁york    ▁york
                           └── in progress: 1 of 2 ──┘

Everything is computed from the tokens of a row, so no state moves with the rows. A phrase counts as whole
words; at the end of a row it counts provisionally: the next token may continue its last word.

The need of a row is a number of tokens that suffices for all missing phrases, written one after the other.
The rule keeps need ≤ room, the tokens that the length limit leaves: tokens that would need more are
forbidden. While need = room > 0 there is always a token that continues a phrase and reduces the need, so
every phrase occurs in time. If phrases can share tokens, the need is more than the minimum: close to the
limit they are written one after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dragoman.decode.rules.constraints import Constraints, counted
from dragoman.models.base import Vocab
from dragoman.shapes import Bool, Float, Int, Tensor

_NO_PIECE, _NOT_YET = -1, -2  # after the end of a sequence; after the end of a row
FAR = 1 << 20
"""Larger than any need: for sequences that are not needed."""


@dataclass(frozen=True)
class PhraseProgress:
    """The progress of rows, twice: if the last word of the row is complete, and if it continues.

    R requirements of a sentence; C sequences, each for one of them.
    """

    missing: Int[Tensor, "N R"]
    """Occurrences still needed, if the last word is complete."""
    need: Int[Tensor, "N 2"]
    """Tokens that suffice for all missing phrases if none is in progress; less `spared` after a boundary."""
    spared: Int[Tensor, "N 2"]
    pieces: Int[Tensor, "N E"]
    """E = 2C: the next token of each sequence."""
    then: Int[Tensor, "N E"]
    """The need after that token; `FAR` if the sequence is not needed."""


class Required:
    """The required phrases of the sentences of a batch, as padded tensors, and the resulting rules."""

    def __init__(
        self,
        vocab: Vocab,
        constraints: Sequence[Constraints],
        limits: Int[Tensor, "B"],
    ) -> None:
        device, spelling = limits.device, next(own.spelling for own in constraints if own.required)
        assert spelling is not None, "constraints know what pieces write"
        self.vocab, self.limits, self.space_id = vocab, limits, spelling.space_id
        self.may_continue = torch.from_numpy(spelling.may_continue).to(device)  # V
        self.may_be_continued = torch.from_numpy(spelling.may_be_continued).to(device)  # V
        self.kind = 2 * self.may_continue.long() + ~self.may_be_continued  # V: see `after`
        wanted = [counted(own.required) for own in constraints]
        most = max(len(own) for own in wanted)
        rows = [[(r, s) for r, (ways, _) in enumerate(own) for s in ways] for own in wanted]
        width = max(len(row) for row in rows)
        longest = max(len(sequence) for row in rows for _, sequence in row)
        self.sequences = torch.full((len(rows), width, longest), _NO_PIECE, device=device)  # B C L
        self.owner = torch.zeros(len(rows), width, dtype=torch.long, device=device)  # B C
        self.times = torch.zeros(len(rows), most, dtype=torch.long, device=device)  # B R
        for b, (own, row) in enumerate(zip(wanted, rows, strict=True)):
            self.times[b, : len(own)] = torch.tensor([times for _, times in own], device=device)
            for c, (r, sequence) in enumerate(row):
                self.sequences[b, c, : len(sequence)] = torch.tensor(sequence, device=device)
                self.owner[b, c] = r
        self.lengths = (self.sequences != _NO_PIECE).sum(dim=2)  # B C
        first = self.sequences[:, :, 0].clamp(min=0)
        last = self.sequences.gather(2, (self.lengths - 1).clamp(min=0)[:, :, None])[:, :, 0].clamp(min=0)
        self.needs_start = self.may_continue[first]  # B C: does it need a boundary before it
        self.needs_end = self.may_be_continued[last]  # B C: and after it
        # The cost of a whole sequence: its tokens, and a space if it cannot follow a word directly.
        whole = (self.lengths + self.needs_start).where(self.lengths > 0, FAR)  # B C
        self.cost = self._least(whole, self.owner)  # B R
        self.cost = self.cost.where(self.times > 0, 0)

    def progress(self, prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]) -> PhraseProgress:
        ends, held, written = self._matches(prefix, sentences)
        owner, times = self.owner[sentences], self.times[sentences]  # N C, N R
        kept, inside = (
            (times - _places(places, owner, times.size(1))).clamp(min=0) for places in (ends | held, ends)
        )
        holding = (inside > kept).any(dim=1, keepdim=True)  # N 1: a needed phrase ends the row
        following = self._piece(written, sentences)
        # Continuing the word would lose the phrase just completed: start again after it.
        begun = written.masked_fill(holding & self.may_continue[following], 0)
        if_ends = self._ahead(begun, kept, prefix, sentences)
        if_goes_on = self._ahead(written, inside, prefix, sentences)
        need, spared, pieces, then = (
            torch.cat(both, dim=1) for both in zip(if_ends, if_goes_on, strict=True)
        )
        return PhraseProgress(kept, need, spared, pieces, then)

    def _ahead(
        self,
        begun: Int[Tensor, "N C"],
        missing: Int[Tensor, "N R"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],
    ) -> tuple[Int[Tensor, "N 1"], Int[Tensor, "N 1"], Int[Tensor, "N C"], Int[Tensor, "N C"]]:
        """Need, tokens spared by a boundary, the next token of every sequence, and the need after it."""
        owner, lengths = self.owner[sentences], self.lengths[sentences]
        space = self.needs_start[sentences].long()  # N C: one more token directly after a word
        cost = self.cost[sentences]
        need = (cost * missing).sum(dim=1, keepdim=True)  # N 1
        wanted = (missing.gather(1, owner) > 0) & (lengths > 0)
        spared = (cost.gather(1, owner) - lengths).where(wanted, 0).amax(dim=1, keepdim=True).clamp(min=0)
        at_boundary = (
            ~self.may_be_continued[prefix[:, -1:]] if prefix.size(1) else torch.ones_like(spared).bool()
        )
        done = torch.where(begun > 0, begun + space, at_boundary * space)
        piece = self._piece(begun, sentences).where((begun > 0) | at_boundary | (space == 0), self.space_id)
        then = need - cost.gather(1, owner) + lengths + space - done - 1
        return need, spared, piece, then.where(wanted, FAR)

    def _piece(self, place: Int[Tensor, "N C"], sentences: Int[Tensor, "N"]) -> Int[Tensor, "N C"]:
        """The token of each sequence at a position; arbitrary if there is none."""
        sequences = self.sequences[sentences]
        return sequences.gather(2, place.clamp(max=sequences.size(2) - 1)[:, :, None])[:, :, 0].clamp(min=0)

    @staticmethod
    def after(progress: PhraseProgress) -> Int[Tensor, "N 4"]:
        """The need after a token of each kind that continues no phrase: one that ends the last word and may
        be continued, one that ends it and is followed by a boundary, and both if the word continues."""
        return torch.stack([progress.need, progress.need - progress.spared], dim=2).flatten(1)

    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        free: Float[Tensor, "N V"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],
    ) -> Float[Tensor, "N V"]:
        """The rule (an `Insistence`): no early `</s>`, and no token for which the room would not suffice."""
        progress = self.progress(prefix, sentences)
        room = (self.limits[sentences] - 2 - prefix.size(1))[:, None]  # the room after one more token
        fits = progress.then <= room
        # A token is listed at least once; if it does not fit, padding takes its place.
        phrases = torch.zeros_like(scores, dtype=torch.bool)
        phrases.scatter_(1, progress.pieces.where(fits, self.vocab.pad_id), fits)
        phrases[:, self.vocab.pad_id] = False
        allowed = (self.after(progress) <= room)[:, self.kind] | phrases
        met = (progress.missing == 0).all(dim=1)
        allowed[:, self.vocab.eos_id] = met
        scores.masked_fill_(~allowed, -torch.inf)
        stuck = scores.amax(dim=1).isneginf() & ~met  # another rule forbids what is needed
        return scores.copy_(torch.where(stuck[:, None], free.masked_fill(~phrases, -torch.inf), scores))

    def _matches(
        self, prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> tuple[Bool[Tensor, "N C P"], Bool[Tensor, "N C P"], Int[Tensor, "N C"]]:
        """For every sequence: the positions where it occurs; where it occurs unless the last word continues;
        and how many of its tokens the row ends with."""
        sequences, lengths = self.sequences[sentences], self.lengths[sentences]
        rows, length = prefix.shape
        longest = sequences.size(2)
        padded = torch.nn.functional.pad(prefix, (0, longest), value=_NOT_YET)
        windows = padded.unfold(1, longest, 1)[:, :length]  # N P L, P = T
        beyond = sequences == _NO_PIECE  # N C L
        equal = (windows[:, None] == sequences[:, :, None]) | beyond[:, :, None]  # N C P L
        so_far = (equal | (windows == _NOT_YET)[:, None]).all(dim=3)  # N C P
        whole = equal.all(dim=3) & (lengths > 0)[:, :, None]
        free_before = torch.ones(rows, length, dtype=torch.bool, device=prefix.device)
        free_before[:, 1:] = ~self.may_be_continued[prefix[:, :-1]]
        begins = free_before[:, None] | ~self.needs_start[sentences][:, :, None]  # N C P
        place = torch.arange(length, device=prefix.device)
        end = place + lengths[:, :, None]  # N C P: the position after the match
        free_after = torch.zeros(rows, length + 1, dtype=torch.bool, device=prefix.device)
        free_after[:, :length] = ~self.may_continue[prefix]
        after = free_after[:, None].expand(-1, end.size(1), -1).gather(2, end.clamp(max=length))
        ends = after | ~self.needs_end[sentences][:, :, None]
        found = whole & begins
        partial = so_far & begins & (end > length)
        written = ((length - place) * partial).amax(dim=2) if length else torch.zeros_like(lengths)
        return found & ends, found & ~ends & (end == length), written

    @staticmethod
    def _least(values: Int[Tensor, "B C"], owner: Int[Tensor, "B C"]) -> Int[Tensor, "B R"]:
        least = torch.full((len(values), int(owner.max()) + 1), FAR, device=values.device)
        return least.scatter_reduce(1, owner, values, "amin")


def _places(found: Bool[Tensor, "N C P"], owner: Int[Tensor, "N C"], count: int) -> Int[Tensor, "N R"]:
    """The number of positions at which each requirement is met; two sequences at one position count once."""
    whose = torch.nn.functional.one_hot(owner, count).bool()  # N C R
    return (found[:, :, None] & whose[:, :, :, None]).any(dim=1).sum(dim=2)

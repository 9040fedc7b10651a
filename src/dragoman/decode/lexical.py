"""Phrases that a translation must have: which are there, what is still needed, what may come next.

    pieces of a row   ▁the ▁new ▁yo            required   ▁new ▁york    ▁york
                           └── in progress: 1 of 2 ──┘

Everything is read off the pieces of a row, so nothing has to move along with the rows. A phrase counts as whole
words; at the end of a row it is there for the time being, since the next piece may go on with its last word.

`need` is a number of pieces that certainly suffices for what is missing. A search keeps need ≤ room, the pieces
that the length limit leaves: while there is plenty of room anything may come, then only what ends a word, and
in the end only a piece that makes `need` smaller. There always is one, so every phrase comes in time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dragoman.decode.constraints import Constraints, counted
from dragoman.models.base import Vocab
from dragoman.shapes import Bool, Float, Int, Tensor
from dragoman.text.spelling import Spelling

_NO_PIECE, _NOT_YET = -1, -2  # after the end of a sequence; after the end of a row
FAR = 1 << 20
"""More pieces than any need: of what is not wanted."""


@dataclass(frozen=True)
class Progress:
    """Where rows stand. R requirements of a sentence, C sequences, each of which serves one of them."""

    missing: Int[Tensor, "N R"]
    """Places still needed, if the row's last word is at its end."""
    missing_inside: Int[Tensor, "N R"]
    """The same if the last word goes on."""
    keep: Int[Tensor, "N C"]
    """Pieces that a sequence still takes, if the row's last word is at its end; `FAR` where not wanted."""
    drop: Int[Tensor, "N C"]
    """The same if the last word goes on."""
    keep_next: Int[Tensor, "N C"]
    """The piece by which a sequence goes on, in the first case."""
    drop_next: Int[Tensor, "N C"]


def pieces_for(own: Constraints, spelling: Spelling) -> int:
    """Pieces that suffice for all that a sentence requires, a space before each phrase that needs one."""
    return sum(min(len(way) + int(spelling.may_continue[way[0]]) for way in ways) for ways in own.required)


class Required:
    """The required phrases of the sentences of a batch, as padded tensors, and the rules that follow."""

    def __init__(
        self,
        vocab: Vocab,
        constraints: Sequence[Constraints],
        spelling: Spelling,
        limits: Int[Tensor, "B"],
    ) -> None:
        device = limits.device
        self.vocab, self.limits, self.space_id = vocab, limits, spelling.space_id
        self.may_continue = torch.from_numpy(spelling.may_continue).to(device)  # V
        self.may_be_continued = torch.from_numpy(spelling.may_be_continued).to(device)  # V
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
        # The cost of a sequence from nothing: its pieces, and a space where it cannot follow a word at once.
        whole = (self.lengths + self.needs_start).where(self.lengths > 0, FAR)  # B C
        self.cost = self._least(whole, self.owner)  # B R
        self.cost = self.cost.where(self.times > 0, 0)

    def progress(self, prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]) -> Progress:
        ends, held, written = self._matches(prefix, sentences)
        owner, times = self.owner[sentences], self.times[sentences]  # N C, N R
        counts = [_places(places, owner, times.size(1)) for places in (ends, ends | held)]
        inside, kept = ((times - count).clamp(min=0) for count in counts)
        holding = (inside > kept).any(dim=1, keepdim=True)  # N 1: a phrase that is needed ends the row
        sequences, lengths = self.sequences[sentences], self.lengths[sentences]
        start = self.needs_start[sentences]  # N C
        if prefix.size(1):
            at_boundary = ~self.may_be_continued[prefix[:, -1:]]  # N 1
        else:
            at_boundary = torch.ones_like(holding)

        def ahead(done: Int[Tensor, "N C"], missing: Int[Tensor, "N R"]) -> tuple[Tensor, Tensor]:
            begun = done > 0
            place = done.clamp(max=sequences.size(2) - 1)[:, :, None]
            piece = sequences.gather(2, place)[:, :, 0]
            piece = piece.where(begun | at_boundary | ~start, self.space_id)
            left = lengths + start - torch.where(begun, done + start, (at_boundary & start).long())
            wanted = (missing.gather(1, owner) > 0) & (lengths > 0)
            return left.where(wanted, FAR), piece.clamp(min=0)

        following = sequences.gather(2, written.clamp(max=sequences.size(2) - 1)[:, :, None])[:, :, 0]
        breaks = holding & self.may_continue[following.clamp(min=0)]
        keep, keep_next = ahead(written.masked_fill(breaks, 0), kept)
        drop, drop_next = ahead(written, inside)
        return Progress(kept, inside, keep, drop, keep_next, drop_next)

    def need(self, progress: Progress, sentences: Int[Tensor, "N"]) -> tuple[Tensor, Tensor]:
        """Pieces that suffice, if the last word ends (first) or goes on (second). Both N."""
        cost, owner = self.cost[sentences], self.owner[sentences]

        def total(missing: Int[Tensor, "N R"], left: Int[Tensor, "N C"]) -> Int[Tensor, "N"]:
            saved = (cost.gather(1, owner) - left).amax(dim=1).clamp(min=0)
            return (cost * missing).sum(dim=1) - saved

        return total(progress.missing, progress.keep), total(progress.missing_inside, progress.drop)

    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        free: Float[Tensor, "N V"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],
    ) -> Float[Tensor, "N V"]:
        """The rule (an `Insistence`): no `</s>` too early, and nothing for which the room would not do."""
        progress = self.progress(prefix, sentences)
        cost = self.cost[sentences]
        after = self.limits[sentences] - 2 - prefix.size(1)  # the room that one further piece leaves
        anything = (cost * progress.missing_inside).sum(dim=1) <= after
        boundary = (cost * progress.missing).sum(dim=1) <= after
        pieces, advancing = self.advancing(progress, sentences)
        allowed = anything[:, None] | (boundary[:, None] & ~self.may_continue)  # N V
        allowed = allowed.scatter(1, pieces, advancing | allowed.gather(1, pieces))
        met = (progress.missing == 0).all(dim=1)
        allowed[:, self.vocab.eos_id] = met
        scores.masked_fill_(~allowed, -torch.inf)
        stuck = scores.amax(dim=1).isneginf() & ~met  # another rule forbids what is needed: this one wins
        needed = torch.zeros_like(allowed).scatter(1, pieces, advancing)
        return scores.copy_(torch.where(stuck[:, None], free.masked_fill(~needed, -torch.inf), scores))

    def advancing(
        self, progress: Progress, sentences: Int[Tensor, "N"]
    ) -> tuple[Int[Tensor, "N C2"], Bool[Tensor, "N C2"]]:
        """Pieces, and whether each makes the need of its row smaller. What does not is replaced by one that
        does, or by padding, so that no piece is listed with both answers."""
        cost = self.cost[sentences].gather(1, self.owner[sentences])  # N C
        kept, dropped = self.need(progress, sentences)
        least = torch.minimum(kept, dropped)[:, None]

        def best(left: Int[Tensor, "N C"], need: Int[Tensor, "N"]) -> Bool[Tensor, "N C"]:
            saved = (cost - left).amax(dim=1, keepdim=True).clamp(min=0)
            return (left < FAR) & (cost - left == saved) & (need[:, None] == least)

        good = torch.cat([best(progress.keep, kept), best(progress.drop, dropped)], dim=1)
        pieces = torch.cat([progress.keep_next, progress.drop_next], dim=1)
        return pieces.where(good, self.vocab.pad_id), good

    def _matches(
        self, prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> tuple[Bool[Tensor, "N C P"], Bool[Tensor, "N C P"], Int[Tensor, "N C"]]:
        """For every sequence: the places where it is there; where it is there unless the last word goes on;
        and how many of its pieces the row ends with."""
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
        end = place + lengths[:, :, None]  # N C P: the place after the match
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
    """At how many places each requirement is met; two sequences at one place count once."""
    whose = torch.nn.functional.one_hot(owner, count).bool()  # N C R
    return (found[:, :, None] & whose[:, :, :, None]).any(dim=1).sum(dim=2)

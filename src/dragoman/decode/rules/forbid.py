"""Rules that forbid tokens: −∞ for forbidden ones, everything else unchanged."""

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.decode.rules.constraints import Constraints, agreeing
from dragoman.models.base import Vocab
from dragoman.shapes import Float, Int, Tensor
from dragoman.text.automaton import forbidding
from dragoman.text.piece_bytes import Spelling


class BeginsWith:
    """First the tokens of the head, then tokens that spell the tail, then a token that ends the word.

        head  ▁the   tail  ▁cat     before ▁      ▁  ▁c  ▁ca  ▁cat  ▁cats  ▁catalogue …
                                    before c      c  ca  cat  cats …
                                    before t      t  ts …        (not ts … if the word must end)

    A table has a row for every position in a tail: the tokens that match the rest of it. The position is the
    number of bytes since the head, so no state is needed.
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
        # If another rule forbids all matching tokens, the prefix takes precedence.
        stuck = scores.amax(dim=1).isneginf() & (inside | (written < self.tails[sentences]))
        return scores.copy_(torch.where(stuck[:, None], free.masked_fill(~allowed, -torch.inf), scores))


class NoEndBefore:
    """Forbid `</s>` before a sentence has its minimum length."""

    def __init__(self, vocab: Vocab, shortest: Int[Tensor, "B"]) -> None:
        self.eos_id, self.shortest = vocab.eos_id, shortest

    def __call__(
        self, scores: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> Float[Tensor, "N V"]:
        early = prefix.size(1) < self.shortest[sentences]
        scores[:, self.eos_id] = scores[:, self.eos_id].masked_fill(early, -torch.inf)
        return scores


class NoRepeatedNgram:
    """Forbid repeated n-grams (Paulus et al. 2018, section 2.5, with n = 3)."""

    def __init__(self, vocab: Vocab, n: int) -> None:
        self.pad_id, self.n = vocab.pad_id, n

    def __call__(
        self,
        scores: Float[Tensor, "N V"],
        prefix: Int[Tensor, "N T"],
        sentences: Int[Tensor, "N"],  # noqa: ARG002
    ) -> Float[Tensor, "N V"]:
        if prefix.size(1) < self.n:
            return scores
        ngrams = prefix.unfold(1, self.n, 1)  # N T−n+1 n
        context = prefix[:, prefix.size(1) - self.n + 1 :]  # N n−1
        seen = (ngrams[:, :, :-1] == context[:, None]).all(dim=2)
        # Padding is always forbidden, so it is a neutral index.
        banned = ngrams[:, :, -1].where(seen, self.pad_id)
        return scores.scatter_(1, banned, -torch.inf)


class NoPhrases:
    """Phrases that may not occur as whole words, however they are tokenized.

    One automaton for each set of phrases reads the text of the rows. A token that completes a phrase is
    forbidden, and so is `</s>` after a phrase at the end. The last token before the length limit may not be
    one after which `</s>` is forbidden.
    """

    def __init__(
        self,
        vocab: Vocab,
        phrases: Sequence[Sequence[str]],
        spelling: Spelling,
        limits: Int[Tensor, "B"],
    ) -> None:
        device = limits.device
        sets = list(dict.fromkeys(tuple(own) for own in phrases))
        after: list[np.ndarray] = []
        finds: list[np.ndarray] = []
        first: dict[tuple[str, ...], int] = {}
        states, self.memory = 0, 1
        for own in sets:
            first[own] = states
            if own:
                read = forbidding(own, spelling, vocab.eos_id)
                banned = read.finds
                after.append(read.after + states)
                self.memory = max(self.memory, read.memory)
            else:  # a single absorbing state
                after.append(np.full((1, len(spelling)), states, dtype=np.int32))
                banned = np.zeros((1, len(spelling)), dtype=bool)
            finds.append(banned)
            states += len(banned)
        self.after = torch.from_numpy(np.concatenate(after)).to(device)  # Z V
        self.banned = torch.from_numpy(np.concatenate(finds)).to(device)  # Z V
        self.holds = self.banned[:, vocab.eos_id].clone()  # Z
        self.last = limits - 2  # B: tokens before the last one
        self.last_of_any = set(self.last.tolist())
        self.first = torch.tensor([first[tuple(own)] for own in phrases], device=device)  # B

    def __call__(
        self, scores: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"], sentences: Int[Tensor, "N"]
    ) -> Float[Tensor, "N V"]:
        state = self.first[sentences]
        for piece in prefix[:, max(0, prefix.size(1) - self.memory) :].unbind(dim=1):
            state = self.after[state, piece].long()
        scores.masked_fill_(self.banned[state], -torch.inf)
        if prefix.size(1) in self.last_of_any:
            at_last = self.last[sentences] == prefix.size(1)
            scores.masked_fill_(self.holds[self.after[state].long()] & at_last[:, None], -torch.inf)
        return scores

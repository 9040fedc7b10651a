"""Rules that forbid: −∞ for what may not follow, everything else as it was."""

from collections.abc import Sequence

import numpy as np
import torch

from dragoman.models.base import Vocab
from dragoman.shapes import Float, Int, Tensor
from dragoman.text.automaton import forbidding
from dragoman.text.spelling import Spelling


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


class NoRepeatedNgram:
    """No n pieces come twice in the same order (Paulus et al. 2018, section 2.5, with n = 3)."""

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
        # Padding is forbidden anyway, so it takes what is not forbidden here.
        banned = ngrams[:, :, -1].where(seen, self.pad_id)
        return scores.scatter_(1, banned, -torch.inf)


class NoPhrases:
    """Phrases that may not come as whole words, however they are cut into pieces.

    One automaton for each set of phrases reads the text of the rows; a piece that completes a phrase is
    forbidden, `</s>` too where a phrase stands at the end. The last piece before the length limit may not be
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
            else:  # a single state that nothing leaves
                after.append(np.full((1, len(spelling)), states, dtype=np.int32))
                banned = np.zeros((1, len(spelling)), dtype=bool)
            finds.append(banned)
            states += len(banned)
        self.after = torch.from_numpy(np.concatenate(after)).to(device)  # Z V
        self.banned = torch.from_numpy(np.concatenate(finds)).to(device)  # Z V
        self.holds = self.banned[:, vocab.eos_id].clone()  # Z
        self.last = limits - 2  # B: pieces before the last one
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

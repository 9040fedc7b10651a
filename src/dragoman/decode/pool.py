"""Beam search whose every decision is a tensor: nothing of a step waits for the host.

The rules are those of `beam.py`, and tests hold the two to the same hypotheses. Here a sentence keeps a place
in tensors of fixed shape until it is collected, so that a step can be recorded once and replayed:

    logits ─▶ 2K best extensions ─┬─ ended ─▶ the n best so far, with the path of each
                                  └─ the K first that go on ─▶ sums, last pieces, ancestors

Nothing is moved but numbers of beams. A sentence that is done goes on turning in its place, unheard.
"""

from dataclasses import dataclass

import torch

from dragoman.decode.allocate import best_pieces
from dragoman.decode.config import SearchConfig
from dragoman.decode.ended import Ended
from dragoman.models.base import Vocab
from dragoman.shapes import Float, Int, Tensor


def is_plain(config: SearchConfig) -> bool:
    """Whether this is a plain beam search, which needs no look at the words so far."""
    return (
        config.method == "beam"
        and config.groups == 1
        and not config.record
        and config.coverage == 0
        and config.no_repeat_ngram == 0
        and config.repetition_penalty == 1
    )


@dataclass
class Found:
    """The n best ended hypotheses of every sentence: rank, −∞ for none; where the piece before the last one
    stands, the log-probability of `</s>`, and whether the limit has ended it."""

    rank: Float[Tensor, "B n"]
    length: Int[Tensor, "B n"]
    path: Int[Tensor, "B n C"]
    eos: Float[Tensor, "B n"]
    cut: Tensor  # B n

    def better(self, other: "Found") -> "Found":
        """The n best of both, in order."""
        rank, chosen = torch.cat([self.rank, other.rank], dim=1).topk(self.rank.size(1), dim=1)
        length, eos, cut = (
            torch.cat(parts, dim=1).gather(1, chosen)
            for parts in ((self.length, other.length), (self.eos, other.eos), (self.cut, other.cut))
        )
        paths = torch.cat([self.path, other.path], dim=1)
        path = paths.gather(1, chosen[:, :, None].expand(-1, -1, paths.size(2)))
        return Found(rank, length, path, eos, cut)


class Pool:
    """The searches of so many sentences, each at its own position."""

    def __init__(
        self,
        vocab: Vocab,
        config: SearchConfig,
        sentences: int,
        capacity: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.vocab, self.config = vocab, config
        beams, best = config.beam, config.n_best
        whole = {"dtype": torch.long, "device": device}
        real = {"dtype": dtype, "device": device}
        self.last = torch.zeros(sentences, beams, **whole)
        self.sums = torch.zeros(sentences, beams, **real)
        self.position = torch.zeros(sentences, **whole)
        self.ancestors = torch.zeros(sentences, beams, capacity, **whole)
        self.limits = torch.ones(sentences, **whole)
        self.shortest = torch.zeros(sentences, **whole)
        self.ended = torch.zeros(sentences, **whole)
        self.done = torch.ones(sentences, dtype=torch.bool, device=device)
        self.tokens = torch.zeros(sentences, capacity, beams, **whole)
        self.scores = torch.zeros(sentences, capacity, beams, **real)
        self.found = Found(
            torch.zeros(sentences, best, **real),
            torch.zeros(sentences, best, **whole),
            torch.zeros(sentences, best, capacity, **whole),
            torch.zeros(sentences, best, **real),
            torch.zeros(sentences, best, dtype=torch.bool, device=device),
        )
        self._rows = torch.arange(sentences, device=device)
        self._beams = torch.arange(beams, device=device)
        self._first = torch.zeros(beams, **real).masked_fill(self._beams > 0, -torch.inf)
        self._never = torch.tensor([vocab.pad_id, vocab.bos_id], device=device)
        # Entry n: what a sum of n pieces is multiplied with to be ranked.
        weights = [0.0, *(config.rank(1.0, length) for length in range(1, capacity + 1))]
        self._weights = torch.tensor(weights, **real)

    def admit(self, rows: Int[Tensor, "R"], limits: Int[Tensor, "R"], shortest: Int[Tensor, "R"]) -> None:
        """New sentences begin in these places. Of their beams only the first is alive."""
        self.last.index_fill_(0, rows, self.vocab.bos_id)
        self.sums.index_copy_(0, rows, self._first.expand(len(rows), -1))
        self.position.index_fill_(0, rows, 0)
        self.ancestors[:, :, 0].index_copy_(0, rows, self._beams.expand(len(rows), -1))
        self.limits.index_copy_(0, rows, limits)
        self.shortest.index_copy_(0, rows, shortest)
        self.ended.index_fill_(0, rows, 0)
        self.done.index_fill_(0, rows, False)
        self.found.rank.index_fill_(0, rows, -torch.inf)

    def step(self, logits: Float[Tensor, "N V"]) -> None:
        """One further piece for every beam; `logits` are written into."""
        eos_id, beams = self.vocab.eos_id, self.config.beam
        total = logits.logsumexp(dim=1, keepdim=True)
        eos = (logits[:, eos_id] - total[:, 0]).view(-1, beams)
        logits.index_fill_(1, self._never, -torch.inf)
        early = (self.position < self.shortest).repeat_interleave(beams)
        logits[:, eos_id].masked_fill_(early, -torch.inf)
        values, pieces = best_pieces(logits, min(2 * beams, logits.size(1)))
        own = (values - total).view(len(self.sums), -1)  # B K·2K
        sums, flat = (self.sums.repeat_interleave(values.size(1), dim=1) + own).topk(2 * beams, dim=1)
        parents, token = flat // values.size(1), pieces.view_as(own).gather(1, flat)
        own = own.gather(1, flat)
        ends = token == eos_id
        at_limit = self.position + 1 == self.limits
        self._set_aside(at_limit, sums, parents, own, ends, eos)
        going, places = sums.masked_fill(ends, -torch.inf).topk(beams, dim=1)
        self._stop(at_limit, going)
        self._go_on(going, *(x.gather(1, places) for x in (parents, token, own)))

    def _set_aside(
        self,
        at_limit: Tensor,
        sums: Float[Tensor, "B C"],
        parents: Int[Tensor, "B C"],
        own: Float[Tensor, "B C"],
        ends: Tensor,
        eos: Float[Tensor, "B K"],
    ) -> None:
        """What ends among the K first extensions, or at its greatest length every beam."""
        beams, cut = self.config.beam, at_limit[:, None]
        best = sums[:, :beams]
        best = torch.where(cut, self.sums + eos, best.masked_fill(~ends[:, :beams], -torch.inf))
        parent = torch.where(cut, self._beams, parents[:, :beams])
        length = (self.position + 1)[:, None].expand_as(parent)
        rank = (best * self._weights[length]).masked_fill(self.done[:, None], -torch.inf)
        path = self.ancestors.gather(1, parent[:, :, None].expand_as(self.ancestors))
        eos = torch.where(cut, eos, own[:, :beams])
        better = self.found.better(Found(rank, length, path, eos, cut.expand_as(parent)))
        for kept, new in zip(vars(self.found).values(), vars(better).values(), strict=True):
            kept.copy_(new)
        self.ended += (ends[:, :beams] & best.isfinite()).sum(dim=1)

    def _stop(self, at_limit: Tensor, going: Float[Tensor, "B K"]) -> None:
        self.done |= at_limit
        if self.config.stop == "limit":
            return
        last = self.found.rank[:, -1]
        stop = last >= going[:, 0] * self._weights[self.limits]  # nothing that lives can come before it
        if self.config.stop == "complete":
            stop |= self.ended >= self.config.beam
        self.done |= stop & last.isfinite()

    def _go_on(
        self,
        sums: Float[Tensor, "B K"],
        parents: Int[Tensor, "B K"],
        token: Int[Tensor, "B K"],
        own: Float[Tensor, "B K"],
    ) -> None:
        self.tokens[self._rows, self.position] = token
        self.scores[self._rows, self.position] = own
        self.last.copy_(token)
        self.sums.copy_(sums)
        self.position += ~self.done
        ancestors = self.ancestors.gather(1, parents[:, :, None].expand_as(self.ancestors))
        self.ancestors.copy_(ancestors)
        here = self.position[:, None, None].expand(-1, len(self._beams), 1)
        self.ancestors.scatter_(2, here, self._beams[:, None].expand_as(here))

    def results(self, rows: Int[Tensor, "R"]) -> list[list[Ended]]:
        """The hypotheses of sentences that are done, best first. Waits for the device."""
        found, tokens, scores = self.found, self.tokens[rows], self.scores[rows]  # R C K
        # The piece at position t was chosen into the place that its beam had at position t + 1.
        path = found.path[rows][:, :, 1:].transpose(1, 2)  # R C−1 n
        ids, token_scores = (x[:, :-1].gather(2, path).transpose(1, 2).tolist() for x in (tokens, scores))
        ends = (x[rows].tolist() for x in (found.rank, found.length, found.eos, found.cut))
        results: list[list[Ended]] = []
        for *ended, row_ids, row_scores in zip(*ends, ids, token_scores, strict=True):
            hypotheses = [
                Ended(
                    (*its_ids[: length - 1], self.vocab.eos_id),
                    (*its_scores[: length - 1], eos),
                    "length" if cut else "stop",
                )
                for rank, length, eos, cut, its_ids, its_scores in zip(
                    *ended, row_ids, row_scores, strict=True
                )
                if rank > -float("inf")
            ]
            results.append(sorted(hypotheses, key=lambda one: one.score(self.config), reverse=True))
        return results

"""Beam search with all decisions as tensor operations: no step waits for the host.

The rules are those of `beam.py`; tests check that both give the same hypotheses. Here a sentence keeps a slot
in tensors of fixed shape until it is collected, so that a step can be captured once and replayed:

    logits ─▶ 2K best extensions ─┬─ ended ─▶ the n best so far, and where each of them ends
                                  └─ first K that continue ──▶ sums, last tokens, ancestors

Only beam indices move. A finished sentence stays in its slot, and its further steps are ignored.
"""

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch

from dragoman.decode.gpu.open_brackets import OpenBrackets
from dragoman.decode.search.beam_allocation import best_pieces
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import Ended
from dragoman.kernels import usable
from dragoman.models.base import Vocab
from dragoman.shapes import Bool, Float, Int, Tensor

_WIDEST_FOR_KERNELS = 8  # most beams; more would need too many registers


def can_run(config: BeamSearch) -> bool:
    """Whether this is a plain beam search, or one that keeps brackets valid."""
    return (
        config.groups == 1
        and not config.record
        and not config.shortlist
        and config.coverage == 0
        and config.no_repeat_ngram == 0
        and config.repetition_penalty == 1
    )


class Follower(Protocol):
    """Holds something for every beam, which moves with it."""

    def follow(self, parents: Int[Tensor, "B K"], token: Int[Tensor, "B K"]) -> None:
        """Every beam continues one of these beams of its sentence with a token."""
        ...


class BeamPool:
    """The searches of several sentences, each at its own position.

    For every position the chosen tokens are kept, with the beam that each extends and its log-probability. An
    ended hypothesis is one number: its length, the beam that it extends, and whether the limit ended it; its
    tokens are found by walking back.
    """

    def __init__(
        self,
        vocab: Vocab,
        config: BeamSearch,
        sentences: int,
        capacity: int,
        dtype: torch.dtype,
        device: torch.device,
        brackets: OpenBrackets | None = None,
        followers: Sequence[Follower] = (),
    ) -> None:
        self.vocab, self.config, self.brackets = vocab, config, brackets
        self.followers = (*followers, *([] if brackets is None else [brackets]))
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
        self.parents = torch.zeros(sentences, capacity, beams, **whole)
        self.scores = torch.zeros(sentences, capacity, beams, **real)
        self.found_rank = torch.zeros(sentences, best, **real)
        self.found_at = torch.zeros(sentences, best, **whole)
        self.found_eos = torch.zeros(sentences, best, **real)
        self._rows = torch.arange(sentences, device=device)
        self._beams = torch.arange(beams, device=device)
        self._first = torch.zeros(beams, **real).masked_fill(self._beams > 0, -torch.inf)
        self._never = torch.tensor([vocab.pad_id, vocab.bos_id], device=device)
        # Entry n: factor on a sum of n tokens for ranking.
        weights = [0.0, *(config.rank(1.0, length) for length in range(1, capacity + 1))]
        self._weights = torch.tensor(weights, **real)
        self._by_kernels = usable(self.sums) and beams <= _WIDEST_FOR_KERNELS and vocab.tgt_size >= 2 * beams

    def admit(self, rows: Int[Tensor, "R"], limits: Int[Tensor, "R"], shortest: Int[Tensor, "R"]) -> None:
        """Start new sentences in these slots. Only the first of their beams is live."""
        self.last.index_fill_(0, rows, self.vocab.bos_id)
        self.sums.index_copy_(0, rows, self._first.expand(len(rows), -1))
        self.position.index_fill_(0, rows, 0)
        self.ancestors[:, :, 0].index_copy_(0, rows, self._beams.expand(len(rows), -1))
        self.limits.index_copy_(0, rows, limits)
        self.shortest.index_copy_(0, rows, shortest)
        self.ended.index_fill_(0, rows, 0)
        self.done.index_fill_(0, rows, False)
        self.found_rank.index_fill_(0, rows, -torch.inf)
        if self.brackets is not None:
            self.brackets.admit(rows)

    def step(self, logits: Float[Tensor, "N V"]) -> None:
        """One more token for every beam; overwrites `logits`."""
        here = self.position.clone()
        (self._step_by_kernels if self._by_kernels else self._step_plainly)(logits)
        if self.followers:
            parents, token = (history[self._rows, here] for history in (self.parents, self.tokens))
            for follower in self.followers:
                follower.follow(parents, token)

    def _step_plainly(self, logits: Float[Tensor, "N V"]) -> None:
        beams, eos_id = self.config.beam, self.vocab.eos_id
        values, pieces, eos = self._best(logits)
        own = values.view(len(self.sums), -1)  # B K·2K
        sums, flat = (self.sums.repeat_interleave(values.size(1), dim=1) + own).topk(2 * beams, dim=1)
        parents, token = flat // values.size(1), pieces.view_as(own).gather(1, flat)
        own = own.gather(1, flat)
        ends = token == eos_id
        cut = self.position + 1 == self.limits
        self._set_aside(cut, sums, parents, own, ends, eos.view(-1, beams))
        going, places = sums.masked_fill(ends, -torch.inf).topk(beams, dim=1)
        self._stop(cut, going[:, 0])
        self._go_on(going, *(x.gather(1, places) for x in (parents, token, own)))

    def _step_by_kernels(self, logits: Float[Tensor, "N V"]) -> None:
        from dragoman.kernels.beam_search import best_pieces as best_by_kernel
        from dragoman.kernels.beam_search import decide

        control = (self.vocab.pad_id, self.vocab.bos_id, self.vocab.eos_id)
        beams = self.config.beam
        if self.brackets is None:
            best = best_by_kernel(logits, self.position, self.shortest, beams, 2 * beams, control)
        else:
            values, pieces, eos = self._best(logits)
            best = values.contiguous(), pieces.contiguous(), eos.contiguous()
        state = (self.last, self.sums, self.position, self.ancestors, self.limits, self.ended)
        state += (self.done.view(torch.uint8), self.tokens, self.parents, self.scores)
        state += (self.found_rank, self.found_at, self.found_eos, self._weights)
        stop = self.config.stop
        rules = (stop != "limit", stop in ("complete", "settled"), stop == "settled")
        decide(*best, state, self.config.n_best, control[2], *rules)

    def _best(
        self, logits: Float[Tensor, "N V"]
    ) -> tuple[Float[Tensor, "N C"], Int[Tensor, "N C"], Float[Tensor, "N"]]:
        """The best 2K tokens of every row, and the log-probability of `</s>`."""
        eos_id, beams = self.vocab.eos_id, self.config.beam
        total = logits.logsumexp(dim=1, keepdim=True)
        eos = logits[:, eos_id] - total[:, 0]
        logits.index_fill_(1, self._never, -torch.inf)
        early = (self.position < self.shortest).repeat_interleave(beams)
        if self.brackets is not None:
            allowed = self.brackets.allowed(self.limits - 2 - self.position)
            logits.masked_fill_(~allowed, -torch.inf)
        logits[:, eos_id].masked_fill_(early, -torch.inf)
        if self.brackets is not None:  # if everything is forbidden, a row may end
            stuck = logits.amax(dim=1).isneginf()
            logits[:, eos_id] = torch.where(stuck, eos + total[:, 0], logits[:, eos_id])
        values, pieces = best_pieces(logits, min(2 * beams, logits.size(1)))
        return values - total, pieces, eos

    def _set_aside(
        self,
        cut: Bool[Tensor, "B"],
        sums: Float[Tensor, "B C"],
        parents: Int[Tensor, "B C"],
        own: Float[Tensor, "B C"],
        ends: Bool[Tensor, "B C"],
        eos: Float[Tensor, "B K"],
    ) -> None:
        """Extensions among the first K that end, or every beam at the maximum length."""
        beams, length, cut = self.config.beam, (self.position + 1)[:, None], cut[:, None]
        stopped = sums[:, :beams].masked_fill(~ends[:, :beams], -torch.inf)
        ending = torch.where(cut, self.sums + eos, stopped)
        parent = torch.where(cut, self._beams, parents[:, :beams])
        rank = (ending * self._weights[length]).masked_fill(self.done[:, None], -torch.inf)
        at = (length * beams + parent) * 2 + cut
        best, chosen = torch.cat([self.found_rank, rank], dim=1).topk(self.config.n_best, dim=1)
        self.found_rank.copy_(best)
        eos = torch.where(cut, eos, own[:, :beams])
        for kept, new in ((self.found_at, at), (self.found_eos, eos)):
            kept.copy_(torch.cat([kept, new], dim=1).gather(1, chosen))
        self.ended += stopped.isfinite().sum(dim=1)

    def _stop(self, cut: Bool[Tensor, "B"], best: Float[Tensor, "B"]) -> None:
        """`best` are the highest sums that continue."""
        self.done |= cut
        if self.config.stop == "limit":
            return
        last = self.found_rank[:, -1]
        stop = last >= best * self._weights[self.limits]  # no live hypothesis can rank before it
        if self.config.stop in ("complete", "settled"):
            enough = self.ended >= self.config.beam
            if self.config.stop == "settled":
                enough &= last >= best * self._weights[self.position + 1]
            stop |= enough
        self.done |= stop & last.isfinite()

    def _go_on(
        self,
        sums: Float[Tensor, "B K"],
        parents: Int[Tensor, "B K"],
        token: Int[Tensor, "B K"],
        own: Float[Tensor, "B K"],
    ) -> None:
        for history, new in ((self.tokens, token), (self.parents, parents), (self.scores, own)):
            history[self._rows, self.position] = new
        self.last.copy_(token)
        self.sums.copy_(sums)
        self.position += ~self.done
        ancestors = self.ancestors.gather(1, parents[:, :, None].expand_as(self.ancestors))
        self.ancestors.copy_(ancestors)
        here = self.position[:, None, None].expand(-1, len(self._beams), 1)
        self.ancestors.scatter_(2, here, self._beams[:, None].expand_as(here))

    def results(self, rows: Int[Tensor, "R"]) -> list[list[Ended]]:
        """The hypotheses of sentences that are done, best first. Waits for the device."""
        kept = (self.found_rank, self.found_at, self.found_eos, self.tokens, self.parents, self.scores)
        rank, at, eos, tokens, parents, scores = (x[rows].cpu().numpy() for x in kept)
        lengths, beam = at // (2 * self.config.beam), at // 2 % self.config.beam  # R n
        each = np.arange(len(rank))[:, None]
        longest = int(lengths.max(initial=1))
        ids = np.zeros((len(rank), self.config.n_best, longest), dtype=np.int64)  # R n T
        token_scores = np.zeros(ids.shape)
        for place in range(longest - 2, -1, -1):
            ids[:, :, place], token_scores[:, :, place] = tokens[each, place, beam], scores[each, place, beam]
            beam = np.where(place < lengths - 1, parents[each, place, beam], beam)
        results: list[list[Ended]] = []
        for row in range(len(rank)):
            hypotheses = [
                Ended(
                    (*ids[row, nth, : lengths[row, nth] - 1].tolist(), self.vocab.eos_id),
                    (*token_scores[row, nth, : lengths[row, nth] - 1].tolist(), float(eos[row, nth])),
                    "length" if at[row, nth] % 2 else "stop",
                )
                for nth in range(self.config.n_best)
                if rank[row, nth] > -math.inf
            ]
            results.append(sorted(hypotheses, key=lambda one: one.score(self.config), reverse=True))
        return results

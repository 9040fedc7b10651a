"""Beam search over a step function, many sentences at once.

    start ─▶ state ─▶ step ─▶ log-probabilities ─▶ rules ─▶ allocation: 2K extensions of each sentence
                ▲                                              │            │
                └── select(order) ◀─── the K first that go on ◀┘            └─▶ ended: set aside

Every sentence is searched as if it were alone: its own length limit, its own stop rule. Sentences that are
done leave the batch. The last token of a hypothesis is always `</s>`, also where the length limit makes it
so; its log-probability is part of the score, and scoring the text again gives the same number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from dragoman.decode.allocate import Allocation, best_extensions
from dragoman.decode.config import SearchConfig
from dragoman.decode.constrain import Rules
from dragoman.decode.ended import COMPACT_AT, Ended
from dragoman.decode.hypothesis import FinishReason, normalised
from dragoman.decode.scorer import JointState, Scorer
from dragoman.decode.trace import Recorder
from dragoman.nn.state import rows_of
from dragoman.shapes import Float, Int, Tensor


@dataclass
class Beam:
    """Beam search: Σ log p ranks live hypotheses, Σ log p / |y|^α the ended ones.

    An extension by `</s>` is set aside if it is among the K first extensions of its sentence. Where a rule
    reweighs, its numbers take the place of log p in both ranks, and nowhere else.
    """

    scorer: Scorer
    state: JointState
    limits: Int[Tensor, "A"]
    rules: Rules
    config: SearchConfig
    allocation: Allocation = best_extensions
    recorder: Recorder | None = None
    ended: dict[int, list[Ended]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count, device = len(self.limits), self.limits.device
        self.sentences = torch.arange(count, device=device)  # which sentence each block of beams belongs to
        self.length = 0
        self.ended = {sentence: [] for sentence in range(count)}
        self.done: set[int] = set()
        longest = int(self.limits.max())
        self.beams = 1  # the first step has one row a sentence: all beams would be the same
        self.tokens = torch.zeros(count, 1, longest, dtype=torch.long, device=device)  # A K T
        self.token_scores = torch.zeros(count, 1, longest, device=device)  # A K T
        self.sums = torch.zeros(count, 1, device=device)  # A K
        self.last = torch.full((count,), self.scorer.vocab.bos_id, device=device)  # N

    def run(self) -> list[list[Ended]]:
        while len(self.done) < len(self.ended):
            self.length += 1
            scores, self.state = self.scorer.step(self.last, self.state)
            prefix = self.tokens[:, :, : self.length - 1].flatten(0, 1)  # N T
            ranked = self.rules(scores, prefix, self.sentences.repeat_interleave(self.beams))
            self._end_at_limit(scores, ranked)
            self._advance(scores, ranked, prefix)
            self._drop_done()
        alpha, n_best = self.config.alpha, self.config.n_best
        in_order = (
            sorted(found, key=lambda e: e.score(alpha), reverse=True) for found in self.ended.values()
        )
        return [found[:n_best] for found in in_order]

    def _end_at_limit(self, scores: Float[Tensor, "N V"], ranked: Float[Tensor, "N V"]) -> None:
        """Sentences at their greatest length: every live hypothesis ends here."""
        eos_scores, eos_ranked = (
            x[:, self.scorer.vocab.eos_id].view(-1, self.beams) for x in (scores, ranked)
        )
        for row in (self.limits == self.length).nonzero()[:, 0].tolist():
            sentence = int(self.sentences[row])
            if sentence in self.done:
                continue
            for beam in self.sums[row].isfinite().nonzero()[:, 0].tolist():
                rank = self.sums[row, beam] + eos_ranked[row, beam]
                self._set_aside(row, beam, float(eos_scores[row, beam]), float(rank), "length")
            self.done.add(sentence)
            if self.recorder is not None:
                own, eos = eos_scores[row], self.scorer.vocab.eos_id
                live = zip(own.tolist(), (self.sums[row] + own).tolist(), strict=True)
                self.recorder.cut(sentence, [(beam, eos, *values) for beam, values in enumerate(live)])

    def _advance(
        self, scores: Float[Tensor, "N V"], ranked: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"]
    ) -> None:
        """Set aside what ends, let the K first of the rest go on."""
        width, eos = self.config.beam, self.scorer.vocab.eos_id
        best, parents, token = self.allocation(ranked, self.sums, prefix, self.sentences, 2 * width)  # A 2K
        own = scores.view(len(best), -1).gather(1, parents * scores.size(1) + token)
        ends = token == eos
        for row, rank in (ends[:, :width] & best[:, :width].isfinite()).nonzero().tolist():
            if int(self.sentences[row]) not in self.done:
                beam, score = int(parents[row, rank]), float(own[row, rank])
                self._set_aside(row, beam, score, float(best[row, rank]), "stop")
        going = best.masked_fill(ends, -torch.inf)
        if (missing := width - going.size(1)) > 0:  # a vocabulary smaller than the beam: dead rows fill it
            going = F.pad(going, (0, missing), value=-torch.inf)
            parents, token, own = (F.pad(x, (0, missing)) for x in (parents, token, own))
        chosen = going.isneginf().int().argsort(dim=1, stable=True)[:, :width]  # A K: the order stays
        if self.beams > 1:  # where they cost least: a parent's first child takes its place
            chosen = chosen.gather(1, _places(parents.gather(1, chosen)).argsort(dim=1))
        self.sums = going.gather(1, chosen)
        self._stop_rules()
        if self.recorder is not None:
            self._record(self.recorder, (parents, token, own, best), chosen)
        self._move(*(x.gather(1, chosen) for x in (parents, token, own)))

    def _move(
        self, parents: Int[Tensor, "A K"], token: Int[Tensor, "A K"], own: Float[Tensor, "A K"]
    ) -> None:
        """Give every row what it holds from now on."""
        if self.beams == 1:
            self.beams = self.config.beam
            self.state = self.state.expand(self.beams)
            self.tokens = self.tokens.repeat(1, self.beams, 1)
            self.token_scores = self.token_scores.repeat(1, self.beams, 1)
        else:
            first = torch.arange(len(parents), device=parents.device)[:, None] * self.beams
            order = (first + parents).flatten()
            self.state = self.state.select(order)
            self.tokens = self.tokens.flatten(0, 1)[order].view_as(self.tokens)
            self.token_scores = self.token_scores.flatten(0, 1)[order].view_as(self.token_scores)
        self.tokens[:, :, self.length - 1] = token
        self.token_scores[:, :, self.length - 1] = own
        self.last = token.flatten()

    def _record(self, recorder: Recorder, ranked: Sequence[Tensor], chosen: Int[Tensor, "A K"]) -> None:
        for row, sentence in enumerate(self.sentences.tolist()):
            extensions = zip(*(x[row].tolist() for x in ranked), strict=False)  # some are padded, some not
            recorder.extend(sentence, extensions, chosen[row].tolist(), sentence in self.done)

    def _set_aside(self, row: int, beam: int, eos_score: float, rank: float, reason: FinishReason) -> None:
        past = self.length - 1
        tokens = (*self.tokens[row, beam, :past].tolist(), self.scorer.vocab.eos_id)
        token_scores = (*self.token_scores[row, beam, :past].tolist(), eos_score)
        ranked = rank if self.rules.reweigh else None
        self.ended[int(self.sentences[row])].append(Ended(tokens, token_scores, reason, ranked))

    def _stop_rules(self) -> None:
        """Both rules look at one sentence alone, so the others in the batch change nothing."""
        limits, alpha = self.limits.tolist(), self.config.alpha
        best_live = self.sums.max(dim=1).values.tolist()
        for row, sentence in enumerate(self.sentences.tolist()):
            found = self.ended[sentence]
            if sentence in self.done or self.config.stop == "limit" or len(found) < self.config.n_best:
                continue
            nth = sorted((hypothesis.score(alpha) for hypothesis in found), reverse=True)[
                self.config.n_best - 1
            ]
            hopeless = nth >= normalised(best_live[row], limits[row], alpha)
            if hopeless or (self.config.stop == "complete" and len(found) >= self.config.beam):
                self.done.add(sentence)

    def _drop_done(self) -> None:
        alive = [row for row, sentence in enumerate(self.sentences.tolist()) if sentence not in self.done]
        if not alive or len(self.sentences) - len(alive) <= len(self.sentences) // COMPACT_AT:
            return
        keep = torch.tensor(alive, device=self.limits.device)
        self.state = self.state.keep(keep)
        self.last = self.last[rows_of(keep, self.beams)]
        self.sentences, self.limits, self.sums = self.sentences[keep], self.limits[keep], self.sums[keep]
        self.tokens, self.token_scores = self.tokens[keep], self.token_scores[keep]


def _places(parents: Int[Tensor, "A K"]) -> Int[Tensor, "A K"]:
    """For each child the slot it goes to: its parent's if it is the first child, else one that is free."""
    count = parents.size(1)
    slots = torch.arange(count, device=parents.device)
    same = parents[:, :, None] == parents[:, None, :]  # A K K
    later = (same & (slots[:, None] > slots)).any(dim=2)  # an earlier child has the same parent
    taken = (parents[:, :, None] == slots).any(dim=1)
    free = taken.int().argsort(dim=1, stable=True)  # free slots first
    nth_later = (later.cumsum(dim=1) - 1).clamp(min=0)
    return torch.where(later, free.gather(1, nth_later), parents)

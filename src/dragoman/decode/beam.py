"""Beam search over a step function, many sentences at once.

    start ─▶ state ─▶ step ─▶ log-probabilities ─▶ rules ─▶ 2K best extensions of each sentence
                ▲                                              │            │
                └── select(order) ◀── the K best that go on ◀──┘            └─▶ ended: set aside

Every sentence is searched as if it were alone: its own length limit, its own stop rule. Sentences that are
done leave the batch. The last token of a hypothesis is always `</s>`, also where the length limit makes it
so; its log-probability is part of the score, and scoring the text again gives the same number.
"""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from dragoman.decode.config import SearchConfig
from dragoman.decode.constrain import Rules
from dragoman.decode.ended import COMPACT_AT, Ended
from dragoman.decode.hypothesis import FinishReason, normalised
from dragoman.decode.scorer import JointState, Scorer
from dragoman.nn.state import rows_of
from dragoman.shapes import Float, Int, Tensor

_BLOCK = 64  # width of the blocks whose maxima find the best pieces of a large vocabulary


@dataclass
class Beam:
    """Beam search: Σ log p ranks live hypotheses, Σ log p / |y|^α the ended ones.

    An extension by `</s>` is set aside if it is among the K best extensions of its sentence.
    """

    scorer: Scorer
    state: JointState
    limits: Int[Tensor, "A"]
    rules: Rules
    config: SearchConfig
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
        while not self.finished:
            self.advance()
        return self.results()

    @property
    def finished(self) -> bool:
        return len(self.done) == len(self.ended)

    def advance(self) -> None:
        """One further token for every live hypothesis."""
        self.length += 1
        scores, self.state = self.scorer.step(self.last, self.state)
        prefix = self.tokens[:, :, : self.length - 1].flatten(0, 1)  # N T
        scores = self.rules(scores, prefix, self.sentences.repeat_interleave(self.beams))
        self._end_at_limit(scores)
        self._advance(scores)
        self._drop_done()

    def results(self) -> list[list[Ended]]:
        alpha, n_best = self.config.alpha, self.config.n_best
        ranked = (sorted(found, key=lambda e: e.score(alpha), reverse=True) for found in self.ended.values())
        return [found[:n_best] for found in ranked]

    def _end_at_limit(self, scores: Float[Tensor, "N V"]) -> None:
        """Sentences at their greatest length: every live hypothesis ends here."""
        eos_scores = scores[:, self.scorer.vocab.eos_id].view(-1, self.beams)
        for row in (self.limits == self.length).nonzero()[:, 0].tolist():
            sentence = int(self.sentences[row])
            if sentence in self.done:
                continue
            for beam in self.sums[row].isfinite().nonzero()[:, 0].tolist():
                self._set_aside(row, beam, float(eos_scores[row, beam]), "length")
            self.done.add(sentence)

    def _advance(self, scores: Float[Tensor, "N V"]) -> None:
        """Set aside what ends, let the K best of the rest go on."""
        width, eos = self.config.beam, self.scorer.vocab.eos_id
        values, pieces = _best(scores, min(2 * width, scores.size(1)))  # N 2K
        sums = (self.sums.view(-1, 1) + values).view(len(self.sentences), -1)  # A K·2K
        best, flat = sums.topk(min(2 * width, sums.size(1)), dim=1)  # A 2K
        parents = flat // values.size(1)
        token = pieces.view(len(sums), -1).gather(1, flat)
        own = values.view(len(sums), -1).gather(1, flat)
        ends = token == eos
        for row, rank in (ends[:, :width] & best[:, :width].isfinite()).nonzero().tolist():
            if int(self.sentences[row]) not in self.done:
                self._set_aside(row, int(parents[row, rank]), float(own[row, rank]), "stop")
        going = best.masked_fill(ends, -torch.inf)
        if (missing := width - going.size(1)) > 0:  # a vocabulary smaller than the beam: dead rows fill it
            going = F.pad(going, (0, missing), value=-torch.inf)
            parents, token, own = (F.pad(x, (0, missing)) for x in (parents, token, own))
        self.sums, chosen = going.topk(width, dim=1)  # A K
        parents, token, own = (x.gather(1, chosen) for x in (parents, token, own))
        self._stop_rules()
        self._move(parents, token, own)

    def _move(
        self, parents: Int[Tensor, "A K"], token: Int[Tensor, "A K"], own: Float[Tensor, "A K"]
    ) -> None:
        """Put the chosen extensions where they cost least: a parent's first child takes its place."""
        if self.beams == 1:
            self.beams = self.config.beam
            self.state = self.state.expand(self.beams)
            self.tokens = self.tokens.repeat(1, self.beams, 1)
            self.token_scores = self.token_scores.repeat(1, self.beams, 1)
        else:
            by_place = _places(parents).argsort(dim=1)
            parents, token, own, self.sums = (x.gather(1, by_place) for x in (parents, token, own, self.sums))
            first = torch.arange(len(parents), device=parents.device)[:, None] * self.beams
            order = (first + parents).flatten()
            self.state = self.state.select(order)
            self.tokens = self.tokens.flatten(0, 1)[order].view_as(self.tokens)
            self.token_scores = self.token_scores.flatten(0, 1)[order].view_as(self.token_scores)
        self.tokens[:, :, self.length - 1] = token
        self.token_scores[:, :, self.length - 1] = own
        self.last = token.flatten()

    def _set_aside(self, row: int, beam: int, eos_score: float, reason: FinishReason) -> None:
        past = self.length - 1
        tokens = (*self.tokens[row, beam, :past].tolist(), self.scorer.vocab.eos_id)
        token_scores = (*self.token_scores[row, beam, :past].tolist(), eos_score)
        self.ended[int(self.sentences[row])].append(Ended(tokens, token_scores, reason))

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


def _best(scores: Float[Tensor, "N V"], count: int) -> tuple[Float[Tensor, "N C"], Int[Tensor, "N C"]]:
    """The `count` best of each row. In a large row the best ones lie in the `count` blocks with the greatest
    maxima, so only those are sorted."""
    rows, size = scores.shape
    blocks = size // _BLOCK
    if blocks <= 4 * count:
        return scores.topk(count, dim=1)
    body = scores[:, : blocks * _BLOCK].view(rows, blocks, _BLOCK)
    top_blocks = body.amax(dim=2).topk(count, dim=1).indices  # N C
    inner = torch.arange(_BLOCK, device=scores.device)
    within = (top_blocks[:, :, None] * _BLOCK + inner).flatten(1)  # N C·64
    rest = torch.arange(blocks * _BLOCK, size, device=scores.device).expand(rows, -1)
    places = torch.cat([within, rest], dim=1)
    values, chosen = scores.gather(1, places).topk(count, dim=1)
    return values, places.gather(1, chosen)


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

"""Greedy and beam search over a step function, many sentences at once.

    start(memory) ─▶ state ─▶ step ─▶ project ─▶ log-probabilities ─▶ 2K best extensions of each sentence
                        ▲                                                  │            │
                        └── select(order) ◀── the K best that go on ◀──────┘            └─▶ ended: set aside

Every sentence is searched as if it were alone: its own length limit, its own stop rule. Sentences that are
done leave the batch. The last token of a hypothesis is always `</s>`, also where the length limit makes it
so; its log-probability is part of the score, and scoring the text again gives the same number.
"""

from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F

from dragoman.decode.hypothesis import FinishReason, normalised, total
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.state import State, rows_of
from dragoman.shapes import Bool, Float, Int, Tensor

_BLOCK = 64  # width of the blocks whose maxima find the best pieces of a large vocabulary
_COMPACT_AT = 8  # sentences that are done leave when they are more than one in so many


@dataclass(frozen=True)
class SearchConfig:
    beam: int = 5
    n_best: int = 1
    alpha: float = 1.0
    """Length normalisation: hypotheses are ranked by log p / |y|^α."""
    max_ratio: float = 2.0
    max_extra: int = 10
    """A translation has at most max_ratio × source tokens + max_extra tokens."""
    min_length: int = 0
    stop: Literal["complete", "bound"] = "complete"
    """When a sentence is done. `complete`: as soon as `beam` hypotheses have ended. `bound`: when no live
    hypothesis can still win, even if it reached the greatest length at no further cost. That one is exact for
    the beam, and slow where α is large; `complete` stops there too."""

    def __post_init__(self) -> None:
        for name in ("beam", "n_best"):
            if getattr(self, name) < 1:
                raise UserError(f"{name}: expected a whole number of at least 1, found {getattr(self, name)}")
        if self.n_best > self.beam:
            raise UserError(
                f"n_best: {self.n_best} hypotheses need a beam of at least {self.n_best}, not {self.beam}"
            )
        for name in ("alpha", "max_ratio", "max_extra", "min_length"):
            if getattr(self, name) < 0:
                raise UserError(f"{name}: expected a number of at least 0, found {getattr(self, name)}")
        if self.max_ratio == 0 and self.max_extra == 0:
            raise UserError(
                "max_extra: with max_ratio 0 a translation needs room for at least one token, found 0"
            )


@dataclass(frozen=True)
class Ended:
    """A hypothesis in ids: tokens with `</s>` at the end, and the log-probability of each."""

    tokens: tuple[int, ...]
    token_scores: tuple[float, ...]
    reason: FinishReason

    def score(self, alpha: float) -> float:
        return normalised(total(self.token_scores), len(self.tokens), alpha)


def search(
    model: EncoderDecoder, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], config: SearchConfig
) -> list[list[Ended]]:
    """The n best hypotheses of every sentence, best first."""
    with torch.inference_mode():
        memory = model.encode(src_ids, src_mask)
        limits = (src_mask.sum(dim=1) * config.max_ratio + config.max_extra).long().clamp(min=1)
        if config.beam == 1:
            return [[hypothesis] for hypothesis in _greedy(model, model.start(memory), limits, config)]
        return _Beam(model, model.start(memory), limits, config).run()


def log_probs(model: EncoderDecoder, hidden: Float[Tensor, "N D"]) -> Float[Tensor, "N V"]:
    logits = model.project(hidden)
    return logits.log_softmax(dim=-1, dtype=logits.dtype if logits.dtype == torch.float64 else torch.float32)


def _forbid(
    model: EncoderDecoder, scores: Float[Tensor, "N V"], length: int, config: SearchConfig
) -> Float[Tensor, "N V"]:
    """Pieces that cannot come next. The rest keep their true log-probabilities: nothing is renormalised."""
    scores[:, model.vocab.pad_id] = -torch.inf
    scores[:, model.vocab.bos_id] = -torch.inf
    if length <= config.min_length:
        scores[:, model.vocab.eos_id] = -torch.inf
    return scores


def _greedy(
    model: EncoderDecoder, state: State, limits: Int[Tensor, "B"], config: SearchConfig
) -> list[Ended]:
    """The best piece at every position. Rows that have ended go on idly until they leave the batch."""
    eos = model.vocab.eos_id
    last = torch.full_like(limits, model.vocab.bos_id)
    sentences = torch.arange(len(limits), device=limits.device)
    tokens: list[list[int]] = [[] for _ in range(len(limits))]
    token_scores: list[list[float]] = [[] for _ in range(len(limits))]
    ended: dict[int, Ended] = {}
    length = 0
    while len(ended) < len(limits):
        length += 1
        hidden, state = model.step(last, state)
        scores = _forbid(model, log_probs(model, hidden), length, config)
        forced = limits[sentences] <= length
        best, last = scores.max(dim=-1)
        best, last = torch.where(forced, scores[:, eos], best), torch.where(forced, eos, last)
        rows = zip(sentences.tolist(), last.tolist(), best.tolist(), forced.tolist(), strict=True)
        for sentence, token, score, cut in rows:
            if sentence in ended:
                continue
            tokens[sentence].append(token)
            token_scores[sentence].append(score)
            if token == eos:
                reason: FinishReason = "length" if cut else "stop"
                ended[sentence] = Ended(tuple(tokens[sentence]), tuple(token_scores[sentence]), reason)
        alive = [row for row, sentence in enumerate(sentences.tolist()) if sentence not in ended]
        if alive and len(sentences) - len(alive) > len(sentences) // _COMPACT_AT:
            keep = torch.tensor(alive, device=limits.device)
            state, last, sentences = state.keep(keep), last[keep], sentences[keep]
    return [ended[sentence] for sentence in range(len(limits))]


@dataclass
class _Beam:
    """Beam search: Σ log p ranks live hypotheses, Σ log p / |y|^α the ended ones.

    An extension by `</s>` is set aside if it is among the K best extensions of its sentence.
    """

    model: EncoderDecoder
    state: State
    limits: Int[Tensor, "A"]
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
        self.last = torch.full((count,), self.model.vocab.bos_id, device=device)  # N

    def run(self) -> list[list[Ended]]:
        while len(self.done) < len(self.ended):
            self.length += 1
            hidden, self.state = self.model.step(self.last, self.state)
            scores = _forbid(self.model, log_probs(self.model, hidden), self.length, self.config)
            self._end_at_limit(scores)
            self._advance(scores)
            self._drop_done()
        alpha, n_best = self.config.alpha, self.config.n_best
        ranked = (sorted(found, key=lambda e: e.score(alpha), reverse=True) for found in self.ended.values())
        return [found[:n_best] for found in ranked]

    def _end_at_limit(self, scores: Float[Tensor, "N V"]) -> None:
        """Sentences at their greatest length: every live hypothesis ends here."""
        eos_scores = scores[:, self.model.vocab.eos_id].view(-1, self.beams)
        for row in (self.limits == self.length).nonzero()[:, 0].tolist():
            sentence = int(self.sentences[row])
            if sentence in self.done:
                continue
            for beam in self.sums[row].isfinite().nonzero()[:, 0].tolist():
                self._set_aside(row, beam, float(eos_scores[row, beam]), "length")
            self.done.add(sentence)

    def _advance(self, scores: Float[Tensor, "N V"]) -> None:
        """Set aside what ends, let the K best of the rest go on."""
        width, eos = self.config.beam, self.model.vocab.eos_id
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
        tokens = (*self.tokens[row, beam, :past].tolist(), self.model.vocab.eos_id)
        token_scores = (*self.token_scores[row, beam, :past].tolist(), eos_score)
        self.ended[int(self.sentences[row])].append(Ended(tokens, token_scores, reason))

    def _stop_rules(self) -> None:
        """Both rules look at one sentence alone, so the others in the batch change nothing."""
        limits, alpha = self.limits.tolist(), self.config.alpha
        best_live = self.sums.max(dim=1).values.tolist()
        for row, sentence in enumerate(self.sentences.tolist()):
            found = self.ended[sentence]
            if sentence in self.done or len(found) < self.config.n_best:
                continue
            nth = sorted((hypothesis.score(alpha) for hypothesis in found), reverse=True)[
                self.config.n_best - 1
            ]
            hopeless = nth >= normalised(best_live[row], limits[row], alpha)
            if hopeless or (self.config.stop == "complete" and len(found) >= self.config.beam):
                self.done.add(sentence)

    def _drop_done(self) -> None:
        alive = [row for row, sentence in enumerate(self.sentences.tolist()) if sentence not in self.done]
        if not alive or len(self.sentences) - len(alive) <= len(self.sentences) // _COMPACT_AT:
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

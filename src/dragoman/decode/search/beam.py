"""Beam search over a step function, many sentences at once.

    start ─▶ state ─▶ step ─▶ log-probabilities ─▶ rules ─▶ first 2K extensions of each sentence
                ▲                                              │            │
                └── select(order) ◀── first K that continue ◀──┘            └─▶ ended: set aside

The allocation orders the extensions. By default the highest sums come first; `beam_allocation.py` has
another.

Every sentence is searched independently, with its own length limit and its own stopping rule. Finished
sentences leave the batch. The last token of a hypothesis is always `</s>`, also if the length limit forced
it; its log-probability is part of the score, and scoring the text again gives the same number.

Diverse beam search (Vijayakumar et al. 2018) divides the beams of a sentence into groups that choose one
after the other. In a later group a token costs `diversity` for every hypothesis of an earlier group that has
just chosen it. The penalty only affects the choice: sums and scores stay log-probabilities. `</s>` is free.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F

from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.beam_allocation import TOP_K_BLOCK, Allocation
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.coverage import covered
from dragoman.decode.search.job import COMPACT_AT, Ended, FinishReason
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.search.trace import TraceRecorder
from dragoman.nn.state import rows_of
from dragoman.shapes import Float, Int, Tensor


class Extensions(NamedTuple):
    """Extensions of the hypotheses of each sentence, in order of preference: the beam that each extends, the
    token and its log-probability, and the resulting sum, −∞ for none. `rank` is the position among all
    listed extensions."""

    parents: Int[Tensor, "A C"]
    token: Int[Tensor, "A C"]
    own: Float[Tensor, "A C"]
    sums: Float[Tensor, "A C"]
    rank: Int[Tensor, "A C"]

    def take(self, places: Int[Tensor, "A K"]) -> "Extensions":
        return Extensions(*(x.gather(1, places) for x in self))


def best_extensions(
    scores: Float[Tensor, "N V"],
    sums: Float[Tensor, "A K"],
    prefix: Int[Tensor, "N T"],  # noqa: ARG001
    sentences: Int[Tensor, "A"],  # noqa: ARG001
    count: int,
) -> tuple[Float[Tensor, "A C"], Int[Tensor, "A C"], Int[Tensor, "A C"]]:
    """Plain beam search: the highest sums."""
    size = scores.size(1)
    if size // TOP_K_BLOCK > 4 * count:
        return _best_by_blocks(scores.view(len(sums), -1, size), sums, count)
    values, pieces = scores.topk(min(count, size), dim=1)  # N 2K
    extended = (sums.view(-1, 1) + values).view(len(sums), -1)  # A K·2K
    best, flat = extended.topk(min(count, extended.size(1)), dim=1)  # A 2K
    return best, flat // values.size(1), pieces.view(len(sums), -1).gather(1, flat)


def _best_by_blocks(
    scores: Float[Tensor, "A K V"], sums: Float[Tensor, "A K"], count: int
) -> tuple[Float[Tensor, "A C"], Int[Tensor, "A C"], Int[Tensor, "A C"]]:
    """The best extensions of a sentence are in the `count` blocks with the highest maxima over all its rows,
    so only those are sorted, and the remainder at the end of a row."""
    sentences, beams, size = scores.shape
    blocks = size // TOP_K_BLOCK
    body = scores[:, :, : blocks * TOP_K_BLOCK].view(sentences, beams, blocks, TOP_K_BLOCK)
    tops = (body.amax(dim=3) + sums[:, :, None]).flatten(1)  # A K·V/64
    chosen = tops.topk(count, dim=1).indices  # A C
    parents = chosen // blocks
    inner = torch.arange(TOP_K_BLOCK, device=scores.device)
    first = parents * size + chosen % blocks * TOP_K_BLOCK  # in the scores of a sentence
    ends = torch.arange(blocks * TOP_K_BLOCK, size, device=scores.device)
    rest = (torch.arange(beams, device=scores.device)[:, None] * size + ends).flatten()
    places = torch.cat([(first[:, :, None] + inner).flatten(1), rest.expand(sentences, -1)], dim=1)
    own = sums.gather(1, places // size) + scores.flatten(1).gather(1, places)
    best, where = own.topk(count, dim=1)
    flat = places.gather(1, where)
    return best, flat // size, flat % size


@dataclass
class Beam:
    """Beam search: live hypotheses are ranked by Σ log p, ended ones by `config.rank`.

    An extension by `</s>` is set aside if it is among the first K extensions of its sentence (or of its
    group of size K). If a rule reweighs, its values replace log p in both rankings, and nowhere else.
    """

    scorer: Scorer
    batch: SearchBatch
    config: BeamSearch
    allocation: Allocation = best_extensions
    recorder: TraceRecorder | None = None
    ended: dict[int, list[Ended]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        batch = self.batch
        self.rules, self.limits, self.src_mask = batch.rules, batch.limits, batch.src_mask
        self.state = self.scorer.start(batch.src_ids, batch.src_mask, self.config.watched)
        self.can_be_cancelled = batch.can_be_cancelled
        count, device = len(self.limits), self.limits.device
        self.sentences = torch.arange(count, device=device)  # which sentence each block of beams belongs to
        self.length = 0
        self.ended = {sentence: [] for sentence in range(count)}
        self.best_live: dict[int, list[float]] = {sentence: [] for sentence in range(count)}
        self.ended_in = {sentence: [0] * self.config.groups for sentence in range(count)}
        self.done: set[int] = set()
        longest = int(self.limits.max())
        self.beams = 1  # the first step has one row per sentence: all beams would be equal
        self.width = self.config.beam // self.config.groups  # of one group
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
        """One more token for every live hypothesis of the sentences that are not cancelled."""
        if self.can_be_cancelled and self._all_cancelled():
            return
        self.length += 1
        scores, self.state = self.scorer.step(self.last, self.state)
        prefix = self.tokens[:, :, : self.length - 1].flatten(0, 1)  # N T
        ranked = self.rules(scores, prefix, self.sentences.repeat_interleave(self.beams))
        self._end_at_limit(scores, ranked)
        self._advance(scores, ranked, prefix)
        self._drop_done(len(self.sentences) // COMPACT_AT)

    def results(self) -> list[list[Ended]]:
        in_order = (sorted(found, key=self.rank, reverse=True) for found in self.ended.values())
        return [found[: self.config.n_best] for found in in_order]

    def rank(self, ended: Ended) -> float:
        return ended.score(self.config)

    def _end_at_limit(self, scores: Float[Tensor, "N V"], ranked: Float[Tensor, "N V"]) -> None:
        """Sentences at their maximum length: every live hypothesis ends here."""
        eos = self.scorer.vocab.eos_id
        own, ranks = (x[:, eos].view(-1, self.beams) for x in (scores, ranked))
        for row in (self.limits == self.length).nonzero()[:, 0].tolist():
            sentence = int(self.sentences[row])
            if sentence in self.done:
                continue
            sums = self.sums[row] + ranks[row]
            for beam in self.sums[row].isfinite().nonzero()[:, 0].tolist():
                group = beam // self.width
                self._set_aside(row, beam, float(own[row, beam]), float(sums[beam]), "length", group)
            self.done.add(sentence)
            if self.recorder is not None:
                live = enumerate(zip(own[row].tolist(), sums.tolist(), strict=True))
                self.recorder.cut(sentence, [(beam, eos, *values) for beam, values in live])

    def _advance(
        self, scores: Float[Tensor, "N V"], ranked: Float[Tensor, "N V"], prefix: Int[Tensor, "N T"]
    ) -> None:
        """Set ended hypotheses aside and keep the first K of the rest; one group after the other."""
        tables = [x.view(len(self.sentences), self.beams, x.size(1)) for x in (scores, ranked, prefix)]
        written = torch.zeros_like(tables[0][:, :1]) if self.config.groups > 1 else None  # A 1 V
        listed: list[Extensions] = []
        chosen: list[Extensions] = []
        for group in range(self.config.groups):
            first = 0 if self.beams == 1 else group * self.width
            beams = slice(first, first + min(self.width, self.beams))
            costs = written if written is None else written * self.config.diversity
            found = self._extend([table[:, beams] for table in tables], costs, first, group)
            going = found.sums.masked_fill(found.token == self.scorer.vocab.eos_id, -torch.inf)
            places = going.isneginf().int().argsort(dim=1, stable=True)[:, : self.width]  # the order stays
            taken = found._replace(sums=going).take(places)
            if written is not None:
                alive = taken.sums.isfinite().to(written.dtype)[:, None]
                written.scatter_add_(2, taken.token[:, None], alive)
            listed.append(found)
            chosen.append(taken)
        going_on = Extensions(*(torch.cat(parts, dim=1) for parts in zip(*chosen, strict=True)))
        if self.beams > 1:  # avoid moves: the first child of a parent takes its slot
            going_on = going_on.take(_places(going_on.parents).argsort(dim=1))
        self.sums = going_on.sums
        self._stop_rules()
        if self.recorder is not None:
            self._record(self.recorder, listed[0], going_on.rank)  # a recorded search has one group
        self._move(going_on)

    def _extend(
        self, tables: Sequence[Tensor], costs: Float[Tensor, "A 1 V"] | None, first: int, group: int
    ) -> Extensions:
        """The first extensions of one group, whose beams start at `first`; ended ones are set aside. `tables`
        are the log-probabilities, the ranks and the prefixes of the group's rows."""
        scores, ranked, prefix = tables  # A G V, A G V, A G T
        sums = self.sums[:, first : first + ranked.size(1)].contiguous()
        priced = ranked if costs is None else ranked - costs
        best, parents, token = self.allocation(
            priced.flatten(0, 1), sums, prefix.flatten(0, 1), self.sentences, 2 * self.width
        )  # A 2K
        places = parents * ranked.size(2) + token
        own = scores.flatten(1).gather(1, places)
        if costs is not None:  # the penalty only affects the choice
            true_sums = sums.gather(1, parents) + ranked.flatten(1).gather(1, places)
            best = true_sums.where(best.isfinite(), best)
        ends = (token == self.scorer.vocab.eos_id) & best.isfinite()
        for row, rank in ends[:, : self.width].nonzero().tolist():
            if int(self.sentences[row]) not in self.done:
                beam, score = first + int(parents[row, rank]), float(own[row, rank])
                self._set_aside(row, beam, score, float(best[row, rank]), "stop", group)
        if (missing := self.width - best.size(1)) > 0:  # a small vocabulary: dead rows fill the beam
            best = F.pad(best, (0, missing), value=-torch.inf)
            parents, token, own = (F.pad(x, (0, missing)) for x in (parents, token, own))
        rank = torch.arange(best.size(1), device=best.device).expand_as(best)
        return Extensions(first + parents, token, own, best, rank)

    def _move(self, going_on: Extensions) -> None:
        """Assign the chosen extensions to rows."""
        if self.beams == 1:
            self.beams = self.config.beam
            self.state = self.state.expand(self.beams)
            self.tokens = self.tokens.repeat(1, self.beams, 1)
            self.token_scores = self.token_scores.repeat(1, self.beams, 1)
        else:
            parents = going_on.parents
            first = torch.arange(len(parents), device=parents.device)[:, None] * self.beams
            order = (first + parents).flatten()
            self.state = self.state.select(order)
            self.tokens = self.tokens.flatten(0, 1)[order].view_as(self.tokens)
            self.token_scores = self.token_scores.flatten(0, 1)[order].view_as(self.token_scores)
        self.tokens[:, :, self.length - 1] = going_on.token
        self.token_scores[:, :, self.length - 1] = going_on.own
        self.last = going_on.token.flatten()

    def _record(self, recorder: TraceRecorder, listed: Extensions, places: Int[Tensor, "A K"]) -> None:
        for row, sentence in enumerate(self.sentences.tolist()):
            extensions = zip(*(x[row].tolist() for x in listed[:4]), strict=True)
            recorder.extend(sentence, extensions, places[row].tolist(), sentence in self.done)

    def _set_aside(
        self, row: int, beam: int, eos_score: float, rank: float, reason: FinishReason, group: int
    ) -> None:
        past, sentence = self.length - 1, int(self.sentences[row])
        tokens = (*self.tokens[row, beam, :past].tolist(), self.scorer.vocab.eos_id)
        token_scores = (*self.token_scores[row, beam, :past].tolist(), eos_score)
        seen = self.state.seen
        cover = 0.0 if seen is None else float(covered(seen[row * self.beams + beam], self.src_mask[row]))
        self.ended_in[sentence][group] += 1
        if self.config.groups == 1 or all(tokens != other.tokens for other in self.ended[sentence]):
            ranked = rank if self.rules.reweigh else None
            self.ended[sentence].append(Ended(tokens, token_scores, reason, ranked, cover))

    def _stop_rules(self) -> None:
        """Both rules look at one sentence only, so the rest of the batch has no influence."""
        limits, n_best = self.limits.tolist(), self.config.n_best
        best_live = self.sums.max(dim=1).values.tolist()
        for row, sentence in enumerate(self.sentences.tolist()):
            found = self.ended[sentence]
            if sentence in self.done:
                continue
            self.best_live[sentence].append(best_live[row])
            if self.config.stop == "limit" or len(found) < n_best:
                continue
            nth = sorted(map(self.rank, found), reverse=True)[n_best - 1]
            hopeless = nth >= self.config.best_rank(best_live[row], limits[row])
            complete = self.config.stop != "bound" and min(self.ended_in[sentence]) >= self.width
            if complete and self.config.stop == "settled":
                complete = nth >= self.config.best_rank(best_live[row], self.length)
            if hopeless or complete:
                self.done.add(sentence)

    def _all_cancelled(self) -> bool:
        """Drop cancelled sentences; True if none is left."""
        live = [sentence for sentence in self.sentences.tolist() if sentence not in self.done]
        if gone := [sentence for sentence in live if self.batch.jobs[sentence].cancelled()]:
            self.done.update(gone)
            self._drop_done(most_idle=0)
        return self.finished

    def _drop_done(self, most_idle: int) -> None:
        """Unless there are so few of them that keeping idle rows is cheaper."""
        alive = [row for row, sentence in enumerate(self.sentences.tolist()) if sentence not in self.done]
        if not alive or len(self.sentences) - len(alive) <= most_idle:
            return
        keep = torch.tensor(alive, device=self.limits.device)
        self.state = self.state.keep(keep)
        self.last = self.last[rows_of(keep, self.beams)]
        self.sentences, self.limits, self.sums = self.sentences[keep], self.limits[keep], self.sums[keep]
        self.tokens, self.token_scores = self.tokens[keep], self.token_scores[keep]
        self.src_mask = self.src_mask[keep]


def _places(parents: Int[Tensor, "A K"]) -> Int[Tensor, "A K"]:
    """The slot of each child: its parent's if it is the first child, otherwise a free one."""
    count = parents.size(1)
    slots = torch.arange(count, device=parents.device)
    same = parents[:, :, None] == parents[:, None, :]  # A K K
    later = (same & (slots[:, None] > slots)).any(dim=2)  # an earlier child has the same parent
    taken = (parents[:, :, None] == slots).any(dim=1)
    free = taken.int().argsort(dim=1, stable=True)  # free slots first
    nth_later = (later.cumsum(dim=1) - 1).clamp(min=0)
    return torch.where(later, free.gather(1, nth_later), parents)

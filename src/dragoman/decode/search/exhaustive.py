"""The true optimum of log p(y|x) / |y|^α, found and proven by depth-first branch and bound.

A prefix with Σ log p = s cannot improve: further tokens add terms ≤ 0. After length normalisation, the best
it can reach is the maximum length at no further cost, s / limit^α. If that does not beat the n-th best
hypothesis so far, the prefix and everything below it is pruned. The beam's result is the first bound
(Stahlberg & Byrne 2019, who have α = 0; the length limit makes every α > 0 exact and finite too).

    stack of levels          <s>
                             ├── a  b │ c          64 prefixes of a level go through one step;
                             │   └──┴── aa ba ab │ bb ca    their children are the next level,
                             │          └── …               best first, none below the bound

At most 1/p prefixes of one length have a probability of p or more, so a search that starts from the bound s
examines at most limit · exp(−s · limit^α) prefixes: it is fast for confident models and for a low limit.
"""

from dataclasses import dataclass, replace

import torch

from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.config import ExhaustiveSearch
from dragoman.decode.search.job import Ended, FinishReason
from dragoman.decode.search.scorer import JointState, Scorer
from dragoman.shapes import Float, Int, Tensor

_ROWS = 64  # prefixes in one step


@dataclass
class Level:
    """Children of prefixes that went through one step together: best first; those before `next` are done.

    A child is its parent's row and one more token; its state is created only when it is expanded.
    """

    state: JointState
    tokens: Int[Tensor, "P T"]  # of the parents, `<s>` first
    token_scores: Float[Tensor, "P T"]
    parents: Int[Tensor, "C"]
    pieces: Int[Tensor, "C"]
    own: Float[Tensor, "C"]
    sums: Float[Tensor, "C"]  # float64
    next: int = 0

    def take(self, floor: float, most: int) -> slice:
        """The next children whose sum is above the floor, as many as one step and the budget allow."""
        wanted = self.sums[self.next : self.next + min(_ROWS, most)]
        taken = slice(self.next, self.next + int((wanted > floor).sum()))
        self.next = taken.stop
        return taken

    def waits(self, floor: float) -> bool:
        return self.next < len(self.sums) and float(self.sums[self.next]) > floor


class Exhaustive:
    """The search for one sentence of a batch. `first` are hypotheses that are already known."""

    def __init__(
        self,
        scorer: Scorer,
        batch: SearchBatch,
        sentence: int,
        config: ExhaustiveSearch,
        first: list[Ended],
    ) -> None:
        self.scorer, self.batch, self.config, self.sentence = scorer, batch, config, sentence
        self.rules, self.job = batch.rules, batch.jobs[sentence]
        self.limit = int(batch.limits[sentence])
        self.found = {hypothesis.tokens: hypothesis for hypothesis in first}
        self.nodes = 0
        self._raise_bound()

    def run(self) -> list[Ended]:
        """The n best of all; `exact` is True if that is proven, False if the budget ran out before."""
        own = slice(self.sentence, self.sentence + 1), slice(len(self.job.source))
        src_ids, src_mask = self.batch.src_ids[own], self.batch.src_mask[own]
        stack = [self._root(self.scorer.start(src_ids, src_mask), src_ids.device)]
        while stack and not self.job.cancelled():
            taken = stack[-1].take(self.floor, self.config.max_nodes - self.nodes)
            if taken.stop > taken.start:
                stack.append(self._expand(stack[-1], taken))
            elif stack[-1].waits(self.floor):
                break
            else:
                stack.pop()
        return [replace(hypothesis, exact=not stack) for hypothesis in self.found.values()]

    def _root(self, state: JointState, device: torch.device) -> Level:
        start = torch.zeros(1, dtype=torch.long, device=device)
        return Level(
            state,
            tokens=start.new_empty(1, 0),
            token_scores=torch.empty(1, 0, device=device),
            parents=start,
            pieces=torch.full_like(start, self.scorer.vocab.bos_id),
            own=torch.zeros(1, device=device),
            sums=torch.zeros(1, dtype=torch.float64, device=device),
        )

    def _expand(self, level: Level, taken: slice) -> Level:
        """Step the children `taken` of a level, set ended ones aside, and collect their children."""
        parents, pieces = level.parents[taken], level.pieces[taken]
        self.nodes += len(pieces)
        tokens = torch.cat([level.tokens[parents], pieces[:, None]], dim=1)
        token_scores = torch.cat([level.token_scores[parents], level.own[taken, None]], dim=1)
        scores, state = self.scorer.step(pieces, level.state.keep(parents))
        ranked = self.rules(scores, tokens[:, 1:], torch.full_like(pieces, self.sentence))
        sums = level.sums[taken, None] + ranked.double()  # P V
        eos = self.scorer.vocab.eos_id
        self._end(tokens, token_scores, scores[:, eos], sums[:, eos])
        sums[:, eos] = -torch.inf
        if tokens.size(1) == self.limit:
            sums = sums[:, :0]  # only `</s>` may follow
        rows, columns = (sums > self.floor).nonzero(as_tuple=True)
        # More than the budget can never be expanded; one more shows that the budget was too small.
        most = self.config.max_nodes - self.nodes + 1
        in_order, order = sums[rows, columns].sort(descending=True, stable=True)
        rows, columns = rows[order[:most]], columns[order[:most]]
        return Level(state, tokens, token_scores, rows, columns, scores[rows, columns], in_order[:most])

    def _end(
        self,
        tokens: Int[Tensor, "P T"],
        token_scores: Float[Tensor, "P T"],
        eos_scores: Float[Tensor, "P"],
        sums: Float[Tensor, "P"],
    ) -> None:
        """Set aside the hypotheses that end here and are among the best so far."""
        length = tokens.size(1)  # `</s>` takes the place of `<s>`
        reason: FinishReason = "length" if length == self.limit else "stop"
        for row, log_prob in enumerate(sums.tolist()):
            if self.config.rank(log_prob, length) <= self.bound:
                continue
            whole = (*tokens[row, 1:].tolist(), self.scorer.vocab.eos_id)
            scores = (*token_scores[row, 1:].tolist(), float(eos_scores[row]))
            ranked = log_prob if self.rules.reweigh else None
            self.found.setdefault(whole, Ended(whole, scores, reason, ranked))
            self._raise_bound()

    def _raise_bound(self) -> None:
        """Keep the n best; hypotheses that are not better than the last of them are dropped."""
        n_best = self.config.n_best
        ranked = sorted(self.found.values(), key=lambda e: e.score(self.config), reverse=True)[:n_best]
        self.found = {hypothesis.tokens: hypothesis for hypothesis in ranked}
        self.bound = ranked[-1].score(self.config) if len(ranked) == n_best else -float("inf")
        self.floor = self.bound / self.config.best_rank(1.0, self.limit)  # ranks are in proportion to sums
        """A prefix whose sum is not above it cannot beat the bound at any length."""

"""Given beginnings and forbidden phrases, with an engine that knows no such rules.

    search ─▶ is there a piece that may not stand where it stands? ── no ──▶ done
                  │ yes, the first of them at t
                  └─▶ y[1…t−1] and the best piece that may follow, as the new beginning ─▶ search …

The beginning grows with every round, so there is an end. A greedy search finds what a search that obeys at
every step would find: up to the first offence it does the same, and there it takes the best that is allowed.
With a beam the best hypothesis is put right in this way, and those that were right from the first stay.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dragoman.decode.rules.constraints import agreeing
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import Ended, Job
from dragoman.text.automaton import forbidding
from dragoman.text.spelling import Spelling
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

Search = Callable[[Sequence[Job], BeamSearch], list[list[Ended]]]
"""The hypotheses of jobs; none of one that is cancelled."""
NextScores = Callable[[Sequence[tuple[Sequence[int], tuple[int, ...]]]], list[np.ndarray]]


class Steering:
    """What may follow where, for one job: the rules of `decode/search/batch.py` piece by piece."""

    def __init__(self, job: Job, config: BeamSearch, spelling: Spelling) -> None:
        self.own, self.spelling, self.ngram = job.constraints, spelling, config.no_repeat_ngram
        own = self.own
        self.longest, self.shortest = job.longest(config), job.shortest(config)
        self.read = forbidding(own.forbidden, spelling, EOS_ID) if own.forbidden else None

    def offence(self, ended: Ended) -> int | None:
        """The first place with a piece that may not stand there. A `</s>` that the length limit set may."""
        tokens = ended.tokens if ended.reason == "stop" else ended.tokens[:-1]
        state = 0
        for place, piece in enumerate(tokens):
            suspect = place <= self.own.longest_prefix
            if self.read is not None:
                suspect |= bool(self.read.finds[state, piece])
                state = int(self.read.after[state, piece])
                suspect |= place == self.longest - 2 and bool(self.read.holds[state])
            if suspect and not self.allowed(tokens[:place])[piece]:
                return place
        return None

    def allowed(self, tokens: tuple[int, ...]) -> np.ndarray:
        """V: which pieces may follow. Beginnings win over what is forbidden; where nothing is left, `</s>`
        does."""
        free = np.ones(len(self.spelling), dtype=bool)
        free[[PAD_ID, BOS_ID]] = False
        mask = free.copy()
        mask[EOS_ID] = len(tokens) >= self.shortest
        mask[self._would_repeat(tokens)] = False
        if self.read is not None:
            state = 0
            for piece in tokens:
                state = int(self.read.after[state, piece])
            mask &= ~self.read.finds[state]
            if len(tokens) == self.longest - 2:
                mask &= ~self.read.holds[self.read.after[state]]
        agrees, must_go_on = self._agreeing(tokens)
        mask &= agrees
        if must_go_on and not mask.any():
            mask = free & agrees
        mask[EOS_ID] |= not mask.any()
        return mask

    def _agreeing(self, tokens: tuple[int, ...]) -> tuple[np.ndarray, bool]:
        """Which pieces agree with the given beginning, and whether some of it is still to come."""
        own = self.own
        if len(tokens) < len(own.head):
            only = np.zeros(len(self.spelling), dtype=bool)
            only[own.head[len(tokens)]] = True
            return only, True
        written = int(self.spelling.widths[list(tokens[len(own.head) :])].sum())
        if not own.longest_prefix or written > len(own.tail):
            return np.ones(len(self.spelling), dtype=bool), False
        agrees = agreeing(own.tail[written:], own.ends_word, own.goes_on, self.spelling, EOS_ID)
        return agrees, written < len(own.tail) + own.goes_on

    def _would_repeat(self, tokens: tuple[int, ...]) -> list[int]:
        """Pieces that would complete an n-gram that is there already."""
        n = self.ngram
        if not n or len(tokens) < n:
            return []
        context = tokens[len(tokens) - n + 1 :]
        starts = range(len(tokens) - n + 1)
        return [tokens[at + n - 1] for at in starts if tokens[at : at + n - 1] == context]


def steered(
    jobs: Sequence[Job], spelling: Spelling, settings: BeamSearch, search: Search, next_scores: NextScores
) -> list[list[Ended]]:
    """The best hypotheses of each job that keep to its constraints: at least one, and at most n. A job that
    is cancelled may have none."""
    rules = [Steering(job, settings, spelling) for job in jobs]
    whole_beam = replace(settings, n_best=settings.beam)
    kept: list[dict[tuple[int, ...], Ended]] = [{} for _ in jobs]
    waiting = {number: replace(job, begin=rules[number].own.head) for number, job in enumerate(jobs)}
    while waiting:
        offences: dict[int, tuple[int, ...]] = {}
        results = search(list(waiting.values()), whole_beam)
        for number, found in zip(waiting, results, strict=True):
            if not found:
                continue
            places = [rules[number].offence(ended) for ended in found]
            right = [ended for ended, place in zip(found, places, strict=True) if place is None]
            kept[number] |= {ended.tokens: ended for ended in right}
            if places[0] is not None:
                offences[number] = found[0].tokens[: places[0]]
        asked = [(jobs[number].source[:-1], tokens) for number, tokens in offences.items()]
        scores = next_scores(asked) if asked else []
        waiting = {
            number: replace(jobs[number], begin=(*tokens, _best(own, rules[number].allowed(tokens))))
            for (number, tokens), own in zip(offences.items(), scores, strict=True)
        }
    ranked = [sorted(own.values(), key=lambda one: one.score(settings), reverse=True) for own in kept]
    return [own[: settings.n_best] for own in ranked]


def _best(scores: np.ndarray, allowed: np.ndarray) -> int:
    return int(np.where(allowed, scores, -np.inf).argmax())

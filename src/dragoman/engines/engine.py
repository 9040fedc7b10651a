"""A loaded export in token ids: search with constraints and loop guard, and streaming.

Prefixes and forbidden phrases with an engine that has no such rules:

    search ─▶ does a piece break a rule where it stands? ── no ──▶ done
                  │ yes, the first of them at t
                  └─▶ y[1…t−1] and the best allowed piece, as the new prefix ─▶ search …

The prefix grows in every round, so this terminates. For greedy search the result equals a search that applies
the rules at every step: both agree up to the first violation, and there the best allowed piece is taken. With
a beam, the best hypothesis is corrected in this way, and hypotheses without violations are kept.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dragoman.decode.rules.constraints import agreeing
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Ended, FinishReason, Job
from dragoman.decode.search.loop_guard import without_loops
from dragoman.engines.manifest import Export
from dragoman.engines.runtime import Call, Runtime, TokenIds
from dragoman.engines.search import search, supported
from dragoman.errors import UserError
from dragoman.text.automaton import forbidding
from dragoman.text.piece_bytes import Spelling
from dragoman.text.tokenizer import BOS_ID, EOS_ID, PAD_ID

Search = Callable[[Sequence[Job], BeamSearch], list[list[Ended]]]
"""Finds the hypotheses of jobs; none for a cancelled one."""
NextScores = Callable[[Sequence[tuple[Sequence[int], tuple[int, ...]]]], list[np.ndarray]]


class Steering:
    """Which pieces may follow a prefix, for one job: the rules of `decode/search/batch.py`, piece by
    piece."""

    def __init__(self, job: Job, config: BeamSearch, spelling: Spelling) -> None:
        self.own, self.spelling, self.ngram = job.constraints, spelling, config.no_repeat_ngram
        own = self.own
        self.longest, self.shortest = job.longest(config), job.shortest(config)
        self.read = forbidding(own.forbidden, spelling, EOS_ID) if own.forbidden else None

    def offence(self, ended: Ended) -> int | None:
        """The first position with a piece that breaks a rule. A `</s>` set by the length limit is allowed."""
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
        """V: which pieces may follow. Prefixes take precedence over forbidden phrases; if nothing is left,
        `</s>` may."""
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
        """Which pieces agree with the given prefix, and whether the prefix is incomplete."""
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
        """Pieces that would repeat an n-gram."""
        n = self.ngram
        if not n or len(tokens) < n:
            return []
        context = tokens[len(tokens) - n + 1 :]
        starts = range(len(tokens) - n + 1)
        return [tokens[at + n - 1] for at in starts if tokens[at : at + n - 1] == context]


def steered(
    jobs: Sequence[Job], spelling: Spelling, settings: BeamSearch, search: Search, next_scores: NextScores
) -> list[list[Ended]]:
    """The best hypotheses of each job that satisfy its constraints: at least one, at most n. A cancelled job
    may have none."""
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


class Engine:
    """`workers` batches run at once, each on `threads` cores."""

    def __init__(
        self, directory: Path, export: Export, shortlist: bool, workers: int | None, threads: int
    ) -> None:
        self.positions, self.shortlist = export.positions, shortlist
        self.runtime = Runtime(directory, export.quantization, workers, threads)

    def search(self, jobs: Sequence[Job], config: SearchConfig, batch_tokens: int) -> list[list[Ended]]:
        """The n best hypotheses of each job, without token scores. Jobs should be of similar length. A
        cancelled one has none."""
        beam = supported(config, self.positions)
        for job in jobs:
            self._refuse(job)

        def run(chosen: Sequence[Job], settings: BeamSearch) -> list[list[Ended]]:
            return search(self.runtime, chosen, settings, self.shortlist, batch_tokens)

        def next_scores(pairs: Sequence[tuple[TokenIds, TokenIds]]) -> list[np.ndarray]:
            return self.runtime.next_scores(pairs, len(spelling or ()), batch_tokens)

        spelling = next((job.constraints.spelling for job in jobs if job.constrained), None)
        found = run(jobs, beam) if spelling is None else steered(jobs, spelling, beam, run, next_scores)
        return without_loops(found, jobs, beam, lambda again, calm: self.search(again, calm, batch_tokens))

    def stream(self, job: Job, config: SearchConfig) -> Iterator[tuple[int, ...] | Ended]:
        """The tokens of a greedy translation one by one, without `</s>`; then the whole, scored."""
        if isinstance(config, BeamSearch) and config.beam > 1:
            raise UserError(
                f"search.beam: CTranslate2 shows what it writes with a beam of 1, not {config.beam}; set "
                "it to 1, or stream with the run itself"
            )
        settings = supported(config, self.positions)
        tokens: list[int] = []
        reason: FinishReason = "length"
        call = Call(
            job.longest(settings) - 1,
            job.shortest(settings),
            no_repeat_ngram=settings.no_repeat_ngram,
            shortlist=self.shortlist,
            forbid=True,
        )
        for piece in self.runtime.stream(job.source, call) if call.longest else ():
            if piece == EOS_ID:
                reason = "stop"
                break
            tokens.append(piece)
            yield (piece,)
        (scores,) = self.runtime.token_scores([(job.source[:-1], tokens)], batch_tokens=1)
        yield Ended((*tokens, EOS_ID), scores, reason)

    def _refuse(self, job: Job) -> None:
        own = job.constraints
        if own.required:
            raise UserError(
                "required: phrases that have to come, given or from a glossary, need a search of our own; "
                "translate with the run itself"
            )
        if own.longest_prefix and self.positions is not None and own.room > self.positions:
            raise UserError(
                f"prefixes: one takes up to {own.longest_prefix} pieces, which leaves no room within the "
                f"{self.positions:,} positions of this export; cut it, or export with more --positions"
            )

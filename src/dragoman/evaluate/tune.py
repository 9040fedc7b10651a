"""Choose beam size and length penalty on the validation set.

    decode once per beam ─▶ pool ─▶ rank by α = 0.0 ─▶ translations
                               └──▶ rank by α = 0.2 ─▶ …

Live hypotheses are ranked by Σ log p alone; α ranks ended ones. It also lets a search stop early, but only if
no later hypothesis could be first. So the first of a pool by `SearchConfig.rank` is what a search with that α
finds, if the pool has everything that ends until `beam` hypotheses have ended (`stop: complete`) or until the
maximum length (`limit`, and `bound`, which is equally exact). With `settled` a larger α stops later: the pool
is searched with the largest, and cut for each α with the best live sum of each step. If one search does not
serve every α (`can_rerank`), every pair of beam and α is searched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from dragoman.data.contexts import sources_in_context
from dragoman.data.corpus import Prepared
from dragoman.decode.rules.constraints import FREE
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.beam import Beam
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Ended, Job, by_length, never
from dragoman.decode.search.loop_guard import loops
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import DEFAULT_BATCH_TOKENS, SentenceProgress, Translator
from dragoman.errors import UserError
from dragoman.evaluate.metrics import SCORES, check_same_count
from dragoman.evaluate.search_errors import evenly

Openings = Sequence[tuple[int, ...]]
"""Control pieces before each source."""


def can_rerank(search: BeamSearch) -> bool:
    """Whether one search serves every α; it does not for groups of beams, nor where coverage counts in the
    stop rule."""
    return search.groups == 1 and not (search.stop == "settled" and search.watched)


@dataclass(frozen=True)
class Pool:
    """The hypotheses of a sentence that ended, in order."""

    ended: list[Ended]
    live: list[float] = field(default_factory=list)
    """The highest sum of a live hypothesis after each step; empty if the stop rule does not depend on it."""

    def best(self, search: BeamSearch) -> Ended:
        """The best hypothesis of this search; the first of several equal ones."""
        return max(self._until_the_stop(search), key=lambda ended: ended.score(search))

    def _until_the_stop(self, search: BeamSearch) -> list[Ended]:
        for length, best_live in enumerate(self.live, start=1):
            found = [ended for ended in self.ended if len(ended.tokens) <= length]
            if len(found) >= search.beam:
                nth = sorted((ended.score(search) for ended in found), reverse=True)[search.n_best - 1]
                if nth >= search.best_rank(best_live, length):
                    return found
        return self.ended


def pool_of(scorer: Scorer, jobs: Sequence[Job], search: BeamSearch) -> list[Pool]:
    """For every sentence all hypotheses that end. Of searches that differ in α, `search` has the largest."""
    settled = search.stop == "settled" and search.beam > 1
    if not settled:
        greedy = search.beam == 1 and not search.watched  # such a search stops at the first `</s>`
        stop = "complete" if search.stop == "complete" or greedy else "limit"
        # n_best = beam: the search cannot stop before that many have ended.
        search = replace(search, n_best=search.beam, stop=stop)
    config = replace(search, record=False)
    with torch.inference_mode():
        beam = Beam(scorer, SearchBatch.of(jobs, config, scorer.vocab, scorer.device, scorer.texts), config)
        beam.run()
    return [Pool(ended, beam.best_live[number] if settled else []) for number, ended in beam.ended.items()]


def translate_by(
    translator: Translator,
    texts: Sequence[str],
    searches: Sequence[BeamSearch],
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    progress: SentenceProgress | None = None,
    openings: Openings | None = None,
) -> list[list[str]]:
    """The output of `translator.translate` for each of the searches, which differ only in α."""
    first = searches[0]
    assert can_rerank(first) and all(replace(other, alpha=first.alpha) == first for other in searches)
    largest = max(searches, key=lambda search: search.alpha)
    openings = openings or [()] * len(texts)
    jobs = translator.by_opening(
        texts, openings, lambda own, part: own.jobs(part, [FREE] * len(part), [never] * len(part))
    )
    found = [[""] * len(texts) for _ in searches]
    asked = [index for index, job in enumerate(jobs) if job.source]
    looping: list[set[int]] = [set() for _ in searches]
    done = len(texts) - len(asked)
    for places in by_length([len(jobs[index].source) for index in asked], batch_tokens):
        batch = [asked[place] for place in places]
        pools = pool_of(translator.scorer, [jobs[index] for index in batch], largest)
        for index, pool in zip(batch, pools, strict=True):
            for number, search in enumerate(searches):
                best = pool.best(search)
                found[number][index] = translator.tgt_tokenizer.decode(best.tokens[:-1])
                if search.loop_guard and loops(best, jobs[index].source):
                    looping[number].add(index)
        done += len(batch)
        if progress:
            progress(done, len(texts))
    _make_anew(translator, texts, openings, searches, looping, found)
    return found


def _make_anew(
    translator: Translator,
    texts: Sequence[str],
    openings: Openings,
    searches: Sequence[BeamSearch],
    looping: Sequence[set[int]],
    found: list[list[str]],
) -> None:
    """Sentences stuck in a loop are searched normally, so that the loop guard applies."""
    for search, places, own in zip(searches, looping, found, strict=True):
        chosen = sorted(places)
        if chosen:
            again, opened = [texts[index] for index in chosen], [openings[index] for index in chosen]
            anew = translator.by_opening(again, opened, partial(Translator.translate, search=search))
            for index, text in zip(chosen, anew, strict=True):
                own[index] = text


class OutOfTime(Exception):
    """Raised by a caller's `progress` to stop; the searches finished by then are used."""


def validation_openings(prepared: Prepared, sentences: int | None = None) -> Openings:
    """The control pieces that give a multilingual model the direction of each of `validation_pairs`."""
    store = prepared.valid
    places = evenly(len(store), sentences or len(store))
    return [prepared.src_tokenizer.opening_of(store.src(place)) for place in places]


def validation_pairs(prepared: Prepared, sentences: int | None = None) -> tuple[list[str], list[str]]:
    """Sources and references of the validation set, or this many of them, evenly spaced."""
    store, tgt = prepared.valid, prepared.tgt_tokenizer
    places = evenly(len(store), sentences or len(store))
    sources = sources_in_context(prepared, places)
    return sources, [tgt.decode(store.tgt(place).tolist()) for place in places]


@dataclass(frozen=True)
class Tuned:
    beams: tuple[int, ...]
    alphas: tuple[float, ...]
    scores: dict[tuple[int, float], float]
    """Scores by beam and α."""
    chosen: BeamSearch
    translations: dict[tuple[int, float], list[str]]
    """Translations by beam and α."""

    @property
    def best(self) -> float:
        return self.scores[self.chosen.beam, self.chosen.alpha]


def tune_search(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    beams: Sequence[int],
    alphas: Sequence[float],
    metric: str = "bleu",
    search: SearchConfig | None = None,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    progress: SentenceProgress | None = None,
    openings: Openings | None = None,
) -> Tuned:
    """The best pair of beam and α; among equals the smaller beam, then the α nearest to that of `search`. Its
    other settings stay. `progress` is also called before each beam. If it raises OutOfTime, the beams
    finished by then are compared; before the first one is finished, the exception is passed on."""
    start = search or translator.search
    check_same_count(sources, references)
    if not isinstance(start, BeamSearch):
        raise UserError(f"search.method: beam and alpha can be tuned for the method beam, not {start.method}")
    again = translator.context is not None and translator.context.target > 0
    by_beam = sorted(set(beams))
    whole = len(by_beam) * len(sources)
    by_alpha = sorted(set(alphas))
    scores: dict[tuple[int, float], float] = {}
    searches: dict[tuple[int, float], BeamSearch] = {}
    said: dict[tuple[int, float], list[str]] = {}
    for number, beam in enumerate(by_beam):

        def report(done: int, of: int, begun: int = number) -> None:
            if progress:
                progress(begun * of + done, whole)

        own = [replace(start, beam=beam, n_best=1, record=False, alpha=alpha) for alpha in by_alpha]
        try:
            report(0, len(sources))
            if can_rerank(start) and not again:
                found = translate_by(translator, sources, own, batch_tokens, report, openings)
            else:
                asks = [partial(Translator.translate, search=one, batch_tokens=batch_tokens) for one in own]
                opened = openings or [()] * len(sources)
                found = [translator.by_opening(sources, opened, ask) for ask in asks]
        except OutOfTime:
            if not scores:
                raise
            by_beam = by_beam[:number]
            break
        for each, texts in zip(own, found, strict=True):
            scores[beam, each.alpha] = SCORES[metric](texts, references)
            searches[beam, each.alpha] = each
            said[beam, each.alpha] = texts
    best = min(scores, key=lambda key: (-scores[key], key[0], abs(key[1] - start.alpha)))
    return Tuned(tuple(by_beam), tuple(by_alpha), scores, searches[best], said)

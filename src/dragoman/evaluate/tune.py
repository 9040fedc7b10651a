"""Which beam and which length penalty a model wants, found on its validation set.

    decode once per beam ─▶ pool ─▶ rank by α = 0.0 ─▶ translations
                               └──▶ rank by α = 0.2 ─▶ …

Live hypotheses compete by Σ log p alone; α ranks what has ended. It also lets a search stop early, but only
where nothing that is still to come could be first. So the first of a pool by `SearchConfig.rank` is what a
search with that α finds, if the pool has everything that ends until `beam` hypotheses have (`stop: complete`)
or until the greatest length (`limit`, and `bound`, which is as exact). Where one search does not serve every
α (`can_rerank`), every pair of beam and α is searched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from dragoman.data.batch import by_length, pad_sources
from dragoman.data.corpus import Prepared
from dragoman.decode.search.beam import Beam
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.finished import Ended
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.search.search import set_up
from dragoman.decode.translator.loops import loops
from dragoman.decode.translator.translator import DEFAULT_BATCH_TOKENS, Progress, Translator
from dragoman.errors import UserError
from dragoman.evaluate.metrics import bleu, check_counts, chrf, exact_match
from dragoman.evaluate.search_errors import evenly
from dragoman.shapes import Bool, Int, Tensor


def can_rerank(search: SearchConfig) -> bool:
    """Whether one search serves every α: groups of beams wait for each other in another way."""
    return search.method == "beam" and search.groups == 1


def pool_of(
    scorer: Scorer, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], search: SearchConfig
) -> list[list[Ended]]:
    """For every sentence all hypotheses that end, in the order in which they do."""
    greedy = search.beam == 1 and not search.coverage  # such a search stops at the first end
    stop = "complete" if search.stop == "complete" or greedy else "limit"
    # n_best = beam: no rank ends the search before as many have ended.
    config = replace(search, n_best=search.beam, stop=stop, record=False)
    with torch.inference_mode():
        limits, rules, _ = set_up(scorer, src_mask, config)
        state = scorer.start(src_ids, src_mask, watched=config.coverage > 0)
        beam = Beam(scorer, state, src_mask, limits, rules, config)
        beam.run()
    return list(beam.ended.values())


def translate_by(
    translator: Translator,
    texts: Sequence[str],
    searches: Sequence[SearchConfig],
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    progress: Progress | None = None,
) -> list[list[str]]:
    """What `translator.translate` says with each of the searches, which differ in α alone."""
    first = searches[0]
    assert can_rerank(first) and all(replace(other, alpha=first.alpha) == first for other in searches)
    sources = translator.src_tokenizer.encode_batch(texts)
    found = [[""] * len(texts) for _ in searches]
    asked = [index for index, text in enumerate(texts) if text.strip()]
    looping: list[set[int]] = [set() for _ in searches]
    done = len(texts) - len(asked)
    for places in by_length([len(sources[index]) + 1 for index in asked], batch_tokens):
        batch = [asked[place] for place in places]
        padded = pad_sources([sources[index] for index in batch], translator.device)
        for index, pool in zip(batch, pool_of(translator.scorer, *padded, first), strict=True):
            for number, search in enumerate(searches):
                best = max(pool, key=lambda ended: ended.score(search))  # the first of equals, as a beam
                found[number][index] = translator.tgt_tokenizer.decode(best.tokens[:-1])
                if search.loop_guard and loops(best, [*sources[index], translator.scorer.vocab.eos_id]):
                    looping[number].add(index)
        done += len(batch)
        if progress:
            progress(done, len(texts))
    _make_anew(translator, texts, searches, looping, found)
    return found


def _make_anew(
    translator: Translator,
    texts: Sequence[str],
    searches: Sequence[SearchConfig],
    looping: Sequence[set[int]],
    found: list[list[str]],
) -> None:
    """What goes in circles is searched in full: the guard then does what it always does."""
    for search, places, own in zip(searches, looping, found, strict=True):
        chosen = sorted(places)
        if chosen:
            anew = translator.translate([texts[index] for index in chosen], search=search)
            for index, text in zip(chosen, anew, strict=True):
                own[index] = text


TunedMetric = Literal["bleu", "chrf", "exact"]
_SCORES = {"bleu": bleu, "chrf": chrf, "exact": exact_match}


class OutOfTime(Exception):
    """Raised by a caller's `progress` to stop: what has been searched by then counts."""


def validation_pairs(prepared: Prepared, sentences: int | None = None) -> tuple[list[str], list[str]]:
    """Sources and references of the validation set, or so many of them from all over it."""
    store, src, tgt = prepared.valid, prepared.src_tokenizer, prepared.tgt_tokenizer
    places = evenly(len(store), sentences or len(store))
    sources = [src.decode(store.src(place).tolist()) for place in places]
    return sources, [tgt.decode(store.tgt(place).tolist()) for place in places]


@dataclass(frozen=True)
class Tuned:
    beams: tuple[int, ...]
    alphas: tuple[float, ...]
    scores: dict[tuple[int, float], float]
    """By beam and α."""
    chosen: SearchConfig
    translations: dict[tuple[int, float], list[str]]
    """By beam and α."""

    @property
    def best(self) -> float:
        return self.scores[self.chosen.beam, self.chosen.alpha]


def tune(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    beams: Sequence[int],
    alphas: Sequence[float],
    metric: TunedMetric = "bleu",
    search: SearchConfig | None = None,
    batch_tokens: int = DEFAULT_BATCH_TOKENS,
    progress: Progress | None = None,
) -> Tuned:
    """The best pair of beam and α; of equals the narrower beam, then the α that is nearest to the one of
    `search`. What else that says stays as it is. `progress` is also called before each beam. Where it raises
    OutOfTime, the beams that were done by then are compared; before the first one is done it is passed on."""
    start = search or translator.search
    check_counts(sources, references)
    if start.method != "beam":
        raise UserError(f"search.method: beam and alpha can be tuned for the method beam, not {start.method}")
    by_beam = sorted(set(beams))
    whole = len(by_beam) * len(sources)
    by_alpha = sorted(set(alphas))
    scores: dict[tuple[int, float], float] = {}
    searches: dict[tuple[int, float], SearchConfig] = {}
    said: dict[tuple[int, float], list[str]] = {}
    for number, beam in enumerate(by_beam):

        def report(done: int, of: int, begun: int = number) -> None:
            if progress:
                progress(begun * of + done, whole)

        own = [replace(start, beam=beam, n_best=1, record=False, alpha=alpha) for alpha in by_alpha]
        try:
            report(0, len(sources))
            if can_rerank(start):
                found = translate_by(translator, sources, own, batch_tokens, report)
            else:
                found = [
                    translator.translate(sources, search=each, batch_tokens=batch_tokens) for each in own
                ]
        except OutOfTime:
            if not scores:
                raise
            by_beam = by_beam[:number]
            break
        for each, texts in zip(own, found, strict=True):
            scores[beam, each.alpha] = _SCORES[metric](texts, references)
            searches[beam, each.alpha] = each
            said[beam, each.alpha] = texts
    best = min(scores, key=lambda key: (-scores[key], key[0], abs(key[1] - start.alpha)))
    return Tuned(tuple(by_beam), tuple(by_alpha), scores, searches[best], said)

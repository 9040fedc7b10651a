"""Which beam and which length penalty a model wants, found on its validation set.

Every beam is searched once where that is exact (`decode/rerank.py`), and its hypotheses ranked by every α;
else every pair of beam and α is searched.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dragoman.decode.config import SearchConfig
from dragoman.decode.rerank import can_rerank, translate_by
from dragoman.decode.translate import DEFAULT_BATCH_TOKENS, Progress, Translator
from dragoman.errors import UserError
from dragoman.evaluate.metrics import bleu, check_counts, chrf

TunedMetric = Literal["bleu", "chrf"]


@dataclass(frozen=True)
class Tuned:
    beams: tuple[int, ...]
    alphas: tuple[float, ...]
    scores: dict[tuple[int, float], float]
    """By beam and α."""
    chosen: SearchConfig

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
    `search`. What else that says stays as it is."""
    start = search or translator.search
    check_counts(sources, references)
    if start.method != "beam":
        raise UserError(f"search.method: beam and alpha can be tuned for the method beam, not {start.method}")
    score = bleu if metric == "bleu" else chrf
    by_beam = sorted(set(beams))
    by_alpha = sorted(set(alphas))
    scores: dict[tuple[int, float], float] = {}
    searches: dict[tuple[int, float], SearchConfig] = {}
    for number, beam in enumerate(by_beam):

        def report(done: int, of: int, begun: int = number) -> None:
            if progress:
                progress(begun * of + done, len(by_beam) * of)

        own = [replace(start, beam=beam, n_best=1, record=False, alpha=alpha) for alpha in by_alpha]
        if can_rerank(start):
            found = translate_by(translator, sources, own, batch_tokens, report)
        else:
            found = [translator.translate(sources, search=each, batch_tokens=batch_tokens) for each in own]
        for each, texts in zip(own, found, strict=True):
            scores[beam, each.alpha] = score(texts, references)
            searches[beam, each.alpha] = each
    best = min(scores, key=lambda key: (-scores[key], key[0], abs(key[1] - start.alpha)))
    return Tuned(tuple(by_beam), tuple(by_alpha), scores, replace(searches[best], n_best=1))

"""Minimum Bayes risk: of many candidates, those that agree best with all of them.

    y* = argmax_y Σ_y' p(y'|x) · u(y, y')          Kumar & Byrne 2004; Eikema & Aziz 2020 with samples

u is chrF or BLEU of one sentence with the other as its reference. Of samples each counts once, so a text that
was drawn three times counts three times; of an n-best list each counts by its probability, and these are made
to add up to 1. Equal texts are one candidate, shown as the most probable of its segmentations.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dragoman.decode.config import SearchConfig
from dragoman.decode.hypothesis import Hypothesis
from dragoman.decode.utility import UTILITIES


def by_expected_utility(candidates: Sequence[Hypothesis], config: SearchConfig) -> list[Hypothesis]:
    """The `n_best` different texts with the greatest expected utility, which becomes their score. Where the
    texts differ less than `n_best`, there are fewer."""
    top = max(candidate.log_prob for candidate in candidates)
    sampled = config.candidates == "samples"
    weights: dict[str, float] = {}
    shown: dict[str, Hypothesis] = {}
    for candidate in candidates:
        weight = 1.0 if sampled else math.exp(candidate.log_prob - top)
        weights[candidate.text] = weights.get(candidate.text, 0.0) + weight
        if candidate.text not in shown or candidate.log_prob > shown[candidate.text].log_prob:
            shown[candidate.text] = candidate
    texts = list(shown)
    share = np.array([weights[text] for text in texts]) / sum(weights.values())
    expected = UTILITIES[config.utility](texts) @ share
    order = sorted(range(len(texts)), key=lambda i: (-expected[i], -shown[texts[i]].log_prob))
    return [replace(shown[texts[i]], score=float(expected[i])) for i in order[: config.n_best]]

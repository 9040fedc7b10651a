"""Metrics of dialogue models: perplexity of the real replies, and diversity of the generated ones."""

import math
from collections.abc import Sequence

from dragoman.decode.translator.hypothesis import Hypothesis


def distinct(texts: Sequence[str], n: int) -> float:
    """Distinct n-grams of words as a percentage of all n-grams (Li et al. 2016)."""
    rows = [text.split() for text in texts]
    grams = [tuple(row[start : start + n]) for row in rows for start in range(len(row) - n + 1)]
    return 100 * len(set(grams)) / len(grams) if grams else 0.0


def perplexities(scored: Sequence[Hypothesis], texts: Sequence[str]) -> tuple[float, float]:
    """Perplexity per token, and per word, where the end of each text counts as a word."""
    nll = -sum(one.log_prob for one in scored)
    tokens = sum(len(one.tokens) + 1 for one in scored)
    words = sum(len(text.split()) + 1 for text in texts)
    return math.exp(min(700.0, nll / tokens)), math.exp(min(700.0, nll / words))

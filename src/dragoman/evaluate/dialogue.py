"""Replies: how probable the real ones are for a model, and how much its own ones differ from one another."""

import math
from collections.abc import Sequence

from dragoman.decode.translator.hypothesis import Hypothesis


def distinct(texts: Sequence[str], n: int) -> float:
    """Different n-grams of words over all n-grams, in percent (Li et al. 2016)."""
    rows = [text.split() for text in texts]
    grams = [tuple(row[start : start + n]) for row in rows for start in range(len(row) - n + 1)]
    return 100 * len(set(grams)) / len(grams) if grams else 0.0


def perplexities(scored: Sequence[Hypothesis], texts: Sequence[str]) -> tuple[float, float]:
    """Per token, and per word with the end of each text as one."""
    nll = -sum(one.log_prob for one in scored)
    tokens = sum(len(one.tokens) + 1 for one in scored)
    words = sum(len(text.split()) + 1 for text in texts)
    return math.exp(min(700.0, nll / tokens)), math.exp(min(700.0, nll / words))

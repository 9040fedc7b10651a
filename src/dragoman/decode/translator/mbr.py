"""Minimum Bayes risk: the candidates that agree best with all others.

    y* = argmax_y Σ_y' p(y'|x) · u(y, y')          Kumar & Byrne 2004; Eikema & Aziz 2020 with samples

u is sentence-level chrF or BLEU with the other candidate as reference. Each sample counts once, so a text
that was drawn three times counts three times; entries of an n-best list are weighted by their normalised
probabilities. Equal texts are one candidate, represented by its most probable segmentation.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from dragoman.decode.search.config import MbrOfBeam, MbrOfSamples
from dragoman.decode.translator.hypothesis import Hypothesis

_CHARACTERS, _WORDS = 6, 4  # the longest n-grams of chrF and of BLEU
_BETA = 2


def chrf_pairs(texts: Sequence[str]) -> np.ndarray:
    """chrF (Popović 2015) of text i with text j as its reference, from 0 to 100."""
    bare = ["".join(text.split()) for text in texts]
    precision, recall, orders = (np.zeros((len(texts), len(texts))) for _ in range(3))
    for n in range(1, _CHARACTERS + 1):
        matches, totals = _matches([Counter(t[i : i + n] for i in range(len(t) - n + 1)) for t in bare])
        here = (totals[:, None] > 0) & (totals[None, :] > 0)
        precision += np.divide(matches, totals[:, None], out=np.zeros_like(precision), where=here)
        recall += np.divide(matches, totals[None, :], out=np.zeros_like(recall), where=here)
        orders += here
    weighted = _BETA**2 * precision + recall
    wanted = (weighted > 0) & (orders > 0)
    product = (1 + _BETA**2) * precision * recall
    score = np.divide(product, weighted * orders, out=np.zeros_like(product), where=wanted)
    return 100 * score


def bleu_pairs(texts: Sequence[str]) -> np.ndarray:
    """Sentence BLEU (Papineni et al. 2002) of text i with text j as its reference, from 0 to 100."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a  # slow to import

    tokenize = Tokenizer13a()
    words = [tuple(tokenize(text.rstrip()).split()) for text in texts]
    lengths = np.array([len(w) for w in words], dtype=np.float64)
    shape = len(texts), len(texts)
    log_precision, misses, any_match = np.zeros(shape), np.zeros(shape), np.zeros(shape, dtype=bool)
    for n in range(1, _WORDS + 1):
        matches, totals = _matches([Counter(w[i : i + n] for i in range(len(w) - n + 1)) for w in words])
        there = np.broadcast_to(totals[:, None] > 0, shape)
        missed = there & (matches == 0)
        misses += missed  # the k-th order without a match counts 1/2^k of one
        counted = np.where(missed, 2.0**-misses, matches)
        precision = np.divide(counted, totals[:, None], out=np.ones(shape), where=there)
        log_precision += np.log(precision)
        any_match |= matches > 0
    orders = np.clip(lengths, 1, _WORDS)[:, None]  # a short text has no long n-grams
    short = 1 - np.divide(lengths[None, :], lengths[:, None], out=np.ones(shape), where=lengths[:, None] > 0)
    score = np.exp(np.minimum(short, 0.0) + log_precision / orders)
    return 100 * np.where(any_match, score, 0.0)


UTILITIES: dict[str, Callable[[Sequence[str]], np.ndarray]] = {"chrf": chrf_pairs, "bleu": bleu_pairs}


def _matches(counters: Sequence[Counter]) -> tuple[np.ndarray, np.ndarray]:
    """Shared n-grams of every pair, and the n-grams of each text."""
    places: dict[object, int] = {}
    for counter in counters:
        for gram in counter:
            places.setdefault(gram, len(places))
    counts = np.zeros((len(counters), len(places)), dtype=np.int32)
    for row, counter in enumerate(counters):
        counts[row, [places[gram] for gram in counter]] = list(counter.values())
    matches = np.stack([np.minimum(counts, row).sum(axis=1) for row in counts], axis=1)
    return matches.astype(np.float64), counts.sum(axis=1).astype(np.float64)


def by_expected_utility(
    candidates: Sequence[Hypothesis], config: MbrOfSamples | MbrOfBeam
) -> list[Hypothesis]:
    """The `n_best` different texts with the highest expected utility, which becomes their score. There are
    fewer if there are fewer different texts."""
    top = max(candidate.log_prob for candidate in candidates)
    sampled = isinstance(config, MbrOfSamples)
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

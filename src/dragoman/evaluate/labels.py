"""Metrics for labels, scores, entities and answers. All values are between 0 and 1.

accuracy        correct / all
F1              2·TP / (2·TP + FP + FN): of one label, of all together (micro), their mean (macro)
matthews        the correlation of two tables of labels (Gorodkin 2004); for two labels that of Matthews 1975
pearson         correlation of numbers;  spearman: of their ranks, ties sharing theirs
entity F1       whole entities: type, first and last word must be right (Tjong Kim Sang & De Meulder 2003)
exact, F1       of answers, best over all reference answers, by SQuAD's rules (Rajpurkar et al. 2016)
"""

import math
import string
from collections import Counter
from collections.abc import Sequence

import numpy as np

_ARTICLES = frozenset(("a", "an", "the"))
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def accuracy(found: Sequence[object], expected: Sequence[object]) -> float:
    return sum(f == e for f, e in zip(found, expected, strict=True)) / len(expected) if expected else 0.0


def f1_of(label: str, found: Sequence[str], expected: Sequence[str]) -> float:
    """F1 of one label against all others; 0 if it neither occurs nor is predicted."""
    right = sum(f == e == label for f, e in zip(found, expected, strict=True))
    both = sum(f == label for f in found) + sum(e == label for e in expected)
    return 2 * right / both if both else 0.0


def macro_f1(found: Sequence[str], expected: Sequence[str], labels: Sequence[str]) -> float:
    """The mean over the labels that occur or are predicted."""
    present = {*found, *expected}
    scores = [f1_of(label, found, expected) for label in labels if label in present]
    return sum(scores) / len(scores) if scores else 0.0


def micro_f1(found: Sequence[str], expected: Sequence[str], labels: Sequence[str]) -> float:
    """All decisions for the given labels together. For all labels it equals the accuracy."""
    wanted = frozenset(labels)
    right = sum(f == e and e in wanted for f, e in zip(found, expected, strict=True))
    both = sum(f in wanted for f in found) + sum(e in wanted for e in expected)
    return 2 * right / both if both else 0.0


def matthews(found: Sequence[str], expected: Sequence[str]) -> float:
    """(c·s − Σ pₖtₖ) / √((s² − Σ pₖ²)(s² − Σ tₖ²)); 0 if one side is constant."""
    said, given = Counter(found), Counter(expected)
    size, right = len(expected), sum(f == e for f, e in zip(found, expected, strict=True))
    joint = sum(said[label] * given[label] for label in given)
    spread = (size**2 - sum(n * n for n in said.values())) * (size**2 - sum(n * n for n in given.values()))
    return (right * size - joint) / math.sqrt(spread) if spread else 0.0


def pearson(found: Sequence[float], expected: Sequence[float]) -> float:
    x, y = (np.asarray(side, dtype=np.float64) for side in (found, expected))
    x, y = x - x.mean(), y - y.mean()
    spread = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / spread if spread else 0.0


def squared_error(found: Sequence[float], expected: Sequence[float]) -> float:
    """The mean of the squares."""
    return float(np.mean((np.asarray(found, dtype=np.float64) - np.asarray(expected, dtype=np.float64)) ** 2))


def spearman(found: Sequence[float], expected: Sequence[float]) -> float:
    return pearson(_ranks(found), _ranks(expected))


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks; ties get their mean."""
    _, which, counts = np.unique(
        np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True
    )
    last = np.cumsum(counts)
    return ((2 * last - counts - 1) / 2)[which].tolist()


def entities(tags: Sequence[str]) -> set[tuple[str, int, int]]:
    """Type, first and last word of the entities in B-, I- and O tags. An I- without a preceding B- starts an
    entity, as in conlleval."""
    found: set[tuple[str, int, int]] = set()
    kind, first = None, 0
    for place, tag in enumerate((*tags, "O")):
        prefix, _, name = tag.partition("-")
        goes_on = prefix == "I" and name == kind
        if kind is not None and not goes_on:
            found.add((kind, first, place - 1))
            kind = None
        if prefix in ("B", "I") and not goes_on:
            kind, first = name, place
    return found


def entity_scores(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> dict[str, float]:
    """Precision, recall and F1 over all sentences."""
    right = said = given = 0
    for ours, theirs in zip(found, expected, strict=True):
        here, there = entities(ours), entities(theirs)
        right, said, given = right + len(here & there), said + len(here), given + len(there)
    return {
        "precision": right / said if said else 0.0,
        "recall": right / given if given else 0.0,
        "f1": 2 * right / (said + given) if said + given else 0.0,
    }


def answer_words(text: str) -> list[str]:
    """Lower case, without punctuation and articles."""
    return [word for word in text.lower().translate(_PUNCTUATION).split() if word not in _ARTICLES]


def exact_answer(found: str, answers: Sequence[str]) -> float:
    """1 if it is one of the answers; without answers, the empty text is right."""
    return float(any(answer_words(found) == answer_words(answer) for answer in answers or ("",)))


def answer_f1(found: str, answers: Sequence[str]) -> float:
    """Word F1 with the most similar answer."""
    return max(_word_f1(answer_words(found), answer_words(answer)) for answer in answers or ("",))


def _word_f1(found: Sequence[str], expected: Sequence[str]) -> float:
    if not found or not expected:
        return float(found == expected)
    shared = sum((Counter(found) & Counter(expected)).values())
    return 2 * shared / (len(found) + len(expected))

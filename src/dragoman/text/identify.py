"""Language identification by script, frequent words, and letter trigrams.

    log P(text | language) ≈ Σ over its words of   log share of the word              if it is a frequent one,
                                                   Σ log P(letter | the two before)   if it is not

A naive Bayes model (Cavnar and Trenkle 1994 and Dunning 1994 use letters; words help with short texts), built
at start from lists of some hundred frequent words a language.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from dragoman.text.language_words import FREQUENT, SCRIPTS

KNOWN = (*FREQUENT, *SCRIPTS)
"""Codes of the known languages."""
_LOOKED_AT = 1000
"""Characters of a text."""
_WORD = re.compile(r"[^\W\d_]+")
_SCRIPT = {code: re.compile(f"[{ranges}]") for code, ranges in SCRIPTS.items()}
_SAME = {"no": "nb", "nn": "nb", "bs": "hr", "iw": "he", "in": "id"}
_MIXED, _LACKING, _END = 3.0, 0.02, 0.15
"""The weight of single letters beside trigrams; the count of an unseen letter; the probability that a word
ends after a letter."""
_UNLISTED = math.log(0.5)
"""Half of the words of a text are not among the frequent ones."""
_MOST_GROUPS = 50_000
_ENOUGH = 0.15
"""The share of frequent words that a corpus needs for its language to be named."""
_LEAST = 4


class _Profile:
    """Log-probabilities of words and letter trigrams in one language."""

    def __init__(self, words: Sequence[str]) -> None:
        # By Zipf's law the n-th word has a share of about 0.1 / n; half of a text is in the list.
        self.words = {word: math.log(0.08 / (rank + 4)) for rank, word in reversed(list(enumerate(words)))}
        groups: Counter[str] = Counter()
        pairs: Counter[str] = Counter()
        for word in words:
            for at in range(len(word) + 1):
                group = f"  {word} "[at : at + 3]
                groups[group] += 1
                pairs[group[:2]] += 1
        letters = Counter("".join(words))
        self._groups, self._pairs = groups, pairs
        self._letters, self._size = letters, sum(letters.values())
        self._logs: dict[str, float] = {}

    def score(self, word: str) -> float:
        if (known := self.words.get(word)) is not None:
            return known
        spelt, logs, score = f"  {word} ", self._logs, _UNLISTED
        for at in range(len(word) + 1):
            group = spelt[at : at + 3]
            if group not in logs:
                if len(logs) > _MOST_GROUPS:  # bound the memory
                    logs.clear()
                logs[group] = self._after(group)
            score += logs[group]
        return score

    def _after(self, group: str) -> float:
        """Trigrams interpolated with single letters; unseen letters are very improbable."""
        ends = group[2] == " "
        alone = _END if ends else (self._letters[group[2]] + _LACKING) / (self._size + 1)
        return math.log((self._groups[group] + _MIXED * alone) / (self._pairs[group[:2]] + _MIXED))


@cache
def _profile(code: str) -> _Profile:
    return _Profile(list(dict.fromkeys(FREQUENT[code].split())))


def identify(text: str, among: Sequence[str] = KNOWN) -> list[tuple[str, float]]:
    """The languages, best first, each with a confidence from 0 to 100. A single candidate has 100; unknown
    languages have 0."""
    if len(among) == 1:
        return [(among[0], 100.0)]
    head = text[:_LOOKED_AT]
    words = _words(head)
    scores = {code: _score(_code(code), head, words) for code in among}
    best = max((one for one in scores.values() if one is not None), default=None)
    weights = {
        code: 0.0 if one is None or best is None else math.exp(max(one - best, -700.0))
        for code, one in scores.items()
    }
    total = sum(weights.values())
    shares = ((code, round(100 * own / total, 1) if total else 0.0) for code, own in weights.items())
    return sorted(shares, key=lambda one: -one[1])


def language_of(texts: Iterable[str]) -> str | None:
    """The language of a sample of a corpus; None if it is not certain, as for numbers, codes or names."""
    votes: Counter[str] = Counter()
    looked: list[str] = []
    for text in texts:
        if (words := _words(text[:_LOOKED_AT])) and (found := identify(text))[0][1] > 0:
            votes[found[0][0]] += len(words)
            looked += words
    if not votes:
        return None
    code, most = votes.most_common(1)[0]
    if most * 2 < sum(votes.values()):
        return None
    if code in SCRIPTS:
        return code
    frequent = sum(len(word) > 1 and word in _profile(code).words for word in looked)
    return code if frequent >= max(_LEAST, _ENOUGH * len(looked)) else None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _code(code: str) -> str:
    first = code.replace("_", "-").partition("-")[0].lower()
    return _SAME.get(first, first)


def _score(code: str, text: str, words: Sequence[str]) -> float | None:
    """None for an unknown language, and for a text without letters of its script."""
    if code in SCRIPTS:
        own = len(_SCRIPT[code].findall(text))
        if code == "zh" and _SCRIPT["ja"].search(text):
            own = 0  # Japanese has Chinese characters too
        if code == "ja" and own:
            own += len(_SCRIPT["zh"].findall(text))
        letters = sum(map(str.isalpha, text))
        return None if not own else -2.0 * own - 12.0 * max(0, letters - own)
    if code not in FREQUENT or not words:
        return None
    profile = _profile(code)
    return sum(profile.score(word) for word in words)

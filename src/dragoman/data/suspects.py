"""Suspicious pairs: wrong language, swapped sides, mismatched content, differing numbers.

A `Judge` first examines a sample of the corpus and uses only the rules that work on it: rules about language
if both languages are identified with certainty, the rule about words if it separates the real pairs of the
sample from shuffled ones.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.config import SUSPECTS
from dragoman.data.drop_reasons import is_copy
from dragoman.data.formats import Pair
from dragoman.data.formats.language_codes import TWO_LETTERS
from dragoman.data.lexicon import Lexicon, half_of
from dragoman.text.identify import can_identify, confidences, language_of

EXPLANATIONS = {
    "language": "a side is in another language than the corpus",
    "swapped": "each side is in the language of the other",
    "script": "a side is in another script than the corpus",
    "misaligned": "the words of the two sides do not belong together",
    "digits": "the numbers of the two sides differ",
    "address": "the web or mail addresses of the two sides differ",
    "length": "the lengths of the two sides differ far more than usual in this corpus",
    "near_duplicate": "but for case and punctuation, the same pair occurred before",
}
_LEAST = 500
"""Smallest number of pairs that a judge can be trained on."""
_FALSE_ALARMS = 0.008
"""Largest share of good pairs that the rule about words may flag."""
_FEWEST_FOUND = 0.6
"""Smallest share of mismatched pairs that the rule about words must find to be used at all."""
_NOT_OWN, _OTHER = 5.0, 60.0
"""Confidence in percent below which a side is not in its own language, and above which it is in the other."""
_FEWEST_LETTERS = 12
"""Smallest number of letters for a rule about language. Shorter texts are often names."""
_FAR = 8.0
"""Largest deviation of the length ratio, in median deviations."""
_NUMBER = re.compile(r"\d+(?:[.,:'’\u00a0\u202f]\d+| \d{3}(?!\d))*")
_ADDRESS = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'()\]:;,]{3,200}|[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{2,64}", re.ASCII
)


@dataclass(frozen=True)
class _Lengths:
    """Distribution of the logarithm of the length ratio: median and median deviation."""

    median: float
    spread: float

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> "_Lengths":
        ratios = _log_ratios(pairs)
        median = float(np.median(ratios))
        return cls(median, max(0.05, 1.4826 * float(np.median(np.abs(ratios - median)))))

    def deviations(self, pairs: Sequence[Pair]) -> np.ndarray:
        return np.abs(_log_ratios(pairs) - self.median) / self.spread


def _log_ratios(pairs: Sequence[Pair]) -> np.ndarray:
    sizes = np.array([(len(pair.src) + 5, len(pair.tgt) + 5) for pair in pairs], dtype=np.float64)
    return np.log(sizes[:, 0] / sizes[:, 1])


class Judge:
    """Rules learned from a sample of pairs. `languages` are the names of the two sides."""

    def __init__(self, sample: Sequence[Pair], languages: tuple[str, str]) -> None:
        self.kinds: tuple[str, ...] = ()
        """The rules that apply to this corpus."""
        if len(sample) < _LEAST:
            return
        self._lengths = _Lengths.of(sample)
        self._scripts = [
            _usual_scripts([pair.src for pair in sample]),
            _usual_scripts([pair.tgt for pair in sample]),
        ]
        self._languages = _sure_languages(sample, languages)
        kinds = ["script", "digits", "address", "length"] if self._languages else []
        if self._languages:
            kinds += ["language", "swapped"]
            self._lowest = self._limit(self._in_their_languages(sample, self._languages))
            if self._lowest is not None:
                kinds.append("misaligned")
        self.kinds = tuple(kind for kind in SUSPECTS if kind in kinds)

    def flags(self, pairs: Sequence[Pair]) -> dict[str, np.ndarray]:
        """For every kind except near duplicates, which of the pairs it applies to."""
        found = {kind: np.zeros(len(pairs), dtype=bool) for kind in EXPLANATIONS if kind != "near_duplicate"}
        if not self.kinds or not pairs:
            return found
        assert self._languages is not None
        found["language"], found["swapped"] = self._by_language(pairs, self._languages)
        if self._lowest is not None:
            found["misaligned"] = self._scores(pairs) < self._lowest
        found["length"] = self._lengths.deviations(pairs) > _FAR
        for number, pair in enumerate(pairs):
            found["digits"][number] = _differ(_numbers(pair.src), _numbers(pair.tgt))
            found["address"][number] = _differ(_addresses(pair.src), _addresses(pair.tgt))
            found["script"][number] = any(
                _script_of(text) not in (None, *usual)
                for text, usual in zip((pair.src, pair.tgt), self._scripts, strict=True)
            )
        return found

    def _by_language(self, pairs: Sequence[Pair], codes: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
        sides = [[pair.src for pair in pairs], [pair.tgt for pair in pairs]]
        src, tgt = (confidences(texts, codes) for texts in sides)
        long_enough = [
            np.array([sum(map(str.isalpha, text[:200])) >= _FEWEST_LETTERS for text in texts])
            for texts in sides
        ]
        src_wrong = (src[:, 0] < _NOT_OWN) & long_enough[0]
        tgt_wrong = (tgt[:, 1] < _NOT_OWN) & long_enough[1]
        turned = (src[:, 1] > _OTHER) & (tgt[:, 0] > _OTHER)
        by_src = (src[:, 1] > _OTHER) & (tgt[:, 0] > tgt[:, 1])
        by_tgt = (tgt[:, 0] > _OTHER) & (src[:, 1] > src[:, 0])
        swapped = turned | ((by_src | by_tgt) & (src_wrong | tgt_wrong))
        return (src_wrong | tgt_wrong) & ~swapped, swapped

    def _in_their_languages(self, sample: Sequence[Pair], codes: tuple[str, str]) -> list[Pair]:
        foreign, swapped = self._by_language(sample, codes)
        wrong = foreign | swapped
        return [p for p, bad in zip(sample, wrong, strict=True) if not bad and not is_copy(p.src, p.tgt)]

    def _scores(self, pairs: Sequence[Pair], halves: np.ndarray | None = None) -> np.ndarray:
        words = self._lexicon.scores([(pair.src, pair.tgt) for pair in pairs], halves)
        return words - 0.3 * np.minimum(self._lengths.deviations(pairs), 10.0)

    def _limit(self, sample: Sequence[Pair]) -> float | None:
        """The score below which pairs are flagged, or None if too few would be found. Trains the lexicon.

        The scores of the sample are a mixture: F = π·F_wrong + (1 − π)·F_good. F_wrong comes from the same
        sentences paired at random. Around its median good pairs have hardly any scores, so F / F_wrong is π.
        """
        if len(sample) < _LEAST:
            return None
        self._lexicon = Lexicon([(pair.src, pair.tgt) for pair in sample])
        halves = np.array([half_of((pair.src, pair.tgt)) for pair in sample])
        chance = np.random.default_rng(0)
        other = np.arange(len(sample))
        for half in (0, 1):  # sentences are paired within one half, so that the other half can judge them
            order = chance.permutation(np.flatnonzero(halves == half))
            other[order] = np.roll(order, 1)
        wrong = [
            Pair(pair.src, sample[place].tgt, 0) for pair, place in zip(sample, other.tolist(), strict=True)
        ]
        of_sample, of_wrong = np.sort(self._scores(sample)), np.sort(self._scores(wrong, halves))
        limits = np.quantile(of_wrong, np.linspace(0.05, 0.999, 400))
        below_wrong = np.searchsorted(of_wrong, limits) / len(wrong)
        below = np.searchsorted(of_sample, limits) / len(sample)
        share = float(np.median((below / below_wrong)[(below_wrong > 0.4) & (below_wrong < 0.6)]))
        good = (below - share * below_wrong) / (1 - share)
        allowed = np.flatnonzero(np.maximum.accumulate(good) <= _FALSE_ALARMS)
        if len(allowed) == 0 or below_wrong[allowed[-1]] < _FEWEST_FOUND:
            return None
        return float(limits[allowed[-1]])


def _sure_languages(sample: Sequence[Pair], languages: tuple[str, str]) -> tuple[str, str] | None:
    """The codes of the two languages, if the sample reads as the languages that were named."""
    if not can_identify():
        return None
    first = sample[:1000]
    found = language_of([pair.src for pair in first]), language_of([pair.tgt for pair in first])
    told = [TWO_LETTERS.get(code.partition("-")[0], code.partition("-")[0]) for code in languages]
    for own, code in zip(found, told, strict=True):
        if own is None or code not in ("src", "tgt", own):
            return None
    assert found[0] is not None and found[1] is not None
    return (found[0], found[1]) if found[0] != found[1] else None


def _numbers(text: str) -> frozenset[str]:
    """The numbers with at least two digits, without digit separators."""
    digits = (re.sub(r"\D", "", number) for number in _NUMBER.findall(text))
    return frozenset(number for number in digits if len(number) >= 2)


def _addresses(text: str) -> frozenset[str]:
    return frozenset(address.rstrip("./") for address in _ADDRESS.findall(text))


def _differ(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one and other) and one != other


def _script_of(text: str) -> str | None:
    """The script of most letters."""
    letters = [char for char in text[:200] if char.isalpha()]
    if not letters:
        return None
    if sum(map(str.isascii, letters)) * 2 > len(letters):
        return "LATIN"
    return Counter(map(_script, letters)).most_common(1)[0][0]


def _script(char: str) -> str:
    name = unicodedata.name(char, "?").partition(" ")[0]
    return "CJK" if name in ("HIRAGANA", "KATAKANA", "HANGUL") else name


def _usual_scripts(texts: Sequence[str]) -> frozenset[str]:
    counts = Counter(filter(None, map(_script_of, texts)))
    return frozenset(script for script, count in counts.items() if count * 50 >= counts.total())

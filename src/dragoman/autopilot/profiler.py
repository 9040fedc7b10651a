"""Computes the profile of a corpus while it is read: exact counts, and a sample of bounded size for the
rest."""

import math
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from typing import TypeVar

from dragoman.autopilot.bracketed import BracketCounts, share_of_trees
from dragoman.autopilot.profile import Lengths, Profile, SampledPair, SideProfile, quantiles
from dragoman.decode.search.loop_guard import LEAST_PIECES, REPEATS, tail_run

T = TypeVar("T")

_SAMPLE = 10_000
"""Number of pairs in the sample."""
_LONGEST = 2_000
"""Number of characters of a sampled line that are kept."""
_OFTEN = 10
"""Number of occurrences from which a word of the sample is frequent; lower for a small sample."""
_EXAMPLES = 20
_STEMS, _LONGEST_WORD = 1000, 80
"""Number of sampled pairs that are searched for common substrings, and the longest lines considered."""
_SHOWN = 60
"""Number of characters of an example."""
_SEGMENT = re.compile(r"[^\W\d_]+|\S")
_WITH_IDENTIFIERS = re.compile(r"[^\W\d](?:\.?\w)*|\S")
_TAGS = re.compile(r"(?<!\S)(?=\S*[A-Z])[A-Z0-9][A-Z0-9.]*(?:[;|+:/][A-Z0-9{}()./=-]+)+(?!\S)")
_NAME = re.compile(r"[^\W_]+")
_WORD = re.compile(r"[^\W\d_]+|\d+")
_RARE = 2
"""Largest number of occurrences of a rare word in the sample."""
_ENOUGH_RARE = 20
"""Smallest number of rare words for a meaningful share."""
_FORMAL = frozenset("(){}[]<>=_*/\\|;$&^~%#@+")


@dataclass(frozen=True)
class _Sampled:
    src: str
    tgt: str
    lengths: tuple[int, int]
    """Number of characters of the whole lines."""


class Profiler:
    """Call `add` with every pair, then `profile`."""

    def __init__(self) -> None:
        self._src, self._tgt, self._brackets = _Counts(), _Counts(), BracketCounts()
        self._pairs = self._empty = self._copies = 0
        self._sample: list[_Sampled] = []
        self._random = random.Random(0)
        self._share = 1.0
        self._next = 0

    def add(self, src: str, tgt: str, empty: bool) -> None:
        if empty:
            self._empty += 1
            return
        self._src.add(src)
        self._tgt.add(tgt)
        self._brackets.add(tgt)
        if src == tgt:
            self._copies += 1
        if len(self._sample) < _SAMPLE:
            self._sample.append(_sampled(src, tgt))
            if len(self._sample) == _SAMPLE:
                self._skip()
        elif self._pairs == self._next:
            self._sample[self._random.randrange(_SAMPLE)] = _sampled(src, tgt)
            self._skip()
        self._pairs += 1

    def _skip(self) -> None:
        """Draw the index of the next pair that enters the sample (Li 1994, algorithm L)."""
        self._share *= math.exp(math.log(1 - self._random.random()) / _SAMPLE)
        self._next = self._pairs + math.floor(math.log(1 - self._random.random()) / math.log1p(-self._share))
        self._next += 1

    def profile(self, duplicates: int = 0, weight: float = 1.0) -> Profile:
        """The profile of all pairs so far. `weight` is the mean number of uses of a pair per epoch."""
        sample = self._sample
        src, tgt = [pair.src for pair in sample], [pair.tgt for pair in sample]
        lengths = [_lengths(pair) for pair in sample]
        src_letters, tgt_letters = _letters(src), _letters(tgt)
        overlap = _mean_overlap(src, tgt)
        uncut = [pair for pair in sample if pair.lengths == (len(pair.src), len(pair.tgt))]
        whole = [pair.src for pair in uncut], [pair.tgt for pair in uncut]
        return Profile(
            pairs=round(self._pairs * weight),
            empty=self._empty,
            copies=self._copies,
            duplicates=duplicates,
            src=self._src.profile(src),
            tgt=self._tgt.profile(tgt),
            shared_letters=_shared(src_letters, tgt_letters),
            overlap=overlap,
            stem=_mean_stem(src, tgt),
            repeating=sum(map(_ends_in_circles, tgt)) / max(1, len(sample)),
            log_ratios=quantiles([math.log(n.tgt_characters / n.src_characters) for n in lengths]),
            lengths=tuple(lengths),
            examples=_examples(sample, lengths),
            copied_words=_copied_words(src, tgt),
            copied_letters=overlap - _mean_overlap(_others(src), tgt),
            brackets=self._brackets.pairs,
            trees=share_of_trees(*whole),
        )


class _Counts:
    """Exact counts of one side."""

    def __init__(self) -> None:
        self.characters = self.words = self.longest = self.single_words = 0

    def add(self, text: str) -> None:
        size, words = len(text), len(text.split())
        self.characters += size
        self.words += words
        if words == 1:
            self.single_words += 1
        if size > self.longest:
            self.longest = size

    def profile(self, texts: Sequence[str]) -> SideProfile:
        rows = [text.split() for text in texts]
        words = Counter(word for row in rows for word in row)
        characters = Counter[str]()
        for text in texts:
            characters.update(text)
        names = Counter(name for text in texts for name in _NAME.findall(text) if not name.isdigit())
        total = max(1, words.total())
        often = min(_OFTEN, max(2, len(texts) // 200))
        base = sum(_base_length(word) * count for word, count in words.items())
        visible = max(1, sum(count for character, count in characters.items() if not character.isspace()))
        return SideProfile(
            characters=self.characters,
            words=self.words,
            longest=self.longest,
            single_words=self.single_words,
            words_a_line=tuple(map(int, quantiles([len(row) for row in rows]))),
            alphabet=len(characters),
            scripts=_scripts(characters),
            word_types=len(words),
            word_tokens=words.total(),
            frequent_words=_share_of_frequent(words, often),
            known_words=_share_of_frequent(names, often) if 2 * names.total() > total else 1.0,
            word_length=base / total,
            tags=sum(_TAGS.search(text) is not None for text in texts) / max(1, len(texts)),
            digits=sum(n for character, n in characters.items() if character.isdigit()) / visible,
            code=sum(n for character, n in characters.items() if character in _FORMAL) / visible,
            segments_a_name=_count(_SEGMENT, texts) / max(1, _count(_WITH_IDENTIFIERS, texts)),
        )


def _share_of_frequent(words: Counter[str], often: int) -> float:
    return sum(count for count in words.values() if count >= often) / max(1, words.total())


def _count(pattern: re.Pattern[str], texts: Sequence[str]) -> int:
    return sum(len(pattern.findall(text)) for text in texts)


def _sampled(src: str, tgt: str) -> _Sampled:
    return _Sampled(src[:_LONGEST], tgt[:_LONGEST], (len(src), len(tgt)))


def _lengths(pair: _Sampled) -> Lengths:
    def segments(text: str, whole: int) -> int:
        return max(1, round(len(_SEGMENT.findall(text)) * whole / len(text)))

    src, tgt = pair.lengths
    return Lengths(src, tgt, segments(pair.src, src), segments(pair.tgt, tgt))


def _ends_in_circles(text: str) -> bool:
    """Whether a text ends in repetition, by the rule of the loop guard."""
    segments = _SEGMENT.findall(text)
    numbers = {segment: number for number, segment in enumerate(dict.fromkeys(segments))}
    run = tail_run([numbers[segment] for segment in segments])
    return run.repeats >= REPEATS and run.pieces >= LEAST_PIECES


def _letters(texts: Sequence[str]) -> Counter[str]:
    counts = Counter[str]()
    for text in texts:
        counts.update(text)
    return Counter({letter: count for letter, count in counts.items() if letter.isalpha()})


def _shared(src: Counter[str], tgt: Counter[str]) -> float:
    """The overlap of two distributions. 1 if neither side has letters."""
    if not src and not tgt:
        return 1.0
    if not src or not tgt:
        return 0.0
    return sum(min(src[c] / src.total(), tgt[c] / tgt.total()) for c in src.keys() & tgt.keys())


def _overlap(src: str, tgt: str) -> float:
    return (Counter(src) & Counter(tgt)).total() / len(tgt)


def _mean_overlap(src: Sequence[str], tgt: Sequence[str]) -> float:
    return sum(map(_overlap, src, tgt)) / max(1, len(tgt))


def _others(rows: Sequence[T]) -> list[T]:
    """Replace each row by a distant one, because neighbours are often similar."""
    half = len(rows) // 2
    return [*rows[half:], *rows[:half]]


def _copied_words(src: Sequence[str], tgt: Sequence[str]) -> float:
    """Share of the targets' rare words found in their own source, minus the share found in another source."""
    words = [_WORD.findall(text) for text in tgt]
    seen = Counter(word for row in words for word in row)
    rare = [[word for word in row if seen[word] <= _RARE] for row in words]
    there = [set(_WORD.findall(text)) for text in src]
    number = sum(map(len, rare))
    if number < _ENOUGH_RARE:
        return 0.0
    found = [
        sum(word in own for row, own in zip(rare, sources, strict=True) for word in row)
        for sources in (there, _others(there))
    ]
    return (found[0] - found[1]) / number


def _mean_stem(src: Sequence[str], tgt: Sequence[str]) -> float:
    pairs = list(zip(src, tgt, strict=True))[:_STEMS]
    return sum(_stem(a, b) for a, b in pairs) / max(1, len(pairs))


def _stem(src: str, tgt: str) -> float:
    if max(len(src), len(tgt)) > _LONGEST_WORD:
        return 0.0
    longest = SequenceMatcher(None, src, tgt, autojunk=False).find_longest_match()
    return longest.size / len(tgt)


def _scripts(characters: Counter[str]) -> tuple[tuple[str, float], ...]:
    counts = Counter[str]()
    for character, count in characters.items():
        if character.isalpha():
            counts[_script(character)] += count
    total = max(1, counts.total())
    return tuple((name, count / total) for name, count in counts.most_common(4))


@cache
def _script(letter: str) -> str:
    """The first word of the letter's Unicode name: LATIN, CYRILLIC, CJK …"""
    return unicodedata.name(letter, "OTHER").split(" ", 1)[0]


def _base_length(word: str) -> int:
    return sum(unicodedata.category(character)[0] != "M" for character in word)


def _examples(sample: Sequence[_Sampled], lengths: Sequence[Lengths]) -> tuple[SampledPair, ...]:
    numbers = range(len(sample))

    def unevenness(number: int) -> float:
        return abs(math.log(lengths[number].tgt_characters / lengths[number].src_characters))

    def longest(number: int) -> int:
        return max(lengths[number].src_characters, lengths[number].tgt_characters)

    uneven = sorted(numbers, key=unevenness, reverse=True)[:_EXAMPLES]
    long = sorted(numbers, key=longest, reverse=True)[:_EXAMPLES]
    return tuple(
        SampledPair(_short(sample[number].src), _short(sample[number].tgt), lengths[number])
        for number in dict.fromkeys([*uneven, *long])
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

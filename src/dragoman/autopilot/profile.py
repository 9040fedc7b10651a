"""What a corpus is like, in numbers. Every choice of the autopilot is made from them and the machine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SideProfile:
    """One side. Counts of characters and words are exact; shares and types come from the sample."""

    characters: int
    words: int
    longest: int
    """Characters of the longest line."""
    single_words: int
    """Lines of one word."""
    words_a_line: tuple[int, ...]
    """Quantiles, in the order of `QUANTILES`."""
    alphabet: int
    """Different characters."""
    scripts: tuple[tuple[str, float], ...]
    """Scripts of the letters with their shares, the most frequent first."""
    word_types: int
    word_tokens: int
    """Different words and words of the sample."""
    frequent_words: float
    """Share of the words that are seen often: near 1 where the vocabulary is closed."""
    word_length: float
    """Characters of a word, combining marks not counted."""
    tags: float
    """Share of lines with a bundle of features, such as `V;PST;3;SG`."""
    digits: float
    """Share of characters that are digits."""
    code: float
    """Share of characters that are brackets, operators and other marks of formal languages."""


@dataclass(frozen=True)
class Lengths:
    """Of one sampled pair: characters and segments (words, digits and punctuation marks, each by itself)."""

    src_characters: int
    tgt_characters: int
    src_segments: int
    tgt_segments: int


@dataclass(frozen=True)
class SampledPair:
    """A sampled pair, shortened to be shown."""

    src: str
    tgt: str
    lengths: Lengths


@dataclass(frozen=True)
class Profile:
    """A corpus of pairs, or of text (then both sides are the same)."""

    pairs: int
    """With the weights of the corpora, without pairs that have an empty side."""
    empty: int
    copies: int
    """Pairs whose target is the source itself."""
    duplicates: int
    """Pairs that occurred before."""
    src: SideProfile
    tgt: SideProfile
    shared_letters: float
    """How much of the letters of the two sides is the same: 1 where they are equally frequent in both."""
    overlap: float
    """Mean share of the target's characters that the source has too."""
    stem: float
    """Mean share of the target that is one run of characters of the source: high where words are inflected.
    Only of short lines; 0 for others."""
    repeating: float
    """Share of the targets that end in circles, as a search that has lost its way does."""
    log_ratios: tuple[float, ...]
    """Quantiles of log(target characters / source characters)."""
    lengths: tuple[Lengths, ...] = field(repr=False)
    """Of the sample."""
    examples: tuple[SampledPair, ...] = field(repr=False)
    """The most uneven and the longest pairs of the sample."""
    copied_words: float = 0.0
    """Share of the targets' rare words that stand in their own source, less what stands in another one."""
    copied_letters: float = 0.0
    """`overlap`, less that with the source of another pair."""
    brackets: str = ""
    """Pairs of brackets that are valid in every target, where most targets have some."""
    trees: float = 0.0
    """Share of the targets that are trees in brackets, over about as many words as their sources have."""

    @property
    def characters(self) -> int:
        return self.src.characters + self.tgt.characters

    @property
    def duplicate_share(self) -> float:
        return self.duplicates / max(1, self.pairs)


QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that `share` of the ordered values do not exceed."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def quantiles(values: Sequence[float]) -> tuple[float, ...]:
    ordered = sorted(values)
    return tuple(quantile(ordered, share) for share in QUANTILES)

"""Statistics of a corpus. Every choice of the autopilot depends on them and on the machine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SideProfile:
    """One side of the corpus. Counts of characters and words are exact; shares and types come from the
    sample."""

    characters: int
    words: int
    longest: int
    """Number of characters of the longest line."""
    single_words: int
    """Number of lines with one word."""
    words_a_line: tuple[int, ...]
    """Quantiles of words per line, in the order of `QUANTILES`."""
    alphabet: int
    """Number of different characters."""
    scripts: tuple[tuple[str, float], ...]
    """Scripts of the letters with their shares, most frequent first."""
    word_types: int
    word_tokens: int
    """Number of different words, and of all words, in the sample."""
    frequent_words: float
    """Share of the words that occur often: near 1 if the vocabulary is closed."""
    word_length: float
    """Mean number of characters per word, without combining marks."""
    tags: float
    """Share of lines with a bundle of features, such as `V;PST;3;SG`."""
    digits: float
    """Share of characters that are digits."""
    code: float
    """Share of characters that are brackets, operators and other marks of formal languages."""
    known_words: float = 1.0
    """Share of the words, without numbers and punctuation, that occur often. 1 if most words are numbers."""
    segments_a_name: float = 1.0
    """Number of segments (see `Lengths`), divided by their number if identifiers such as `t0.total_sum` are
    one segment each."""


@dataclass(frozen=True)
class Lengths:
    """Lengths of a sampled pair: characters and segments (words, digits and punctuation marks are one
    each)."""

    src_characters: int
    tgt_characters: int
    src_segments: int
    tgt_segments: int


@dataclass(frozen=True)
class SampledPair:
    """A sampled pair, shortened for display."""

    src: str
    tgt: str
    lengths: Lengths


@dataclass(frozen=True)
class Profile:
    """Statistics of a corpus of pairs, or of monolingual text (then both sides are equal)."""

    pairs: int
    """Number of pairs, weighted as the corpora are, without pairs that have an empty side."""
    empty: int
    copies: int
    """Number of pairs whose target equals the source."""
    duplicates: int
    """Number of pairs that occurred before."""
    src: SideProfile
    tgt: SideProfile
    shared_letters: float
    """Overlap of the letter distributions of both sides: 1 if they are equal."""
    overlap: float
    """Mean share of the target's characters that also occur in the source."""
    stem: float
    """Mean share of the target covered by its longest common substring with the source: high for inflected
    words. Computed for short lines only; 0 for others."""
    repeating: float
    """Share of the targets that end in repetition, like a degenerate search output."""
    log_ratios: tuple[float, ...]
    """Quantiles of log(target characters / source characters)."""
    lengths: tuple[Lengths, ...] = field(repr=False)
    """Lengths of the sampled pairs."""
    examples: tuple[SampledPair, ...] = field(repr=False)
    """The most uneven and the longest pairs of the sample."""
    copied_words: float = 0.0
    """Share of the targets' rare words that occur in their own source, minus the share in another source."""
    copied_letters: float = 0.0
    """`overlap` minus the overlap with the source of another pair."""
    brackets: str = ""
    """Bracket pairs that are balanced in every target, if most targets have brackets."""
    trees: float = 0.0
    """Share of the targets that are bracketed trees over about as many words as their sources."""

    @property
    def characters(self) -> int:
        return self.src.characters + self.tgt.characters

    @property
    def own_letters(self) -> float:
        """Of the target's characters that another source does not have, the share that its own has."""
        elsewhere = self.overlap - self.copied_letters
        return max(0.0, self.copied_letters) / max(1e-9, 1 - elsewhere)

    @property
    def duplicate_share(self) -> float:
        return self.duplicates / max(1, self.pairs)


QUANTILES = (0.0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest of the ordered values that at least `share` of them do not exceed."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def quantiles(values: Sequence[float]) -> tuple[float, ...]:
    ordered = sorted(values)
    return tuple(quantile(ordered, share) for share in QUANTILES)

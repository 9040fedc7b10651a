"""What a side looks like, and which kind of task a corpus is, for choices that differ between them."""

from dataclasses import dataclass
from enum import Enum

from dragoman.autopilot.profile import Profile, SideProfile

_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""Scripts without spaces between words."""
_UNSPACED_WORD = 12
"""Largest mean number of characters of words in these scripts; longer lines are sentences."""
_NUMBERS, _SOURCE_NUMBERS, _SHORT = 0.5, 0.3, 100
"""For numbers: smallest share of digits of both sides together, and of the source; largest mean number of
characters of a side."""
_KNOWN, _CHANGED, _LETTERS_A_LINE = 0.15, 0.5, 200
"""Text is rewritten letter by letter if at most the first share of a side's words occurs often, fewer than
the second share of rare words are copied, and sides have at most this mean number of characters. In natural
text more words occur often: 0.27 in 2,000 Turkish sentences."""
MOSTLY_COPIED = 0.8
"""Share of the target's characters that also occur in the source. Above it, sentences learn less with
R-Drop."""
_OWN_LETTERS, _EQUALLY_LONG = 0.5, 0.06
"""Sentences are retouched letter by letter if at least this share of the letters that another source does
not have is copied, and if nearly all logarithms of ratios of lengths are as small as this."""
_TERM_WORDS, _TERM_CHARACTERS = 3.0, 30
"""Largest mean number of words and characters of a side of a list of terms."""
_LONG_SOURCE, _TIMES_SHORTER, _SEVERAL_WORDS = 50, 5, 3
_FROM_SOURCE = 0.2
"""Share of the rare words of targets that occur in their own source. In dialogues it is about a tenth."""


@dataclass(frozen=True)
class Looks:
    """The appearance of one side. At most one of the first three fields is true."""

    words: bool
    """Single words or a few: names, word forms, spellings."""
    symbols: bool
    """A small closed set of symbols separated by spaces: phonemes, actions."""
    tagged: bool
    """A word with a bundle of features."""
    closed: bool
    """Nearly every word is frequent: a formal language, or sentences from a grammar."""
    formal: bool
    """Code, formulas or trees: much punctuation that has to be exact."""

    @property
    def name(self) -> str:
        kinds = {"single words": self.words, "symbols": self.symbols, "a word with features": self.tagged}
        kinds["formal text"] = self.formal
        kinds["sentences of few different words"] = self.closed
        return next((name for name, holds in kinds.items() if holds), "sentences")

    @property
    def spelt(self) -> bool:
        return self.words or self.tagged or self.symbols


def looks_of(side: SideProfile, pairs: int) -> Looks:
    lines = max(1, pairs)
    mean_words, mean_characters = side.words / lines, side.characters / lines
    single = side.single_words / lines
    tagged = side.tags > 0.8 and mean_words <= 4
    closed = is_closed(side)
    symbols = closed and side.word_types <= 500 and mean_words >= 2.5 and side.word_length <= 3
    few = mean_words <= 2.0 and side.words_a_line[6] <= 4 and mean_characters <= 40
    longest = _UNSPACED_WORD if is_unspaced(side) else 60
    words = not tagged and not symbols and (single >= 0.7 or few) and mean_characters <= longest
    return Looks(words, symbols, tagged, closed and not words, side.code >= 0.04 and not words and not tagged)


def is_closed(side: SideProfile) -> bool:
    return side.frequent_words >= 0.97 and side.word_types <= 1500 and side.word_tokens >= 10


def is_unspaced(side: SideProfile) -> bool:
    return sum(share for name, share in side.scripts if name in _UNSPACED) > 0.5


class Kind(Enum):
    """The kind of task."""

    NUMBERS = "numbers"
    """Outputs are computed from every digit: sums, units, dates in numbers, sequences to sort."""
    WORDS = "words"
    """Words, names, terms or symbols for them, one or a few a line."""
    LETTERS = "letters"
    """Text that is rewritten letter by letter: codes, sequences, text without spaces or accents."""
    TEXT = "text"
    """Everything else: sentences, queries, code, labels."""

    @property
    def spelt(self) -> bool:
        """Whether both sides are spelt, in letters, phonemes or digits."""
        return self is not Kind.TEXT


def kind_of(profile: Profile) -> Kind:
    src, tgt = looks_of(profile.src, profile.pairs), looks_of(profile.tgt, profile.pairs)
    if _is_numbers(profile):
        return Kind.NUMBERS
    if (src.spelt and tgt.spelt) or _is_terms(profile, src, tgt):
        return Kind.WORDS
    return Kind.LETTERS if _is_rewritten(profile) else Kind.TEXT


def is_spelt(profile: Profile) -> bool:
    return kind_of(profile).spelt


def _is_numbers(profile: Profile) -> bool:
    src, tgt = profile.src, profile.tgt
    most = _SHORT * max(1, profile.pairs)
    digits = src.digits * src.characters + tgt.digits * tgt.characters
    short = max(src.characters, tgt.characters) <= most
    return short and src.digits >= _SOURCE_NUMBERS and digits >= _NUMBERS * profile.characters


def _is_terms(profile: Profile, src: Looks, tgt: Looks) -> bool:
    """Whether both sides have a few words, and one mostly a single one."""
    lines = max(1, profile.pairs)
    few = all(
        side.words <= _TERM_WORDS * lines and side.characters <= _TERM_CHARACTERS * lines
        for side in (profile.src, profile.tgt)
    )
    open_sets = not any(
        looks.formal or is_closed(side) for looks, side in ((src, profile.src), (tgt, profile.tgt))
    )
    return few and open_sets and (src.words or tgt.words)


def _is_rewritten(profile: Profile) -> bool:
    sides = (profile.src, profile.tgt)
    lines = max(1, profile.pairs)
    short = all(side.characters <= _LETTERS_A_LINE * lines for side in sides)
    if any(is_closed(side) and side.words > lines for side in sides):  # whose words are symbols
        return False
    unknown = any(side.known_words <= _KNOWN and not is_unspaced(side) for side in sides)
    return short and (unknown or _is_retouched(profile)) and profile.copied_words < _CHANGED


def _is_retouched(profile: Profile) -> bool:
    """Whether targets are their sources with a few letters changed: accents, capitals, punctuation."""
    _, _, low, _, _, _, high, _, _ = profile.log_ratios
    alike = profile.overlap >= MOSTLY_COPIED and profile.own_letters >= _OWN_LETTERS
    return alike and max(abs(low), abs(high)) <= _EQUALLY_LONG


def is_summary(profile: Profile) -> bool:
    """Whether targets are short summaries of long sources."""
    pairs = max(1, profile.pairs)
    src, tgt = profile.src.words / pairs, profile.tgt.words / pairs
    sentences = looks_of(profile.tgt, profile.pairs).name == "sentences"
    short = src >= _LONG_SOURCE and src >= _TIMES_SHORTER * tgt and tgt >= _SEVERAL_WORDS
    return sentences and short and profile.copied_words >= _FROM_SOURCE

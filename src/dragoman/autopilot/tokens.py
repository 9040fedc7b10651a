"""Choice of the tokenizer: its kind and size, one vocabulary or two; and estimated lengths in pieces."""

import math
from dataclasses import dataclass, replace
from typing import Any

from dragoman.autopilot.choice import Choice, percent
from dragoman.autopilot.kinds import Kind, Looks, is_closed, is_unspaced, kind_of, looks_of
from dragoman.autopilot.profile import Lengths, Profile, SideProfile

_CHARACTERS_OF_8000 = 3_800_000
"""Number of characters for a vocabulary of 8,000 pieces. A smaller corpus gets proportionally fewer, a larger
one more with the square root."""
_PIECES = (500, 32_000)
_COPYING = 0.8
"""Overlap of the sides from which outputs are mostly copied from the source, which needs fewer pieces."""
_LEAST_OF_TRANSLATION = 4000
_ENOUGH_FOR_FEATURES = 5000
"""Number of pairs from which features become single pieces. With fewer pairs each is seen too rarely."""
_LETTER_LIKE = 1.6
"""Mean length of symbols up to which they can be spelt letter by letter as well."""
_COPIED = 0.2
"""Share of rare words that are copied from the source."""
_SHARED = 0.2
_KNOWN_NAMES, _SEGMENTS_A_NAME = 0.9, 1.3
"""Smallest share of frequent words in formal targets, and smallest number of segments of their identifiers,
from which identifiers are kept whole."""
_MANY = 200_000
"""Number of pairs from which two scripts need separate vocabularies."""
_CONTROL_AND_BYTES = 259
_CHARACTERS_A_PIECE = 4.5
_UNSPACED_CHARACTERS_A_PIECE = 1.6


def tokenizer_kind(profile: Profile) -> Choice[dict[str, Any]]:
    """The section `tokenizer` without sizes."""
    src, tgt = looks_of(profile.src, profile.pairs), looks_of(profile.tgt, profile.pairs)
    kind = kind_of(profile)
    if kind is Kind.NUMBERS:
        return Choice({"kind": "char"}, "both sides are numbers, and every digit counts")
    if kind is Kind.LETTERS:
        return Choice(
            {"kind": "char"},
            "hardly a word is seen often, or sentences differ from their source in a few letters",
        )
    often = max(5, profile.pairs // 500)
    long_symbols = [
        side
        for side, looks in ((profile.src, src), (profile.tgt, tgt))
        if looks.symbols and side.word_length > _LETTER_LIKE
    ]
    if kind.spelt and long_symbols:
        which = "both sides are" if src.symbols and tgt.symbols else f"the {_side(src.symbols)} is"
        section = {"kind": "word", "min_frequency": min(often, 10)}
        section |= {"split_punctuation": False, "split_digits": False}
        return Choice(section, f"{which} symbols with spaces between them; words are spelt in letters")
    if kind.spelt and (src.tagged or tgt.tagged) and profile.pairs >= _ENOUGH_FOR_FEATURES:
        section = {"kind": "word", "min_frequency": often}
        return Choice(section, f"features of the {_side(src.tagged)} are symbols, words are spelt in letters")
    if kind.spelt:
        return Choice({"kind": "char"}, f"{src.name} → {tgt.name}")
    if profile.tgt.word_tokens == 0:
        return Choice({"kind": "byte"}, "there is no text to learn a vocabulary from")
    if _whole_words(profile):
        why = "both sides have few different words, so each can be a piece, with its punctuation"
        return Choice({"kind": "bpe", "split_punctuation": False}, why)
    if _keeps_identifiers(profile):
        why = f"{src.name} → {tgt.name}, whose identifiers are kept whole"
        return Choice({"kind": "bpe", "keep_identifiers": True}, why)
    return Choice({"kind": "bpe"}, f"{src.name} → {tgt.name}")


def _whole_words(profile: Profile) -> bool:
    """Whether words keep their punctuation in one piece: if there are few words, and none is copied without
    it."""
    closed = all(looks_of(side, profile.pairs).closed for side in (profile.src, profile.tgt))
    return closed and profile.copied_words < _COPIED


def _keeps_identifiers(profile: Profile) -> bool:
    """Whether identifiers such as `t0.total_sum` are pieces: if targets are formal and use the same ones
    again and again."""
    tgt = looks_of(profile.tgt, profile.pairs)
    known = profile.tgt.frequent_words >= _KNOWN_NAMES and profile.tgt.segments_a_name >= _SEGMENTS_A_NAME
    return tgt.formal and known and not _whole_words(profile)


def _side(source: bool) -> str:
    return "source" if source else "target"


def joint_vocabulary(profile: Profile, kind: str) -> Choice[bool]:
    src, tgt = looks_of(profile.src, profile.pairs), looks_of(profile.tgt, profile.pairs)
    if kind == "word" and src.symbols != tgt.symbols:
        return Choice(False, "letters on one side, symbols on the other")
    if kind == "bpe" and profile.shared_letters < _SHARED and profile.pairs >= _MANY:
        return Choice(
            False, f"the letters of both sides are the same to only {percent(profile.shared_letters)}"
        )
    return Choice(True, "source and target may share letters and words")


def vocabulary_size(profile: Profile, kind: str, joint: bool) -> Choice[int]:
    """Vocabulary size at which nearly all pieces occur often. For much text it grows with the square root
    (Heaps' law); for little text it is smaller."""
    alphabet = max(profile.src.alphabet, profile.tgt.alphabet)
    least = _CONTROL_AND_BYTES + 2 * alphabet
    if kind in ("char", "byte"):
        return Choice(max(1000, 2 * least), "all letters")
    if kind == "word":
        types = max(profile.src.word_types, profile.tgt.word_types)
        return Choice(max(1000, min(8000, least + types)), "symbols that are seen often")
    characters = profile.characters if joint else profile.characters / 2
    per_character = 2.0 if is_unspaced(profile.src) or is_unspaced(profile.tgt) else 1.0
    characters *= per_character
    share = characters / _CHARACTERS_OF_8000
    size = 8000 * (share if share < 1 else math.sqrt(share))
    if profile.overlap < _COPYING:
        size = max(size, min(_LEAST_OF_TRANSLATION, characters / 260))
    low, high = _PIECES
    wanted = min(high, max(low, size, min(high, least)))
    step = 100 if wanted < 2000 else 500 if wanted < 10_000 else 1000
    return Choice(
        int(wanted // step * step), f"for {profile.characters:,} characters: pieces should be seen often"
    )


@dataclass(frozen=True)
class TokenCounts:
    """Estimated number of pieces of the sampled pairs, and the number of pairs of the corpus."""

    src: tuple[int, ...]
    tgt: tuple[int, ...]
    pairs: int

    def cut(self, longest: int) -> "TokenCounts":
        """The counts with sources cut to `longest` pieces."""
        return replace(self, src=tuple(min(count, longest) for count in self.src))

    @property
    def src_mean(self) -> float:
        return sum(self.src) / max(1, len(self.src))

    @property
    def tgt_mean(self) -> float:
        return sum(self.tgt) / max(1, len(self.tgt))

    @property
    def longer(self) -> tuple[int, ...]:
        return tuple(map(max, self.src, self.tgt))

    @property
    def longer_mean(self) -> float:
        return sum(self.longer) / max(1, len(self.src))

    @property
    def batched(self) -> int:
        """Number of tokens of the corpus as batches count them: the longer side and its end mark."""
        return int(self.pairs * (self.longer_mean + 1))


def fewest_tokens(profile: Profile, kind: str) -> TokenCounts:
    """The counts if each word of a closed set, such as a label, is one piece."""
    counts = count_tokens(profile, kind)
    if kind != "bpe":
        return counts
    src, tgt = (is_closed(side) for side in (profile.src, profile.tgt))
    return TokenCounts(
        tuple(n.src_segments for n in profile.lengths) if src else counts.src,
        tuple(n.tgt_segments for n in profile.lengths) if tgt else counts.tgt,
        counts.pairs,
    )


def count_tokens(profile: Profile, kind: str) -> TokenCounts:
    src, tgt = looks_of(profile.src, profile.pairs), looks_of(profile.tgt, profile.pairs)

    whole_words = _whole_words(profile)
    identifiers = _keeps_identifiers(profile)

    def pieces(characters: int, segments: int, side: SideProfile, looks: Looks) -> int:
        if kind == "byte":
            return characters * (2 if side.scripts and side.scripts[0][0] != "LATIN" else 1)
        if kind == "char":
            return characters
        if (kind == "word" and looks.symbols) or (kind == "bpe" and whole_words):
            return max(1, round(characters * side.words / side.characters))
        if kind == "word":
            return segments if looks.closed else characters + 1
        if identifiers and looks.formal:
            return max(1, round(1.15 * segments / side.segments_a_name))
        a_piece = _UNSPACED_CHARACTERS_A_PIECE if is_unspaced(side) else _CHARACTERS_A_PIECE
        return max(1, round(1.15 * max(segments, characters / a_piece)))

    def both(n: Lengths) -> tuple[int, int]:
        return (
            pieces(n.src_characters, n.src_segments, profile.src, src),
            pieces(n.tgt_characters, n.tgt_segments, profile.tgt, tgt),
        )

    counted = [both(lengths) for lengths in profile.lengths]
    return TokenCounts(tuple(n for n, _ in counted), tuple(n for _, n in counted), profile.pairs)

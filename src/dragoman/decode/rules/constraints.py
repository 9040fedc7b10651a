"""Constraints on one translation in tokens: made from text once, used by the rules of a search."""

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dragoman.errors import UserError
from dragoman.text.glossary import Glossary
from dragoman.text.piece_bytes import Spelling, may_be_in_word
from dragoman.text.segment import nfc
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import has_phrase, is_word_character

Alternatives = tuple[tuple[int, ...], ...]
"""Token sequences, one of which is required."""


@dataclass(frozen=True)
class Constraints:
    """The constraints on one sentence. The defaults constrain nothing.

    `head` are the tokens that it begins with, `tail` the bytes that follow, in any tokens; `ends_word`: no
    word continues beyond them; `goes_on`: something must follow. Of each member of `required` one sequence
    must occur as whole words, at as many positions as the member is listed. None of `forbidden` may occur as
    whole words.
    """

    head: tuple[int, ...] = ()
    tail: bytes = b""
    ends_word: bool = False
    goes_on: bool = False
    required: tuple[Alternatives, ...] = ()
    forbidden: tuple[str, ...] = ()
    spelling: Spelling | None = field(default=None, compare=False, repr=False)
    """The texts of the tokens of the vocabulary; None without constraints."""

    @property
    def longest_prefix(self) -> int:
        """Most tokens of head and tail: the tail may be spelt in bytes."""
        return len(self.head) + len(self.tail) + self.goes_on

    @property
    def writes_something(self) -> bool:
        """Whether the empty text violates the constraints."""
        return bool(self.longest_prefix or self.required)

    @property
    def required_pieces(self) -> int:
        """Number of tokens that suffices for all required phrases, with a space before each that needs
        one."""
        if not self.required or self.spelling is None:
            return 0
        needs_space = self.spelling.may_continue
        return sum(min(len(way) + int(needs_space[way[0]]) for way in ways) for ways in self.required)

    @property
    def room(self) -> int:
        """Number of tokens, including `</s>`, that leaves enough for the required phrases after any
        segmentation of the prefix."""
        return self.longest_prefix + self.required_pieces + 2 if self.writes_something else 1


FREE = Constraints()
"""No constraints."""


def constraints_for(
    tokenizer: Tokenizer,
    *,
    prefix: str = "",
    prefix_open: bool = False,
    required: Sequence[str | Sequence[str]] = (),
    forbidden: Sequence[str] = (),
) -> Constraints:
    """Constraints on text, in the tokens of `tokenizer`; contradictory constraints are an error.

    A member of `required` is a phrase, or a list of variants of which one is enough.
    """
    prefix = nfc(prefix)
    banned = tuple(dict.fromkeys(_phrase(text, "forbidden") for text in forbidden))
    wanted = [_variants(member) for member in required]
    for phrase in banned:
        # A word at the end of an open prefix can still become another one.
        if has_phrase(f"{prefix}x" if prefix_open else prefix, phrase):
            raise UserError(f"prefix: {prefix!r} holds {phrase!r}, which is forbidden; drop one of the two")
    allowed = [tuple(v for v in variants if not any(has_phrase(v, b) for b in banned)) for variants in wanted]
    for variants, left in zip(wanted, allowed, strict=True):
        if not left:
            raise UserError(
                f"required: {'|'.join(variants)!r}, from the list or the glossary, holds a forbidden phrase; "
                "drop one of the two"
            )
    head, tail = _prefix(tokenizer, prefix, prefix_open)
    found = Constraints(
        head=(*tokenizer.opening, *head) if prefix else (),
        tail=tail,
        ends_word=bool(prefix) and not prefix_open and is_word_character(prefix[-1]),
        # Decoding drops the mark at the very end, so a prefix that ends in one needs something behind it.
        goes_on=prefix.endswith(" ") and _mark(tokenizer) == "end",
        required=tuple(_sequences(tokenizer, variants) for variants in allowed),
        forbidden=banned,
    )
    return found if found == FREE else replace(found, spelling=tokenizer.spelling)


def constraints_of_texts(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    prefixes: Sequence[str] | None,
    prefix_open: bool,
    required: Sequence[Sequence[str | Sequence[str]]] | None,
    forbidden: Sequence[str] | Sequence[Sequence[str]],
    glossary: Glossary | None,
) -> list[Constraints]:
    """The constraints for several texts; see `Translator.hypotheses`."""
    if prefixes is None and required is None and not forbidden and glossary is None:
        return [FREE] * len(texts)
    for name, given in (("prefixes", prefixes), ("required", required)):
        if given is not None and (isinstance(given, str) or len(given) != len(texts)):
            raise UserError(f"{name}: expected one for each of the {len(texts)} texts, found {len(given)}")
    if isinstance(forbidden, str):
        raise UserError(f"forbidden: expected a list of phrases, found one string; write [{forbidden!r}]")
    for_all = tuple(phrase for phrase in forbidden if isinstance(phrase, str))
    if for_all and len(for_all) < len(forbidden):
        raise UserError("forbidden: expected phrases for all texts or a list for each, found both")
    if not for_all and forbidden and len(forbidden) != len(texts):
        raise UserError(f"forbidden: expected a list for each of {len(texts)} texts, found {len(forbidden)}")
    return [
        constraints_for(
            tokenizer,
            prefix=prefixes[i] if prefixes else "",
            prefix_open=prefix_open,
            required=[
                *(required[i] if required else ()),
                *([match.targets for match in glossary.matches(text)] if glossary else ()),
            ],
            forbidden=for_all or (forbidden[i] if forbidden else ()),
        )
        for i, text in enumerate(texts)
    ]


def _mark(tokenizer: Tokenizer) -> str | None:
    """The position of the word-boundary mark, in vocabularies that have one."""
    return tokenizer.config.word_mark if tokenizer.kind in ("bpe", "word") else None


def _phrase(text: str, field: str) -> str:
    phrase = nfc(text).strip()
    if not phrase:
        raise UserError(f"{field}: expected a word or phrase, found {text!r}")
    return phrase


def _variants(member: str | Sequence[str]) -> tuple[str, ...]:
    variants = [member] if isinstance(member, str) else member
    if not variants:
        raise UserError("required: expected a phrase or several variants of one, found an empty list")
    return tuple(dict.fromkeys(_phrase(text, "required") for text in variants))


def _sequences(tokenizer: Tokenizer, variants: Sequence[str]) -> Alternatives:
    """Every phrase as it is tokenized in running text: with its space mark, and next to punctuation."""
    mark = _mark(tokenizer)
    spelt: list[tuple[int, ...]] = []
    for phrase in variants:
        if mark:
            spelt.append(tuple(tokenizer.spell(f" {phrase}" if mark == "start" else f"{phrase} ")))
        spelt.append(tuple(tokenizer.spell(phrase)))
    return tuple(dict.fromkeys(spelt))


def _prefix(tokenizer: Tokenizer, prefix: str, prefix_open: bool) -> tuple[tuple[int, ...], bytes]:
    """Tokens for all but the undecided end: how the last word is tokenized depends on what follows it.

    word_mark   prefix          head        tail
    start       "the cat"       ▁the ▁cat                closed
    start       "the cat"       ▁the        ▁cat         open: it may become ▁cat s, or ▁catalogue
    start       "the "          ▁the        ▁            the space belongs to the next word
    end         "the cat"       the▁        cat          it may become cat▁, or cat before a full stop
    """
    if not prefix:
        return (), b""
    mark = _mark(tokenizer)
    if mark is None:
        return tuple(tokenizer.spell(prefix)), b""
    if mark == "start":
        prefix = f" {prefix}"
        if not prefix_open and not prefix.endswith(" "):
            return tuple(tokenizer.spell(prefix)), b""
    *whole, last = tokenizer.segments(prefix)
    return tuple(tokenizer.spell("".join(whole))), last.encode("utf-8")


def counted(required: Sequence[Alternatives]) -> list[tuple[Alternatives, int]]:
    """Each requirement once, with the number of positions at which it is needed."""
    return list(Counter(required).items())


@functools.lru_cache(maxsize=1024)
def agreeing(left: bytes, ends_word: bool, goes_on: bool, spelling: Spelling, eos_id: int) -> np.ndarray:
    """The tokens that may follow if `left` is the rest of the tail."""
    allowed = np.zeros(len(spelling), dtype=bool)
    if not left:
        allowed[:] = True
        if ends_word:
            allowed &= ~spelling.may_continue
        if ends_word or goes_on:
            allowed &= spelling.widths > 0
        allowed[eos_id] = not goes_on
        return allowed
    for place, piece in enumerate(spelling.pieces):
        if piece and left.startswith(piece):
            allowed[place] = True
        elif piece.startswith(left):
            beyond = piece[len(left) :].decode("utf-8", errors="surrogateescape")
            allowed[place] = not (ends_word and may_be_in_word(beyond[0]))
    return allowed

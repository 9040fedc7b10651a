"""The options of a tokenizer, and its file in JSON. Equal tokenizers give equal bytes; reading checks them.

    {"format": ..., "version": 1, "config": {...}, "pieces": [piece of id 0, ...], "merges": ["e s", ...],
     "checksum": SHA-256 of the file as it is without this field}

The file holds only data: no patterns, no pipeline, no names of code. Every vocabulary begins with the pieces
that its options name.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from dragoman.config import from_dict, to_dict
from dragoman.errors import UserError, shown
from dragoman.files import explained, open_regular, read_regular, replace_file
from dragoman.plain import parse_json

PAD_ID, BOS_ID, EOS_ID = 0, 1, 2
CONTROL_PIECES = ("<pad>", "<s>", "</s>")
MARK = "▁"
"""A space in the written form of a piece. Internally a space is a space, and a literal ▁ is spelt in
bytes."""
BYTE_PIECES = tuple(f"<0x{value:02X}>" for value in range(256))

TokenizerKind = Literal["bpe", "word", "char", "byte"]
MarkPlace = Literal["start", "end"]

LARGEST_VOCABULARY = 1_000_000


@dataclass(frozen=True)
class TokenizerConfig:
    """The options of a tokenizer.

    A vocabulary is laid out as: `<pad>`, `<s>`, `</s>`, `specials`, the 256 bytes, the alphabet, then merges
    (kind bpe) or words (kind word). `vocab_size` counts all of them; a small text may fill fewer places.
    """

    kind: TokenizerKind = "bpe"
    vocab_size: int = 8000
    joint: bool = True
    """One vocabulary for source and target."""
    min_frequency: int = 2
    """Rarer characters, merges and words get no piece."""
    word_mark: MarkPlace = "start"
    """The space of a word: before it (▁word) or after it (word▁)."""
    split_punctuation: bool = True
    split_digits: bool = True
    keep_identifiers: bool = False
    """Names of formal languages are words: letters with digits, `_` and single dots among them."""
    dropout: float = 0.0
    """Rate of BPE-dropout on training text (Provilkov et al. 2020)."""
    specials: tuple[str, ...] = ()
    """Further control pieces, such as `<2de>`; no text can become one."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(TokenizerKind):
            raise UserError(
                f"kind: expected one of {', '.join(get_args(TokenizerKind))}, found {self.kind!r}"
            )
        if self.word_mark not in get_args(MarkPlace):
            raise UserError(f"word_mark: expected start or end, found {self.word_mark!r}")
        if not 1 <= self.min_frequency < 1 << 32:
            raise UserError(f"min_frequency: expected at least 1, and below 2^32, found {self.min_frequency}")
        if not 0.0 <= self.dropout <= 1.0:
            raise UserError(f"dropout: expected a rate from 0 to 1, found {self.dropout}")
        if self.dropout and self.kind != "bpe":
            raise UserError(
                f"dropout: {self.dropout} needs kind bpe, but kind is {self.kind}; set dropout to 0"
            )
        self._check_specials()
        self._check_size()

    def _check_specials(self) -> None:
        taken = {*CONTROL_PIECES, *BYTE_PIECES}
        for piece in self.specials:
            inner = piece[1:-1]
            # "<" is never merged with anything, so a piece of this form cannot come out of text.
            well_formed = piece[:1] == "<" and piece[-1:] == ">" and inner and not set(inner) & set("<> ▁")
            if not (well_formed and piece.isprintable()):
                raise UserError(f"specials: {piece!r} must have the form <name>, without spaces")
            if piece in taken:
                raise UserError(f"specials: {piece!r} is in the vocabulary already; choose another name")
            taken.add(piece)

    def _check_size(self) -> None:
        least, mark = len(self.first_pieces), ""
        if self.kind != "byte":
            least, mark = least + 1, " and the space mark"
        if self.vocab_size < least:
            raise UserError(
                f"vocab_size: {self.vocab_size} is too small for {len(self.first_pieces) - 256} control "
                f"pieces, 256 bytes{mark}; use at least {least}"
            )
        if self.vocab_size > LARGEST_VOCABULARY:
            raise UserError(f"vocab_size: {self.vocab_size} is more than the limit of {LARGEST_VOCABULARY}")

    @property
    def first_pieces(self) -> tuple[str, ...]:
        """The pieces that every vocabulary with these options begins with: control pieces, then bytes."""
        return (*CONTROL_PIECES, *self.specials, *BYTE_PIECES)


TOKENIZER_FORMAT = "dragoman tokenizer"
PUBLISHED_FORMAT = "dragoman published tokenizer"
TOKENIZER_VERSION = 1
LARGEST_FILE, MOST_VALUES = 256 << 20, 8_000_000
_FIELDS = ("format", "version", "config", "pieces", "merges", "checksum")


@dataclass(frozen=True)
class Vocabulary:
    """A tokenizer as data. A space inside a piece is written ▁; no piece has a literal ▁."""

    config: TokenizerConfig
    pieces: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]

    @property
    def alphabet_end(self) -> int:
        """The first id after the alphabet: that of the first merged piece or word."""
        first = len(self.config.first_pieces)
        return next((i for i in range(first, len(self.pieces)) if len(self.pieces[i]) > 1), len(self.pieces))


def vocabulary_bytes(vocabulary: Vocabulary) -> bytes:
    """The bytes of the file. Equal vocabularies give equal bytes."""
    content: dict[str, Any] = {
        "format": TOKENIZER_FORMAT,
        "version": TOKENIZER_VERSION,
        "config": to_dict(vocabulary.config),
        "pieces": list(vocabulary.pieces),
        "merges": [f"{left} {right}" for left, right in vocabulary.merges],
    }
    return sealed(content)


def sealed(content: dict[str, Any]) -> bytes:
    """Plain data as the bytes of a file, with their checksum as the last field."""
    return _dump(content | {"checksum": hashlib.sha256(_dump(content)).hexdigest()})


def write_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    write_bytes(vocabulary_bytes(vocabulary), path)


def write_bytes(data: bytes, path: Path) -> None:
    """Write the file atomically: a crash leaves the old one or the new one."""
    with explained(path):
        replace_file(path, data)


def read_vocabulary_file(path: Path) -> Vocabulary:
    """Read and check a file. Anything that dragoman would not have written is refused."""
    data, content = read_tokenizer_json(path)
    try:
        vocabulary = _check(content)
        if vocabulary_bytes(vocabulary) != data:
            raise UserError("its contents do not match its checksum")
    except UserError as error:
        raise UserError(f"{path}: not a sound tokenizer file: {error}") from None
    return vocabulary


def is_published(path: Path) -> bool:
    """Whether the file is of a published tokenizer (`text/published_tokenizer.py`)."""
    try:
        with open_regular(path) as file:
            return f'"{PUBLISHED_FORMAT}"'.encode() in file.read(64)
    except (OSError, UserError):
        return False  # reading it gives the reason


def read_tokenizer_json(path: Path) -> tuple[bytes, Any]:
    """The bytes of a file, and their content."""
    data = _read_bytes(path)
    try:
        return data, parse_json(data, MOST_VALUES)
    except UserError as error:
        raise UserError(f"{path}: not a tokenizer file ({error})") from None


def _dump(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode("utf-8")


def _read_bytes(path: Path) -> bytes:
    try:
        return read_regular(path, LARGEST_FILE)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def _check(content: object) -> Vocabulary:
    if not isinstance(content, dict) or content.get("format") != TOKENIZER_FORMAT:
        raise UserError(f"it does not say that its format is '{TOKENIZER_FORMAT}'")
    if content.get("version") != TOKENIZER_VERSION:
        raise UserError(
            f"its version is {shown(content.get('version'))}, and this dragoman reads version "
            f"{TOKENIZER_VERSION}"
        )
    if set(content) != set(_FIELDS):
        raise UserError(f"expected the fields {', '.join(_FIELDS)}, found {shown(list(content))}")
    config = from_dict(TokenizerConfig, content["config"], "config")
    vocabulary = Vocabulary(config, tuple(_texts(content, "pieces")), tuple(_merges(content)))
    _check_pieces(vocabulary)
    _check_merges(vocabulary)
    return vocabulary


def _texts(content: dict[str, Any], field: str) -> list[str]:
    values = content[field]
    if not isinstance(values, list):
        raise UserError(f"{field}: expected a list")
    for place, value in enumerate(values):
        if not isinstance(value, str) or not value:
            raise UserError(f"{field}[{place}]: expected text, found {shown(value)}")
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise UserError(f"{field}[{place}]: {shown(value)} holds a lone surrogate")
    return values


def _merges(content: dict[str, Any]) -> list[tuple[str, str]]:
    merges = []
    for place, text in enumerate(_texts(content, "merges")):
        parts = text.split(" ")
        if len(parts) != 2 or not all(parts):
            raise UserError(
                f"merges[{place}]: expected two pieces and one space between them, found {shown(text)}"
            )
        merges.append((parts[0], parts[1]))
    return merges


def _check_pieces(vocabulary: Vocabulary) -> None:
    config, pieces = vocabulary.config, vocabulary.pieces
    first = config.first_pieces
    if pieces[: len(first)] != first:
        place = next(i for i in range(len(first)) if pieces[i : i + 1] != first[i : i + 1])
        raise UserError(f"pieces[{place}]: expected {first[place]!r}")
    if len(pieces) > config.vocab_size:
        raise UserError(
            f"pieces: {len(pieces)} of them are more than config.vocab_size = {config.vocab_size}"
        )
    if config.kind == "byte" and len(pieces) > len(first):
        raise UserError(f"pieces[{len(first)}]: kind byte has no further pieces")
    if config.kind != "byte" and pieces[len(first) : len(first) + 1] != (MARK,):
        raise UserError(f"pieces[{len(first)}]: expected the space mark {MARK!r}")
    if config.kind == "char" and vocabulary.alphabet_end < len(pieces):
        raise UserError(f"pieces[{vocabulary.alphabet_end}]: kind char has pieces of one character only")
    seen: dict[str, int] = {}
    for place, piece in enumerate(pieces):
        if piece in seen:
            raise UserError(f"pieces[{place}]: {shown(piece)} is also the piece of id {seen[piece]}")
        seen[piece] = place
        if place < len(first):
            continue
        if " " in piece or ("<" in piece and piece != "<"):
            raise UserError(f"pieces[{place}]: {shown(piece)} holds a character that no piece may hold")
        if place > vocabulary.alphabet_end and len(piece) == 1:
            raise UserError(f"pieces[{place}]: {shown(piece)} is a single character after the alphabet")


def _check_merges(vocabulary: Vocabulary) -> None:
    """Every merge joins two pieces; the pieces after the alphabet are what merges make, in that order."""
    config, pieces, end = vocabulary.config, vocabulary.pieces, vocabulary.alphabet_end
    merges = vocabulary.merges
    if merges and config.kind != "bpe":
        raise UserError(f"merges: kind {config.kind} has none, found {len(merges)}")
    if len(set(merges)) < len(merges):
        raise UserError("merges: the same merge is there twice")
    known = set(pieces[len(config.first_pieces) :])
    for place, (left, right) in enumerate(merges):
        for part in (left, right, left + right):
            if part not in known:
                raise UserError(f"merges[{place}]: {shown(part)} is not a piece")
    made = tuple(dict.fromkeys(left + right for left, right in merges))
    if config.kind == "bpe" and made != pieces[end:]:
        place = next(i for i in range(len(pieces)) if made[i : i + 1] != pieces[end + i : end + i + 1])
        raise UserError(f"pieces[{end + place}]: expected what the merges make, in their order")

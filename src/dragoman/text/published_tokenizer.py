"""The tokenizer of a published model, with the interface of our own.

The library tokenizers segments text, by the model's tokenizer.json or SentencePiece file. The ids are ours:
`<pad>`, `<s>` and `</s>` are 0, 1 and 2, and all other pieces follow in their old order. Unlike our own kinds
it may be lossy, by the model's normalisation and unknown piece.

Text never becomes a control piece. A piece whose stored name begins with U+0000 cannot be spelt by text: a
row of the model without a piece, or a piece of the other language.
"""

import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers

from dragoman.errors import UserError, shown
from dragoman.text.piece_bytes import Spelling
from dragoman.text.segment import nfc
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import (
    BYTE_PIECES,
    CONTROL_PIECES,
    LARGEST_VOCABULARY,
    MARK,
    PUBLISHED_FORMAT,
    TokenizerConfig,
    read_tokenizer_json,
    sealed,
    write_bytes,
)
from dragoman.text.tokenizer_json_checks import check_library, section_parts

PUBLISHED_VERSION = 1
HIDDEN = "\0"
UNUSED = f"{HIDDEN}<unused "
_CONTROLS = range(len(CONTROL_PIECES))
_FIELDS = ("format", "version", "size", "joint", "before", "prefix", "library", "checksum")
_LONGEST_PREFIX = 10_000
_WORDS = re.compile(r" ?[^ ]+| ")


@dataclass(frozen=True)
class Published:
    """A published tokenizer as data."""

    library: dict[str, Any]
    """tokenizer.json with our ids."""
    size: int
    """Rows of the model's embedding; some may have no piece."""
    joint: bool = True
    """Source and target share an embedding; their tokenizers may still differ."""
    before: tuple[int, ...] = ()
    """Pieces that every text begins with."""
    prefix: str = ""
    """Text that is put before every text, such as the name of a task."""
    forced: bool = False
    """A translation begins with `before` whatever the model thinks of it: its language."""


def published_bytes(published: Published) -> bytes:
    """The bytes of the file. Equal tokenizers give equal bytes."""
    return sealed(
        {
            "format": PUBLISHED_FORMAT,
            "version": PUBLISHED_VERSION,
            "size": published.size,
            "joint": published.joint,
            "before": list(published.before),
            "prefix": published.prefix,
            **({"forced": True} if published.forced else {}),
            "library": published.library,
        }
    )


class PublishedTokenizer(Tokenizer):
    """It cannot be trained and has no BPE-dropout; otherwise it is like our own."""

    def __init__(self, published: Published) -> None:
        self.published = published
        self.kind = "published"
        _check_fields(published)
        model = published.library["model"]
        closed = bool(model.get("end_of_word_suffix"))
        self.config = TokenizerConfig(
            vocab_size=max(512, published.size),
            joint=published.joint,
            word_mark="end" if closed else "start",
        )
        self.size, self.opening = published.size, published.before
        self.forced = published.before if published.forced else ()
        self.sha256 = hashlib.sha256(published_bytes(published)).hexdigest()
        self._library = _runtime(published.library)
        names = {number: name for name, number in self._library.get_vocab().items()}
        if not names.keys() >= set(range(self.size)):
            raise UserError(f"its pieces do not have all numbers from 0 to {self.size - 1}")
        stored = [names[number] for number in range(self.size)]
        self._names = [name.removeprefix(HIDDEN) for name in stored]
        silent = {*_CONTROLS, *published.before}
        silent |= {token["id"] for token in _added(published.library) if token["special"]}
        silent |= {number for number, name in enumerate(stored) if name.startswith(UNUSED)}
        spell = _speller(published.library)
        self._closed = closed
        self._spelling = [b"" if n in silent else spell(name) for n, name in enumerate(self._names)]
        self._unknown = self._unknown_id(model)

    def _unknown_id(self, model: dict[str, Any]) -> int | None:
        if model["type"] == "Unigram":
            return model.get("unk_id")
        return self._library.token_to_id(model["unk_token"]) if model.get("unk_token") else None

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        for text in texts:
            nfc(text)  # refuses lone surrogates
        whole = [self.published.prefix + text for text in texts]
        return [[*self.opening, *ids] for ids in self._segment(whole)]

    def encode_dropout(self, text: str, rate: float, key: tuple[int, ...]) -> list[int]:  # noqa: ARG002
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        text = b"".join(map(self.bytes_of, ids)).decode("utf-8", errors="replace")
        return text.removesuffix(" ") if self._closed else text.removeprefix(" ")

    def opening_of(self, ids: Iterable[int]) -> tuple[int, ...]:  # noqa: ARG002
        """Its own opening is a part of everything that it encodes, and it has no other."""
        return ()

    def control_ids(self, pieces: Sequence[str]) -> tuple[int, ...]:
        raise UserError(f"{', '.join(pieces)}: a published vocabulary has no control pieces of ours")

    def special(self, *names: str) -> int | None:
        """The number of a piece with one of these names, if there is one."""
        return next((number for number, name in enumerate(self._names) if name in names), None)

    def spell(self, text: str) -> list[int]:
        return self._segment([text])[0]

    def segments(self, text: str) -> list[str]:
        return _WORDS.findall(text)

    @functools.cached_property
    def spelling(self) -> Spelling:
        if b" " not in self._spelling:
            raise UserError("constraints: this model's vocabulary has no piece for a single space")
        return Spelling(self._spelling)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        return [self._names[i] if 0 <= i < self.size else "\ufffd" for i in ids]

    def merge_steps(self, text: str) -> list[list[str]]:
        return [self.pieces(self.encode(text))]

    def exported(self) -> dict[str, Any]:
        """tokenizer.json without pieces that have no row in the model."""
        library = self.published.library
        if library["model"]["type"] != "Unigram":
            return library
        return {**library, "model": {**library["model"], "vocab": library["model"]["vocab"][: self.size]}}

    def save(self, path: Path) -> None:
        write_bytes(published_bytes(self.published), Path(path))

    @classmethod
    def load(cls, path: Path) -> "PublishedTokenizer":
        data, content = read_tokenizer_json(path)
        try:
            known = isinstance(content, dict) and tuple(name for name in content if name != "forced")
            if known != _FIELDS or content["version"] != PUBLISHED_VERSION:
                raise UserError(f"expected version {PUBLISHED_VERSION} with the fields {', '.join(_FIELDS)}")
            values = {name: content[name] for name in ("library", "size", "joint", "prefix")}
            if not isinstance(content["before"], list):
                raise UserError("before: expected a list of pieces")
            forced = content.get("forced", False)
            published = Published(**values, before=tuple(content["before"]), forced=forced)
            if published_bytes(published) != data:
                raise UserError("its contents do not match its checksum")
            return cls(published)
        except UserError as error:
            raise UserError(f"{path}: not a sound tokenizer file: {error}") from None

    def _segment(self, texts: Sequence[str]) -> list[list[int]]:
        with _as_user_errors("a text cannot be cut into pieces with this tokenizer"):
            rows = self._library.encode_batch_fast(list(texts), add_special_tokens=False)
        if self._library.get_vocab_size() <= self.size:
            return [row.ids for row in rows]
        unknown = 0 if self._unknown is None else self._unknown
        return [[i if i < self.size else unknown for i in row.ids] for row in rows]


def _check_fields(published: Published) -> None:
    """Check all fields of a file before they are used."""
    size: Any = published.size
    if type(size) is not int or not len(CONTROL_PIECES) <= size <= LARGEST_VOCABULARY:
        raise UserError(f"size: expected the number of rows of a model, found {shown(size)}")
    for name in ("joint", "forced"):
        if not isinstance(value := getattr(published, name), bool):
            raise UserError(f"{name}: expected true or false, found {shown(value)}")
    if not isinstance(published.prefix, str) or len(published.prefix) > _LONGEST_PREFIX:
        raise UserError(f"prefix: expected a text of at most {_LONGEST_PREFIX:,} characters")
    if len(published.before) > _LONGEST_PREFIX or not all(
        type(n) is int and 0 <= n < size for n in published.before
    ):
        raise UserError(f"before: expected numbers of pieces, found {shown(list(published.before))}")
    check_library(published.library)


def _added(library: dict[str, Any]) -> list[dict[str, Any]]:
    return library.get("added_tokens") or []


def _runtime(library: dict[str, Any]) -> tokenizers.Tokenizer:
    """The tokenizer of the library; no text can spell a control piece."""
    own: dict[str, Any] = dict.fromkeys(("truncation", "padding", "post_processor", "decoder"))
    own |= {name: library.get(name) for name in ("normalizer", "pre_tokenizer", "model")} | {"version": "1.0"}
    own["added_tokens"] = [token for token in _added(library) if token["id"] not in _CONTROLS]
    model = library["model"]
    if model["type"] == "Unigram":
        pieces = [list(entry) for entry in model["vocab"]]
        for number in _CONTROLS:
            pieces[number][0] = HIDDEN + pieces[number][0].removeprefix(HIDDEN)
        own["model"] = {**model, "vocab": pieces}
    elif model["type"] == "WordPiece":  # it looks up whole words, and [CLS] may stand between spaces
        hidden = {
            HIDDEN + name if number in _CONTROLS else name: number for name, number in model["vocab"].items()
        }
        own["model"] = {**model, "vocab": hidden}
    with _as_user_errors("the library tokenizers does not take it"):
        return tokenizers.Tokenizer.from_str(json.dumps(own))


@contextmanager
def _as_user_errors(what: str) -> Iterator[None]:
    """The library raises plain exceptions, and panics, which do not derive from Exception. Panics are
    recognised by name, so that KeyboardInterrupt and SystemExit pass."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise UserError(f"{what} ({shown(str(error), 200)})") from None


def _speller(library: dict[str, Any]) -> Callable[[str], bytes]:
    """The bytes of a piece by its name."""
    model = library["model"]
    if any(part["type"] == "ByteLevel" for part in section_parts(library, "pre_tokenizer")):
        return _byte_level
    if model["type"] == "WordPiece":
        inside = str(model.get("continuing_subword_prefix") or "##")
        return lambda name: (name.removeprefix(inside) if name.startswith(inside) else f" {name}").encode(
            "utf-8"
        )
    if model.get("end_of_word_suffix"):
        end = str(model["end_of_word_suffix"])
        return lambda name: (f"{name.removesuffix(end)} " if name.endswith(end) else name).encode("utf-8")
    return _marked


def _marked(name: str) -> bytes:
    if name in BYTE_PIECES:
        return bytes([BYTE_PIECES.index(name)])
    return name.replace(MARK, " ").encode("utf-8")


def _byte_level(name: str) -> bytes:
    table = _byte_alphabet()
    return b"".join(bytes([table[c]]) if c in table else c.encode("utf-8") for c in name)


@functools.cache
def _byte_alphabet() -> dict[str, int]:
    """How byte-level vocabularies write bytes: visible Latin-1 as itself, all others from U+0100 on."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [value for value in range(256) if value not in visible]
    return {chr(v): v for v in visible} | {chr(0x100 + n): v for n, v in enumerate(others)}

"""SentencePiece files (Kudo & Richardson 2018) converted to tokenizer.json; they are read, not run.

A file is a protocol buffer: a sequence of (field, kind, value). These fields are used:

    ModelProto        1 pieces    2 trainer    3 normaliser
    SentencePiece     1 text      2 score      3 type (1 normal, 2 unknown, 3 control, 4 user's, 6 byte)
    TrainerSpec       3 model type (1 unigram, 2 bpe)
    NormalizerSpec    2 compiled character map    3 a space in front    4 without further spaces
"""

import base64
import math
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from dragoman.errors import UserError
from dragoman.files import read_regular
from dragoman.text.published_tokenizer import HIDDEN
from dragoman.text.tokenizer_file import LARGEST_VOCABULARY, MARK

_UNKNOWN, _CONTROL, _BYTE = 2, 3, 6
_NORMAL = 1
_UNIGRAM, _BPE = 1, 2
_SENTINELS = 100
_LARGEST_FILE = 64 << 20
_MOST_FIELDS, _MOST_OPTIONS = LARGEST_VOCABULARY + 1000, 1000
"""Maximum number of fields of a whole file, and of one part of it."""
T = TypeVar("T")
ScoredPiece = tuple[str, float, int]


def sentencepiece_json(path: Path) -> dict[str, Any]:
    """A unigram model with T5's hundred sentinels after its pieces, in descending order."""
    pieces, charsmap = read_pieces(path)
    vocab = [[text, score] for text, score, _ in pieces]
    names = [f"<extra_id_{number}>" for number in reversed(range(_SENTINELS))]
    special = [
        (number, text) for number, (text, _, kind) in enumerate(pieces) if kind in (_UNKNOWN, _CONTROL)
    ]
    special += list(enumerate(names, len(pieces)))
    return _library(vocab + [[name, 0.0] for name in names], _unknown(path, pieces), charsmap, special)


def marian_library(path: Path, vocabulary: Mapping[str, Any]) -> dict[str, Any]:
    """Pieces from a file with the ids of a vocabulary. Pieces that are not in the vocabulary are unknown;
    text cannot spell those that are only in the vocabulary."""
    pieces, charsmap = read_pieces(path)
    if len(vocabulary) > LARGEST_VOCABULARY:
        raise UserError(f"{path.parent}: the vocabulary has more than {LARGEST_VOCABULARY:,} pieces")
    numbers = {text: number for text, number in vocabulary.items() if type(number) is int}
    if sorted(numbers.values()) != list(range(len(vocabulary))):
        raise UserError(f"{path.parent}: the vocabulary does not number its pieces from 0 on")
    if "<unk>" not in numbers:
        raise UserError(f"{path.parent}: the vocabulary has no piece <unk>")
    scores = {text: score for text, score, kind in pieces if kind not in (_UNKNOWN, _CONTROL)}
    special = [(number, text) for text, number in numbers.items() if text in ("<unk>", "<pad>", "</s>")]
    special += [(n, text) for text, n in numbers.items() if text.startswith(">>") and text.endswith("<<")]
    names = dict(special)
    in_order = sorted(numbers, key=numbers.__getitem__)
    vocab = [
        [text if text in scores or numbers[text] in names else HIDDEN + text, scores.get(text, 0.0)]
        for text in in_order
    ]
    vocab += [[text, score] for text, score in scores.items() if text not in numbers]
    return _library(vocab, numbers["<unk>"], charsmap, special)


def m2m_library(path: Path, vocabulary: Mapping[str, Any], languages: Any) -> dict[str, Any]:
    """A BPE model with the ids of a vocabulary; the pieces of the languages come after those. A piece can be
    merged of any two pieces, the one with the best score first."""
    pieces, charsmap = read_pieces(path, _BPE)
    told = [name.get("content") if isinstance(name, Mapping) else name for name in languages or ()]
    names = [name for name in told if isinstance(name, str)]
    if names != told or len(names) > LARGEST_VOCABULARY:
        raise UserError(f"{path.parent}: additional_special_tokens: expected the names of languages")
    numbers = {text: number for text, number in vocabulary.items() if type(number) is int}
    if sorted(numbers.values()) != list(range(len(vocabulary))) or "<unk>" not in numbers:
        raise UserError(
            f"{path.parent}: the vocabulary does not number its pieces from 0 on, or has no <unk>"
        )
    merges = []
    for text, _, kind in sorted(pieces, key=lambda piece: -piece[1]):
        halves = ((text[:place], text[place:]) for place in range(1, len(text))) if kind == _NORMAL else ()
        known = [pair for pair in halves if pair[0] in numbers and pair[1] in numbers and text in numbers]
        merges += map(list, sorted(known, key=lambda pair: (numbers[pair[0]], numbers[pair[1]])))
    special = [(numbers[name], name) for name in ("<s>", "<pad>", "</s>", "<unk>") if name in numbers]
    special += list(enumerate(names, len(vocabulary)))
    library = _library([], 0, charsmap, special)
    vocab = numbers | {name: number for number, name in enumerate(names, len(vocabulary))}
    model = {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True, "vocab": vocab, "merges": merges}
    return {**library, "model": model}


def _library(
    vocab: list[list[Any]], unknown: int, charsmap: bytes, special: list[tuple[int, str]]
) -> dict[str, Any]:
    mark = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    compiled = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode("ascii")}
    return {
        "version": "1.0",
        "added_tokens": [{"id": number, "content": text, **flags} for number, text in sorted(special)],
        "normalizer": compiled if charsmap else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, mark]},
        "decoder": mark,
        "model": {"type": "Unigram", "unk_id": unknown, "vocab": vocab, "byte_fallback": False},
    }


def read_pieces(path: Path, expected: int = _UNIGRAM) -> tuple[list[ScoredPiece], bytes]:
    """The pieces in their order, and the compiled map of its normalisation."""
    try:
        data = read_regular(path, _LARGEST_FILE)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    pieces: list[ScoredPiece] = []
    charsmap, kind = b"", _UNIGRAM
    try:
        for field, value in _fields(data, _MOST_FIELDS):
            if field == 1:
                pieces.append(_piece(dict(_fields(value, _MOST_OPTIONS))))
            elif field == 2:
                kind = _of_type(int, dict(_fields(value, _MOST_OPTIONS)).get(3, _UNIGRAM))
            elif field == 3:
                charsmap = _of_type(bytes, dict(_fields(value, _MOST_OPTIONS)).get(2, b""))
    except (IndexError, ValueError, KeyError, TypeError, struct.error):
        raise UserError(f"{path}: not a SentencePiece file") from None
    if not 0 < len(pieces) <= LARGEST_VOCABULARY:
        raise UserError(f"{path}: not a SentencePiece file")
    if kind != expected or any(own == _BYTE for _, _, own in pieces):
        raise UserError(
            f"{path}: only unigram models without bytes are read; write a tokenizer.json with transformers: "
            "AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR)"
        )
    return pieces, charsmap


def _piece(fields: Mapping[int, Any]) -> ScoredPiece:
    text = _of_type(bytes, fields[1]).decode("utf-8")
    score = struct.unpack("<f", fields[2])[0] if 2 in fields else 0.0
    if not text or text.startswith(HIDDEN) or not math.isfinite(score):
        raise ValueError(text)
    return text, score, _of_type(int, fields.get(3, 1))


def _of_type(kind: type[T], value: Any) -> T:
    """Check the type of a field, which may be wrong in a damaged file."""
    if not isinstance(value, kind):
        raise TypeError(kind)
    return value


def _unknown(path: Path, pieces: list[ScoredPiece]) -> int:
    found = [number for number, (_, _, kind) in enumerate(pieces) if kind == _UNKNOWN]
    if not found:
        raise UserError(f"{path}: it has no unknown piece")
    return found[0]


def _fields(data: bytes, most: int) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an integer, or bytes. More than `most` are refused."""
    at = count = 0
    while at < len(_of_type(bytes, data)):
        count += 1
        if count > most:
            raise ValueError(count)
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _varint(data, at)
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            value, at = data[at : at + width], at + width
        elif kind == 2:
            width, at = _varint(data, at)
            value, at = data[at : at + width], at + width
        else:
            raise ValueError(kind)
        if at > len(data):
            raise IndexError(at)
        yield tag >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 63:
            raise ValueError(shift)

"""One of our BPE vocabularies as a SentencePiece model, for programs that have only that library.

SentencePiece merges two neighbours if their text is a piece, that with the highest score first. Ours merges
by rules for two given pieces, the lowest rank first. A piece gets minus its lowest rank as its score. Both
cut text alike unless a piece can be made of other neighbours than those of its rule; `cut_alike` tells
whether a text is. SentencePiece is told not to normalise, so text has to be in NFC already.
"""

import struct
from collections.abc import Iterator

from dragoman.errors import UserError
from dragoman.text.bpe import MergeRules, merging
from dragoman.text.published_tokenizer import PublishedTokenizer
from dragoman.text.segment import nfc
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import BOS_ID, CONTROL_PIECES, EOS_ID, MARK, PAD_ID

_NORMAL, _UNKNOWN, _CONTROL, _BYTE = 1, 2, 3, 6
_BPE = 2
_NONE = -1


def sentencepiece_model(tokenizer: Tokenizer) -> bytes:
    """The file of a model with the same numbers. `<s>`, which no text has, is its unknown piece; nothing is
    unknown."""
    config = tokenizer.config
    if config.kind != "bpe" or config.word_mark != "start" or isinstance(tokenizer, PublishedTokenizer):
        raise UserError(
            "tokenizer: only our own kind bpe with word_mark start can be written for SentencePiece; this "
            f"is another one or of kind {config.kind} with word_mark {config.word_mark}"
        )
    first_byte = len(CONTROL_PIECES) + len(config.specials)
    ranks = lowest_ranks(tokenizer)
    parts = []
    for number, piece in enumerate(tokenizer.pieces(range(tokenizer.size))):
        kind = _NORMAL
        if number < first_byte:
            kind = _UNKNOWN if number == BOS_ID else _CONTROL
        elif number < first_byte + 256:
            kind = _BYTE
        score = float(-ranks.get(number, len(ranks) + number))
        about = _text(1, piece) + _float(2, score) + _number(3, kind)
        parts.append(_bytes(1, about))
    trainer = b"".join([
        _number(3, _BPE),
        _number(4, tokenizer.size),
        _number(35, 1),  # unknown characters are spelt in bytes
        *(_number(field, id) for field, id in ((40, BOS_ID), (41, _NONE), (42, EOS_ID), (43, PAD_ID))),
        *(_text(field, CONTROL_PIECES[id]) for field, id in ((45, BOS_ID), (47, EOS_ID), (48, PAD_ID))),
    ])  # fmt: skip
    normaliser = _text(1, "identity") + _number(3, 1) + _number(4, 0) + _number(5, 1)
    return b"".join([*parts, _bytes(2, trainer), _bytes(3, normaliser)])


def lowest_ranks(tokenizer: Tokenizer) -> dict[int, int]:
    found: dict[int, int] = {}
    for rank, merged in tokenizer.merge_rules.values():
        found[merged] = min(rank, found.get(merged, rank))
    return found


class SentencePieceRules:
    """How SentencePiece would normalise and split a text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        names = tokenizer.pieces(range(tokenizer.size))
        numbers = {name: number for number, name in enumerate(names)}
        ranks = lowest_ranks(tokenizer)
        self._rules: MergeRules = {
            (numbers[name[:cut]], numbers[name[cut:]]): (rank, number)
            for number, rank in ranks.items()
            for name in (names[number],)
            for cut in range(1, len(name))
            if name[:cut] in numbers and name[cut:] in numbers
        }

    def cut_alike(self, text: str) -> bool:
        """Whether SentencePiece makes the same pieces of a text, which it takes for NFC."""
        if MARK in text or nfc(text) != text:
            return False
        symbols = self._tokenizer.unmerged(text)
        for _ in merging(symbols, self._rules):
            pass
        return [symbol for symbol in symbols if symbol >= 0] == self._tokenizer.encode(text)


def _varint(value: int) -> Iterator[int]:
    value &= (1 << 64) - 1
    while value > 0x7F:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value


def _number(field: int, value: int) -> bytes:
    return bytes([*_varint(field << 3), *_varint(value)])


def _float(field: int, value: float) -> bytes:
    return bytes(_varint(field << 3 | 5)) + struct.pack("<f", value)


def _bytes(field: int, value: bytes) -> bytes:
    return bytes([*_varint(field << 3 | 2), *_varint(len(value))]) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8"))

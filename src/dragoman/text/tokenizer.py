"""Tokenizer: strings <-> ids, for the kinds bpe, word, char and byte.

    text --NFC--> text --mark--> " text" --segments--> [" text"] --merges--> ids

`decode(encode(x)) == nfc(x)` for every text. Characters without a piece are spelt in bytes, so nothing is
unknown. Control pieces are not in the tables for text, so no text can become one; but for the sign that
stands between sentences (`text/context.py`).
"""

import copy
import functools
import hashlib
import itertools
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import tokenizers
from tokenizers import models

from dragoman.errors import UserError
from dragoman.text.bpe import WALL, BpeDropout, MergeRules, Speller, merging
from dragoman.text.context import SEPARATOR, SIGN
from dragoman.text.learn_vocabulary import learn_vocabulary
from dragoman.text.piece_bytes import Spelling
from dragoman.text.segment import nfc, segmenter, with_mark
from dragoman.text.tokenizer_file import (
    BOS_ID,
    EOS_ID,
    MARK,
    PAD_ID,
    TokenizerConfig,
    Vocabulary,
    is_published,
    read_vocabulary_file,
    vocabulary_bytes,
    write_vocabulary,
)

__all__ = ["BOS_ID", "EOS_ID", "PAD_ID", "Tokenizer", "TokenizerConfig"]

_BATCH = 4096
_KNOWN_SEGMENTS = 200_000
_REPLACEMENT = "\ufffd"


class Tokenizer:
    """A trained tokenizer. It is immutable; `sha256` is the hash of its file."""

    pad_id = PAD_ID
    bos_id = BOS_ID
    eos_id = EOS_ID
    opening: tuple[int, ...] = ()
    """Pieces that every encoded text begins with: those of `opened_with`, or of a published tokenizer."""
    forced: tuple[int, ...] = ()
    """Pieces that every translation has to begin with: the language, where a model knows several."""

    separator: int | None = None
    """The piece between a sentence and the one before it, where the vocabulary has it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.config = vocabulary.config
        self.kind: str = vocabulary.config.kind
        self.size = len(vocabulary.pieces)
        self.sha256 = hashlib.sha256(vocabulary_bytes(vocabulary)).hexdigest()
        self._first_byte = len(self.config.first_pieces) - 256
        if SEPARATOR in self.config.specials:
            (self.separator,) = self.control_ids((SEPARATOR,))
        self._byte_ids = tuple(range(self._first_byte, self._first_byte + 256))
        self._segments = segmenter(self.config)
        self._spelling = _spelling(vocabulary)
        self._known: dict[str, list[int]] = {}
        self._library = tokenizers.Tokenizer(_model(vocabulary, self._first_byte))

    @classmethod
    def train(cls, texts: Iterable[str], config: TokenizerConfig) -> "Tokenizer":
        """Learn a vocabulary from `texts`, which are read once. The same texts give the same file."""
        pieces, merges = learn_vocabulary(texts, config)
        return cls(Vocabulary(config, tuple(pieces), tuple(merges)))

    def opened_with(self, opening: Sequence[int]) -> "Tokenizer":
        """A copy of the tokenizer with these control pieces before every text that it encodes. Its file and
        its hash do not change."""
        opened = copy.copy(self)
        opened.opening = tuple(opening)
        return opened

    def opening_of(self, ids: Iterable[int]) -> tuple[int, ...]:
        """The control pieces that `ids` begin with."""
        return tuple(itertools.takewhile(lambda piece: piece < self._first_byte, map(int, ids)))

    def control_ids(self, pieces: Sequence[str]) -> tuple[int, ...]:
        """The numbers of control pieces."""
        known = {piece: number for number, piece in enumerate(self._vocabulary.pieces[: self._first_byte])}
        for piece in pieces:
            if piece not in known:
                raise UserError(f"{piece}: this vocabulary has no such control piece")
        return tuple(known[piece] for piece in pieces)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, after those of `opening`."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`[encode(text) for text in texts]`.

        Each distinct segment is tokenized by the library once, on all cores, and then looked up. Words repeat
        so often that this takes half the time of whole sentences.
        """
        if self.separator is not None and any(SIGN in text for text in texts):
            return self._encode_in_context(texts)
        if self.kind == "byte":
            return [[*self.opening, *self._encode_bytes(text)] for text in texts]
        ids: list[list[int]] = []
        for start in range(0, len(texts), _BATCH):
            rows = [self._segments.findall(self._prepare(text)) for text in texts[start : start + _BATCH]]
            known = self._with_segments(set().union(*rows))
            ids += [[*self.opening, *chain.from_iterable(map(known.__getitem__, row))] for row in rows]
        return ids

    def _encode_in_context(self, texts: Sequence[str]) -> list[list[int]]:
        """Sentence by sentence, with the separating piece between them."""
        rows = [text.split(SIGN) for text in texts]
        parts = iter(self.opened_with(()).encode_batch(list(chain.from_iterable(rows))))
        encoded = []
        for row in rows:
            ids = [piece for _ in row for piece in (self.separator or 0, *next(parts))]
            encoded.append([*self.opening, *ids[1:]])
        return encoded

    def encode_dropout(self, text: str, rate: float, key: tuple[int, ...]) -> list[int]:
        """Like `encode`, with each merge left out at `rate`: BPE-dropout (Provilkov et al. 2020).

        A pure function of (text, rate, key). Keys that differ only in the last number share work, so that
        should be the one that changes most often, as in (seed, epoch, index). Kinds without merges ignore the
        rate.
        """
        if not 0.0 <= rate <= 1.0:
            raise UserError(f"dropout: expected a rate from 0 to 1, found {rate}")
        if rate == 0.0 or self.kind != "bpe":
            return self.encode(text)
        return [*self.opening, *self._dropout(self._prepare(text), rate, key)]

    def decode(self, ids: Sequence[int]) -> str:
        """The text of any ids. Control pieces are skipped; invalid UTF-8 and unknown ids become U+FFFD."""
        text = b"".join(map(self.bytes_of, ids)).decode("utf-8", errors="replace")
        if self.kind in ("char", "byte"):
            return text
        return text.removeprefix(" ") if self.config.word_mark == "start" else text.removesuffix(" ")

    def spell(self, text: str) -> list[int]:
        """The ids that write exactly `text`, whose words have their marking spaces already."""
        if self.kind == "byte":
            return self._encode_bytes(text)
        segments = self._segments.findall(nfc(text))
        known = self._with_segments(set(segments))
        return list(chain.from_iterable(map(known.__getitem__, segments)))

    def segments(self, text: str) -> list[str]:
        """The segments of `text`, which no piece crosses."""
        return self._segments.findall(nfc(text))

    def marked_segments(self, text: str) -> list[str]:
        """The segments of `text` with its mark: what is looked up, one by one, to encode it."""
        return self._segments.findall(self._prepare(text))

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer as data."""
        return self._vocabulary

    @functools.cached_property
    def spelling(self) -> Spelling:
        """The bytes of each id, for constraints on text."""
        return Spelling(self._spelling)

    def bytes_of(self, piece: int) -> bytes:
        """The UTF-8 of one id; a character may need several ids."""
        return self._spelling[piece] if 0 <= piece < self.size else _REPLACEMENT.encode()

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces as written in the file: a space as ▁, a byte as <0xE2>."""
        known = self._vocabulary.pieces
        return [known[i] if 0 <= i < self.size else _REPLACEMENT for i in ids]

    def merge_steps(self, text: str) -> list[list[str]]:
        """The segmentation before the first merge and after each merge rule, in the order they are applied.

        The last one is `pieces(encode(text))`. Kinds without merges have only that one. There are as many
        steps as merge rules are used, each as long as the text.
        """
        if self.kind != "bpe":
            return [self.pieces(self.encode(text))]
        segments = self._segments.findall(self._prepare(text))
        symbols = list(chain.from_iterable([*self._speller(segment), WALL] for segment in segments))

        def pieces() -> list[str]:
            return self.pieces([symbol for symbol in symbols if symbol >= 0])

        steps = [pieces()]
        last_rank = -1
        for rank in merging(symbols, self.merge_rules):
            if rank == last_rank:
                steps.pop()
            steps.append(pieces())
            last_rank = rank
        return steps

    def library_model(self) -> models.BPE:
        """The library's model of one segment."""
        return _model(self._vocabulary, self._first_byte)

    def save(self, path: Path) -> None:
        write_vocabulary(self._vocabulary, Path(path))

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a saved tokenizer. A damaged or inconsistent file is refused."""
        path = Path(path)
        if is_published(path):
            from dragoman.text.published_tokenizer import PublishedTokenizer  # a subclass of this one

            return PublishedTokenizer.load(path)
        return cls(read_vocabulary_file(path))

    def _prepare(self, text: str) -> str:
        return with_mark(nfc(text), self.config)

    def _with_segments(self, segments: set[str]) -> dict[str, list[int]]:
        """The table of known segments, with `segments` among them."""
        if len(self._known) > _KNOWN_SEGMENTS:
            self._known = {}  # another thread may still be reading the old one
        known = self._known
        new = [segment for segment in segments if segment not in known]  # a difference looks at all known
        if new:
            rows = self._library.encode_batch_fast(new, add_special_tokens=False)
            known.update(zip(new, [row.ids for row in rows], strict=True))
        return known

    def _encode_bytes(self, text: str) -> list[int]:
        return list(map(self._byte_ids.__getitem__, nfc(text).encode("utf-8")))

    def unmerged(self, text: str) -> list[int]:
        """The characters and bytes of a text with its mark, before any merge and without segments."""
        return self._speller(self._prepare(text))

    @functools.cached_property
    def merge_rules(self) -> MergeRules:
        ids = {piece: i for i, piece in enumerate(self._vocabulary.pieces)}
        return {
            (ids[left], ids[right]): (rank, ids[left + right])
            for rank, (left, right) in enumerate(self._vocabulary.merges)
        }

    @functools.cached_property
    def _speller(self) -> Speller:
        letters = range(len(self.config.first_pieces), self._vocabulary.alphabet_end)
        pieces = self._vocabulary.pieces
        return Speller({pieces[i].replace(MARK, " "): i for i in letters}, self._first_byte)

    @functools.cached_property
    def _dropout(self) -> BpeDropout:
        return BpeDropout(self._segments, self._speller, self.merge_rules)


def _spelling(vocabulary: Vocabulary) -> list[bytes]:
    """The UTF-8 of each id: nothing for control pieces, one byte for byte pieces."""
    first = len(vocabulary.config.first_pieces)
    controls = [b""] * (first - 256)
    values = [bytes([value]) for value in range(256)]
    return (
        controls + values + [piece.replace(MARK, " ").encode("utf-8") for piece in vocabulary.pieces[first:]]
    )


def _model(vocabulary: Vocabulary, first_byte: int) -> models.BPE:
    """The library's model of one segment, built from our tables.

    Control pieces are left out, so that text cannot reach them, and nothing is an added token.
    For kind word, `ignore_merges` looks a whole segment up first; with no merges, the rest is characters.
    """
    config = vocabulary.config
    ids = {piece.replace(MARK, " "): i for i, piece in enumerate(vocabulary.pieces) if i >= first_byte}
    return models.BPE(
        vocab=ids,
        merges=[(left.replace(MARK, " "), right.replace(MARK, " ")) for left, right in vocabulary.merges],
        byte_fallback=True,
        ignore_merges=config.kind == "word",
    )

"""The last pass over the text: encode sentences into ids and write them to a store.

One thread reads and writes while others wait for the encoding, which is done by the tokenizer in this process
or, for a large corpus, by workers on all cores.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from dragoman.data.boundaries import ends_document
from dragoman.data.config import CleanConfig
from dragoman.data.drop_reasons import HELD_OUT, KEPT_CODE, TOO_LONG, length_codes
from dragoman.data.formats import Pair
from dragoman.data.store_writer import StoreWriter
from dragoman.data.verified_files import HashedWriter
from dragoman.data.workers import EncodedSide, Workers, flattened
from dragoman.text.context import Boundaries
from dragoman.text.tokenizer import Tokenizer

_CHUNK_PAIRS = 4096
_CHUNK_CHARACTERS = 4_000_000
_TOO_LONG = "…"
"""Stands for a text that is certainly too long. It is not blank and is not encoded."""
_COMPOSED = 4
"""Largest factor by which NFC normalisation can shorten a text."""


_Numbers = tuple[np.ndarray, np.ndarray, np.ndarray | None]
"""Line numbers, codes and document numbers of a chunk."""


@dataclass(frozen=True)
class Encoders:
    """The tokenizers of both sides, and the number of characters above which a text is certainly too long."""

    src: Tokenizer
    tgt: Tokenizer
    src_characters: int
    tgt_characters: int
    max_length: int
    workers: Workers | None = None
    opening: tuple[int, ...] = ()
    """Ids of the control pieces before every source."""
    cut: int | None = None
    """Number of source tokens to keep. None: all."""

    @classmethod
    def of(
        cls, src: Tokenizer, tgt: Tokenizer, clean: CleanConfig, workers: Workers | None = None
    ) -> "Encoders":
        def most_characters(tokenizer: Tokenizer) -> int:
            longest_piece = max(map(len, tokenizer.pieces(range(tokenizer.size))))
            return _COMPOSED * longest_piece * clean.max_length

        most = most_characters(src), most_characters(tgt)
        return cls(src, tgt, *most, clean.max_length, workers, cut=clean.cut_source)

    def hopeless(self, pair: Pair) -> bool:
        """Whether `pair` certainly has too many tokens, so that encoding it would be a waste."""
        too_long = self.cut is None and len(pair.src) > self.src_characters
        return too_long or len(pair.tgt) > self.tgt_characters

    def encode(self, pairs: Sequence[Pair], codes: Sequence[int]) -> tuple[EncodedSide, EncodedSide]:
        """Ids of the pairs that are kept. The other rows are empty."""
        wanted = [code in (KEPT_CODE, HELD_OUT) for code in codes]
        src = [pair.src if use else "" for pair, use in zip(pairs, wanted, strict=True)]
        tgt = [pair.tgt if use else "" for pair, use in zip(pairs, wanted, strict=True)]
        src_side, tgt_side = self._sides(src, tgt)
        return _opened(src_side, self.opening), tgt_side

    def _sides(self, src: list[str], tgt: list[str]) -> tuple[EncodedSide, EncodedSide]:
        if self.cut is not None:
            src = [text[: self.src_characters] for text in src]
        if self.workers is not None:
            src_side, tgt_side = self.workers.encode(src, tgt)
        else:
            src_side, tgt_side = flattened(self.src.encode_batch(src)), flattened(self.tgt.encode_batch(tgt))
        return src_side if self.cut is None else _cut(src_side, self.cut), tgt_side

    def lengths(self, pairs: Sequence[Pair]) -> tuple[np.ndarray, np.ndarray]:
        """Number of tokens of both sides of each pair; for a text far over the limit, a lower bound."""
        texts = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
        if self.cut is not None:
            texts = [text[: self.src_characters] for text in texts[0]], texts[1]
        limits = self.src_characters, self.tgt_characters
        src, tgt = (
            [text if len(text) <= most else "" for text in own]
            for own, most in zip(texts, limits, strict=True)
        )
        (_, src_counts), (_, tgt_counts) = self._sides(src, tgt)

        def at_least(own: list[str], most: int) -> list[int]:
            return [0 if len(text) <= most else len(text) * self.max_length // most + 1 for text in own]

        src_least, tgt_least = map(at_least, texts, limits)
        return np.maximum(src_counts, src_least), np.maximum(tgt_counts, tgt_least)


def _opened(side: EncodedSide, opening: Sequence[int]) -> EncodedSide:
    """The same side with these pieces before every non-empty sentence."""
    if not opening:
        return side
    ids, counts = side
    rows = counts > 0
    begins = (np.cumsum(counts) - counts)[rows]
    opened = np.insert(ids, np.repeat(begins, len(opening)), np.tile(opening, len(begins)))
    return opened, counts + len(opening) * rows


def _cut(side: EncodedSide, longest: int) -> EncodedSide:
    """The same side with at most `longest` pieces per sentence."""
    ids, counts = side
    place = np.arange(len(ids)) - np.repeat(np.cumsum(counts) - counts, counts)
    return ids[place < longest], np.minimum(counts, longest)


class Sink:
    """Destination of encoded pairs: the training store, the store of held-out pairs, or the list of dropped
    pairs."""

    def __init__(
        self, kept: StoreWriter, held_out: StoreWriter | None, dropped: HashedWriter, clean: CleanConfig
    ) -> None:
        self._kept, self._held_out, self._dropped, self._clean = kept, held_out, dropped, clean
        self.totals = np.zeros(256, dtype=np.int64)
        """Final number of pairs with each code."""
        self.documents = kept.documents
        """Whether the store takes document numbers."""

    def write(
        self,
        corpus: int,
        lines: np.ndarray,
        codes: np.ndarray,
        src: EncodedSide,
        tgt: EncodedSide,
        links: EncodedSide,
        documents: np.ndarray | None,
    ) -> np.ndarray:
        """Write a chunk. Returns the final codes of its pairs, after the length checks."""
        by_length = length_codes(src[1], tgt[1], self._clean)
        wanted = (codes == KEPT_CODE) | (codes == HELD_OUT)
        codes = np.where(wanted & (by_length != KEPT_CODE), by_length, codes)
        self._kept.append(src, tgt, lines, codes == KEPT_CODE, links, documents)
        if self._held_out is not None:
            self._held_out.append(src, tgt, lines, codes == HELD_OUT, links, documents)
        out = np.flatnonzero((codes != KEPT_CODE) & (codes != HELD_OUT))
        rows = np.stack([np.full(len(out), corpus), lines[out], codes[out]], axis=1)
        self._dropped.write(rows.astype(np.int64))
        self.totals += np.bincount(codes, minlength=256)
        return codes

    def end_corpus(self) -> None:
        self._kept.end_corpus()
        if self._held_out is not None:
            self._held_out.end_corpus()


def encode_corpus(
    corpus: int, pairs: Iterable[tuple[int, Pair]], encoders: Encoders, sink: Sink
) -> Iterator[np.ndarray]:
    """Encode the (code, pair) tuples of one corpus into `sink`. Yields the final codes chunk by chunk."""
    at_once = encoders.workers.count if encoders.workers else 1
    waiting: deque[tuple[_Numbers, EncodedSide, Future[tuple[EncodedSide, EncodedSide]]]] = deque()
    boundaries = Boundaries()

    def write_oldest() -> np.ndarray:
        (lines, codes, documents), links, encoded = waiting.popleft()
        return sink.write(corpus, lines, codes, *encoded.result(), links, documents)

    with ThreadPoolExecutor(max_workers=at_once) as pool:
        for codes, chunk in _chunks(pairs, encoders):
            lines = np.array([pair.line for pair in chunk])
            documents = None
            if sink.documents:
                numbers = (boundaries.number(ends_document(pair), pair.document) for pair in chunk)
                documents = np.fromiter(numbers, dtype=np.int64, count=len(chunk))
            encoded = pool.submit(encoders.encode, chunk, codes)
            links = flattened([pair.links for pair in chunk])
            waiting.append(((lines, np.array(codes, dtype=np.uint8), documents), links, encoded))
            if len(waiting) > at_once:
                yield write_oldest()
        while waiting:
            yield write_oldest()
    sink.end_corpus()


def with_lengths(
    chunks: Iterable[list[Pair]], encoders: Encoders
) -> Iterator[tuple[list[Pair], tuple[np.ndarray, np.ndarray]]]:
    """Each chunk with the token counts of its pairs, computed while the next chunks are read."""
    at_once = encoders.workers.count if encoders.workers else 1
    waiting: deque[tuple[list[Pair], Future[tuple[np.ndarray, np.ndarray]]]] = deque()
    with ThreadPoolExecutor(max_workers=at_once) as pool:
        for chunk in chunks:
            waiting.append((chunk, pool.submit(encoders.lengths, chunk)))
            if len(waiting) > at_once:
                oldest, counted = waiting.popleft()
                yield oldest, counted.result()
        for oldest, counted in waiting:
            yield oldest, counted.result()


def _chunks(pairs: Iterable[tuple[int, Pair]], encoders: Encoders) -> Iterator[tuple[list[int], list[Pair]]]:
    """Chunks limited in pairs and in characters."""
    codes: list[int] = []
    chunk: list[Pair] = []
    characters = 0
    for code, pair in pairs:
        if code in (KEPT_CODE, HELD_OUT) and encoders.hopeless(pair):
            code, pair = TOO_LONG, Pair(_TOO_LONG, _TOO_LONG, pair.line, document=pair.document)
        codes.append(code)
        chunk.append(pair)
        characters += len(pair.src) + len(pair.tgt)
        if len(chunk) == _CHUNK_PAIRS or characters >= _CHUNK_CHARACTERS:
            yield codes, chunk
            codes, chunk, characters = [], [], 0
    if chunk:
        yield codes, chunk

"""Convert links between words into links between pieces, one batch at a time.

Words are separated by white space in the text; pieces come from the tokenizer, and may be sampled again in
every epoch. A link of two words joins every piece of one with every piece of the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.data.batch import PieceLinks
from dragoman.data.store import IdPair, PairStore
from dragoman.text.incremental import offsets
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import words


class LinkSpread:
    """The links of the pairs of a store as `PieceLinks`."""

    def __init__(self, store: PairStore, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer) -> None:
        self._store = store
        self._src, self._tgt = PieceWords(src_tokenizer), PieceWords(tgt_tokenizer)

    def __call__(self, numbers: np.ndarray, ids: Sequence[IdPair]) -> PieceLinks:
        """`ids` are the current pieces of the pairs with these numbers."""
        found = [self._store.links(number) for number in numbers.tolist()]
        links = np.concatenate(found).astype(np.int64) if found else np.zeros((0, 2), dtype=np.int64)
        rows = np.repeat(np.arange(len(found)), [len(each) for each in found])
        src, tgt = self._src([pair[0] for pair in ids]), self._tgt([pair[1] for pair in ids])
        src_word, tgt_word = src.base[rows] + links[:, 0], tgt.base[rows] + links[:, 1]
        wide = src.count[src_word]
        cells = wide * tgt.count[tgt_word]
        link = np.repeat(np.arange(len(links)), cells)
        inside = np.arange(len(link)) - np.repeat(np.cumsum(cells) - cells, cells)
        of_tgt = tgt.first[tgt_word][link] + inside // wide[link]
        of_src = src.first[src_word][link] + inside % wide[link]
        rows = rows[link]
        longest = 1 + int(of_tgt.max(initial=0))
        many = np.bincount(rows * longest + of_tgt)  # links of each target piece
        weights = 1 / many[rows * longest + of_tgt]
        return PieceLinks(
            torch.from_numpy(rows),
            torch.from_numpy(of_tgt),
            torch.from_numpy(of_src),
            torch.from_numpy(weights.astype(np.float32)),
        )


@dataclass(frozen=True)
class WordPlaces:
    """The words of several sentences, one sentence after another: the first piece and the number of pieces of
    each word."""

    base: np.ndarray
    """Index of the first word of each sentence."""
    first: np.ndarray
    count: np.ndarray


class PieceWords:
    """Finds the pieces of each word.

    Most pieces show whether white space stands before or after them. Sentences with other pieces, such as the
    bytes of a rare character, are decoded.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        texts = [_text(tokenizer.bytes_of(piece)) for piece in range(tokenizer.size)]
        self._odd = np.array([text is None or len(text.split()) > 1 for text in texts])
        self._visible = np.array([bool(text and text.strip()) for text in texts])
        self._before = np.array([bool(text) and text[:1].isspace() for text in texts])
        self._after = np.array([bool(text) and text[-1:].isspace() for text in texts])

    def __call__(self, sentences: Sequence[np.ndarray]) -> WordPlaces:
        lengths = np.array([len(ids) for ids in sentences], dtype=np.int64)
        starts = np.cumsum(lengths) - lengths
        flat = np.concatenate([np.zeros(0, dtype=np.int64), *sentences]).astype(np.int64)
        visible, before, after = self._visible[flat], self._before[flat], self._after[flat]
        spaces = np.cumsum(before.astype(np.int64) + after) - after  # up to where a piece's text begins
        sentence = np.repeat(np.arange(len(sentences)), lengths)
        seen = np.flatnonzero(visible)
        key = np.stack([sentence[seen], spaces[seen]])
        new = np.ones(len(seen), dtype=bool)
        new[1:] = (key[:, 1:] != key[:, :-1]).any(axis=0)
        heads = np.flatnonzero(new)
        firsts = seen[heads] - starts[sentence[seen[heads]]]
        lasts = seen[np.append(heads[1:], len(seen))[: len(heads)] - 1] - starts[sentence[seen[heads]]]
        rows = [
            (firsts[first:last], lasts[first:last] + 1 - firsts[first:last])
            for first, last in _ranges(np.bincount(sentence[seen[heads]], minlength=len(sentences)))
        ]
        for number in set(sentence[self._odd[flat]].tolist()):
            rows[number] = self._by_decoding(sentences[number])
        counts = np.array([len(first) for first, _ in rows], dtype=np.int64)
        first, count = (np.concatenate(side) for side in zip(*rows, strict=True))
        return WordPlaces(np.cumsum(counts) - counts, first, count)

    def _by_decoding(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = offsets(self._tokenizer, ids.tolist())
        found = [
            [number for number, (start, end) in enumerate(places) if start < word_end and end > word_start]
            for word_start, word_end in words(self._tokenizer.decode(ids.tolist()))
        ]
        first = np.array([pieces[0] if pieces else 0 for pieces in found], dtype=np.int64)
        count = [pieces[-1] + 1 - pieces[0] if pieces else 0 for pieces in found]
        return first, np.array(count, dtype=np.int64)


def _text(spelling: bytes) -> str | None:
    try:
        return spelling.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _ranges(counts: np.ndarray) -> list[tuple[int, int]]:
    ends = np.cumsum(counts)
    return list(zip((ends - counts).tolist(), ends.tolist(), strict=True))

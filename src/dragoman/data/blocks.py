"""Text as one stream of pieces, cut into blocks of the same length.

    lines     a b c          stream   </s> <s> a b c </s> <s> d </s> <s> </s> <s> e f </s>
              d              blocks   └─ of 4 ──────┘ └────────────┘ …
              (empty)
              e f

Every line is `<s> … </s>`. Empty lines between two others end a text; the stream has one of them, however
many there were. A block begins with the piece before it, so that every piece is predicted once and has a
predecessor. The stream therefore starts with an extra `</s>`.
"""

from bisect import bisect_right
from itertools import pairwise

import numpy as np

from dragoman.data.sampler import CorpusRange
from dragoman.data.store import PairStore
from dragoman.text.tokenizer import BOS_ID, EOS_ID

_MARKS = 2
"""Number of marks per line: `<s>` and `</s>`."""
_EMPTY_LINE = np.array([BOS_ID, EOS_ID])
_CHUNK = 1 << 20
_PAGE = 128
"""Number of lines whose positions are computed together."""


class Blocks:
    """The target side of a store as one stream per corpus. A block is a pure function of its index; only the
    places where texts end are held in memory."""

    def __init__(self, store: PairStore, length: int) -> None:
        self.store, self.length = store, length
        self._streams = [_Stream(store, corpus.start, corpus.end) for corpus in store.corpora]
        counts = [-(-(stream.size - 1) // length) if stream.size else 0 for stream in self._streams]
        self._firsts = np.concatenate([[0], np.cumsum(counts)]).tolist()
        self.corpora = tuple(
            CorpusRange(first, last, corpus.weight)
            for (first, last), corpus in zip(pairwise(self._firsts), store.corpora, strict=True)
        )
        self.lengths = np.full(len(self), length, dtype=np.int32)
        """Number of pieces that each block predicts, `<s>` included."""
        for stream, count, last in zip(self._streams, counts, self._firsts[1:], strict=True):
            if count:
                self.lengths[last - 1] = stream.size - 1 - (count - 1) * length

    def __len__(self) -> int:
        return self._firsts[-1]

    def __getitem__(self, index: int) -> np.ndarray:
        """One piece of context, one piece that is read but not predicted, then `lengths[index]` pieces."""
        stream, begin = self._find(index)
        return stream.read(begin, begin + int(self.lengths[index]) + 2)

    def sentences(self, index: int) -> list[np.ndarray]:
        """The lines of a block without marks. The first and the last line may be incomplete."""
        ids = self[index][2:]
        marks = np.flatnonzero((ids == BOS_ID) | (ids == EOS_ID)).tolist()
        return [ids[mark + 1 : end] for mark, end in pairwise([-1, *marks, len(ids)]) if end > mark + 1]

    def origin(self, index: int) -> str:
        """Origin of the line in which the block begins: `text.txt:17`."""
        stream, begin = self._find(index)
        return self.store.origin(stream.line_at(begin + 1))

    def _find(self, index: int) -> tuple["_Stream", int]:
        if not 0 <= index < len(self):
            raise IndexError(f"block {index} of {len(self)}")
        number = bisect_right(self._firsts, index) - 1
        return self._streams[number], (index - self._firsts[number]) * self.length


class _Stream:
    """Lines `first` to `end` of a store. Position 0 is the `</s>` before all of them."""

    def __init__(self, store: PairStore, first: int, end: int) -> None:
        self.store, self.first, self.end = store, first, end
        self._breaks = _after_gaps(store.lines, first, end)  # lines that follow empty lines
        self._pages = np.full(-(-(end - first) // _PAGE), -1)
        """The position of each page's first line, computed on first use. −1: not computed yet."""
        self.size = self._begin_of(end) - 1
        """Number of pieces after the first `</s>`."""

    def _begin_of(self, line: int) -> int:
        """The position of a line's `<s>`, or of the `<s>` of the empty line before it."""
        pieces = self.store.tgt_begin(line) - self.store.tgt_begin(self.first)
        breaks = int(np.searchsorted(self._breaks, line))
        return 1 + pieces + _MARKS * (line - self.first + breaks)

    def _begin_of_page(self, page: int) -> int:
        found = int(self._pages[page])
        if found < 0:
            found = self._pages[page] = self._begin_of(self.first + page * _PAGE)
        return found

    def _sizes(self, line: int, end: int) -> np.ndarray:
        """The number of positions that each line takes, together with an empty line before it."""
        sizes = self.store.tgt_lengths[line:end].astype(np.int64) + _MARKS
        breaks = self._breaks[np.searchsorted(self._breaks, line) : np.searchsorted(self._breaks, end)]
        sizes[breaks - line] += _MARKS
        return sizes

    def _find(self, place: int) -> tuple[int, int]:
        """The line that contains a position, and where the line begins. Finds the page first, then the
        line."""
        page = bisect_right(range(len(self._pages)), place, key=self._begin_of_page) - 1
        line, begin = self.first + page * _PAGE, self._begin_of_page(page)
        ends = begin + np.cumsum(self._sizes(line, min(self.end, line + _PAGE)))
        number = int(np.searchsorted(ends, place, side="right"))
        return line + number, int(ends[number - 1]) if number else begin

    def line_at(self, place: int) -> int:
        return self._find(place)[0]

    def read(self, begin: int, end: int) -> np.ndarray:
        """The pieces from position `begin` to before `end`."""
        if begin == 0:
            return np.concatenate([[EOS_ID], self.read(1, end)])
        line, first = self._find(begin)
        place, parts = first, list[np.ndarray]()
        for size in self._sizes(line, min(self.end, line + end - first)).tolist():
            if place >= end:
                break
            ids = self.store.tgt(line)
            if size > len(ids) + _MARKS:
                parts.append(_EMPTY_LINE)
            parts += [_EMPTY_LINE[:1], ids, _EMPTY_LINE[1:]]
            line, place = line + 1, place + size
        return np.concatenate(parts)[begin - first : end - first]


def _after_gaps(lines: np.ndarray, first: int, end: int) -> np.ndarray:
    """Indices from `first` to `end` whose line number does not follow the previous one. Computed in
    chunks."""
    parts = [
        start + 1 + np.flatnonzero(np.diff(lines[start : min(end, start + _CHUNK + 1)]) > 1)
        for start in range(first, end, _CHUNK)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

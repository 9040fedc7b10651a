"""Finds the document of each pair while a corpus is read."""

from pathlib import Path
from types import TracebackType

import numpy as np

from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.formats import Pair
from dragoman.data.formats.detect import detect_format
from dragoman.data.text_hashes import NumberWriter, map_numbers, mix
from dragoman.errors import UserError
from dragoman.text.context import Boundaries

_WITHOUT_FILES = ("plain", "tsv", "csv", "jsonl", "parquet", "zip")
"""Formats in which a file is not one document."""
_WITH_COLUMNS = ("tsv", "csv", "jsonl")
_KEY = 0xD0C5


def ends_document(pair: Pair) -> bool:
    """Whether both sides are blank, which ends a document."""
    return not pair.src.strip() and not pair.tgt.strip()


class DocumentNumbers:
    """Writes the document number of every pair, counted over all corpora. Does nothing unless training uses
    context."""

    def __init__(self, data: DataConfig, path: Path) -> None:
        self._wanted, self._path = data.context is not None, path
        self._boundaries = Boundaries()
        self._first = self._last = self._before = 0

    def __enter__(self) -> "DocumentNumbers":
        self._writer = NumberWriter(self._path, "Q").__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.__exit__(kind, error, trace)

    def add(self, pair: Pair, hashed: int) -> int:
        """Add the next pair; `hashed` is 0 for a pair without text. Returns its hash combined with the hash
        of the previous pair, because the same pair after another one is a different example."""
        if not self._wanted:
            return hashed
        number = self._boundaries.number(ends_document(pair), pair.document)
        self._writer.append(number)
        before = self._before if number == self._last else 0
        self._last = number
        if not hashed:
            return 0
        self._before = hashed
        return hashed ^ int(mix(np.array([before], dtype=np.uint64), _KEY)[0]) if before else hashed

    def end_corpus(self, source: SourceConfig) -> None:
        """End the current document. Raises an error if plain text or a table has no document boundaries."""
        if not self._wanted:
            return
        format = detect_format(source.files) if source.format == "auto" else source.format
        if source.document is not None and format not in _WITH_COLUMNS:
            raise UserError(
                f"document: {source.files[0]} has no columns, found '{source.document}'; leave it out"
            )
        if format in _WITHOUT_FILES and self._last == self._first:
            raise UserError(
                f"{source.files[0]}: it does not tell where a document ends, which data.context needs: put a "
                "blank line between two documents, in both languages, or name a column of a table in "
                "data.train[].document"
            )
        self._first, self._before = self._last + 1, 0
        self._boundaries = Boundaries(self._first)

    def found(self) -> np.ndarray | None:
        """The document numbers. Call it after all pairs are added. None without context."""
        return map_numbers(self._path, np.uint64) if self._wanted else None

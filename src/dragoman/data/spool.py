"""A file of numbered pairs: the sample that a tokenizer is trained on."""

import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from dragoman.data.formats import Pair

_HEADER = struct.Struct("<QQII")
"""Number and line of the pair, and the sizes of its sides in bytes."""


class SpoolWriter:
    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def append(self, number: int, pair: Pair) -> None:
        src, tgt = pair.src.encode("utf-8"), pair.tgt.encode("utf-8")
        self._file.write(_HEADER.pack(number, pair.line, len(src), len(tgt)))
        self._file.write(src)
        self._file.write(tgt)

    def __enter__(self) -> "SpoolWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read_spool(path: Path) -> Iterator[tuple[int, Pair]]:
    with path.open("rb") as file:
        while header := file.read(_HEADER.size):
            number, line, src, tgt = _HEADER.unpack(header)
            text = file.read(src + tgt)
            yield number, Pair(text[:src].decode("utf-8"), text[src:].decode("utf-8"), line)

"""Text in one language, a line at a time. It stands on the target's side; there is no source."""

from collections.abc import Iterator

from dragoman.data.config import SourceConfig
from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:  # noqa: ARG001
    for number, line in enumerate(read_lines(source.files[0]), start=1):
        yield Pair("", line, number)

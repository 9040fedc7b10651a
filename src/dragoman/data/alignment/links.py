"""Word alignments as files: one line per pair, `0-0 1-2`, with source and target words counted from 0.

The format is called Pharaoh, after the decoder that first wrote it.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence

from dragoman.data.formats import Pair, read_lines
from dragoman.errors import UserError

_LINK = re.compile(r"([0-9]{1,9})([-pP])([0-9]{1,9})")


def pharaoh(links: Sequence[tuple[int, int]]) -> str:
    """Links in Pharaoh format: `0-0 1-2`, with source and target words counted from 0."""
    return " ".join(f"{source}-{target}" for source, target in links)


def parse_links(line: str, where: str, first: int = 0, marks: str = "-") -> Iterator[tuple[int, str, int]]:
    """Source word, mark and target word of every link; `first` is the number of the first word, 0 or 1."""
    for link in line.split():
        match = _LINK.fullmatch(link)
        if match is None or match[2] not in marks:
            kinds = " or ".join(f"1{mark}2" for mark in marks if mark != "P")
            raise UserError(f"{where}: expected links such as {kinds}, found {link!r}")
        source, target = int(match[1]) - first, int(match[3]) - first
        if min(source, target) < 0:
            raise UserError(f"{where}: words are counted from {first}, found {link!r}")
        yield source, match[2], target


def with_links(pairs: Iterator[Pair], path: str, corpus: str) -> Iterator[Pair]:
    """The pairs of a corpus with the links from its alignment file. `corpus` names it in messages."""
    lines = read_lines(path)
    number = 0
    for number, pair in enumerate(pairs, start=1):
        line = next(lines, None)
        if line is None:
            _refuse_count(path, number - 1, corpus, number + sum(1 for _ in pairs))
        else:
            yield dataclasses.replace(pair, links=_links_of(pair, line, f"{path}:{number}"))
    beyond = sum(1 for _ in lines)
    if beyond:
        _refuse_count(path, number + beyond, corpus, number)


def _links_of(pair: Pair, line: str, where: str) -> tuple[int, ...]:
    links = sorted({(source, target) for source, _, target in parse_links(line, where)})
    sources, targets = len(pair.src.split()), len(pair.tgt.split())
    for source, target in links:
        if source >= sources or target >= targets:
            raise UserError(
                f"{where}: the link {source}-{target} joins words that are not there: the pair has {sources} "
                f"source and {targets} target words, counted from 0"
            )
    return tuple(number for link in links for number in link)


def _refuse_count(path: str, lines: int, corpus: str, pairs: int) -> None:
    raise UserError(
        f"{path} has {lines} lines but {corpus} has {pairs} pairs: line n must have the links of pair n"
    )

"""Alignment error rate (Och & Ney 2003, equations 9 to 11).

Manual links are sure (S) or possible (P, including the sure ones). For the links A of a system,

    precision = |A ∩ P| / |A|     recall = |A ∩ S| / |S|     AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

summed over all sentences. Files have a line per pair: `0-0 1-2 3p4`, source and target word, `-` for sure and
`p` for possible.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.data.alignment.links import parse_links
from dragoman.data.formats import read_lines
from dragoman.errors import UserError

LinkPairs = Iterable[tuple[int, int]]


@dataclass(frozen=True)
class GoldLinks:
    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    """The sure links among them."""


@dataclass(frozen=True)
class AlignmentScores:
    precision: float
    recall: float
    error_rate: float

    def __str__(self) -> str:
        return (
            f"alignment error rate {self.error_rate:.1%}, precision {self.precision:.1%}, "
            f"recall {self.recall:.1%}"
        )


def read_gold(path: Path, first: int = 0) -> list[GoldLinks]:
    """The links of every line; `first` is the index of the first word, 0 or 1."""
    return [_read_line(line, first, f"{path}:{number}") for number, line in enumerate(read_lines(path), 1)]


def _read_line(line: str, first: int, where: str) -> GoldLinks:
    sure: set[tuple[int, int]] = set()
    possible: set[tuple[int, int]] = set()
    for source, mark, target in parse_links(line, where, first, marks="-pP"):
        possible.add((source, target))
        if mark == "-":
            sure.add((source, target))
    return GoldLinks(frozenset(sure), frozenset(possible))


def score_alignments(found: Sequence[LinkPairs], gold: Sequence[GoldLinks]) -> AlignmentScores:
    """Over all sentences together. No links found and no sure links is no error."""
    if len(found) != len(gold):
        raise UserError(f"gold: {len(gold)} lines for {len(found)} pairs; they have to be parallel")
    links = in_sure = in_possible = sure = 0
    for own, right in zip((set(row) for row in found), gold, strict=True):
        links, sure = links + len(own), sure + len(right.sure)
        in_sure, in_possible = in_sure + len(own & right.sure), in_possible + len(own & right.possible)
    return AlignmentScores(
        precision=in_possible / links if links else 1.0,
        recall=in_sure / sure if sure else 1.0,
        error_rate=1 - (in_sure + in_possible) / (links + sure) if links + sure else 0.0,
    )

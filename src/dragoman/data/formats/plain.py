"""Two plain files with one sentence per line: line n of one is the translation of line n of the other."""

from collections.abc import Iterator

from dragoman.data.formats.lines import read_lines
from dragoman.data.formats.pair import Pair
from dragoman.errors import UserError


def read(src_path: str, tgt_path: str) -> Iterator[Pair]:
    return pair_lines(read_lines(src_path), read_lines(tgt_path), src_path, tgt_path)


def pair_lines(
    src_lines: Iterator[str], tgt_lines: Iterator[str], src_path: str, tgt_path: str
) -> Iterator[Pair]:
    number = 0
    while True:
        src, tgt = next(src_lines, None), next(tgt_lines, None)
        if src is None or tgt is None:
            break
        number += 1
        yield Pair(src, tgt, number)
    num_src = number + (src is not None) + sum(1 for _ in src_lines)
    num_tgt = number + (tgt is not None) + sum(1 for _ in tgt_lines)
    if num_src != num_tgt:
        raise UserError(
            f"{src_path} has {num_src} lines but {tgt_path} has {num_tgt}:"
            " line n of one must be the translation of line n of the other"
        )

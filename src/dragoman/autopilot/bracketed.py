"""Brackets in targets: which bracket pairs are balanced in all of them, and whether the targets are trees."""

import re
from collections.abc import Sequence

from dragoman.evaluate.brackets import read_tree

_SETS = ("()[]{}", "()[]", "(){}", "[]{}", "()", "[]", "{}")
_BRACKET = re.compile(r"[()\[\]{}]")
_MOST = 0.5
"""Share of the targets that must have brackets."""


class BracketCounts:
    """Counts brackets in targets. Call `add` with every target."""

    def __init__(self) -> None:
        self._targets = self._with_any = 0
        self._seen = set[str]()
        self._valid = list(_SETS)

    def add(self, text: str) -> None:
        self._targets += 1
        found = "".join(_BRACKET.findall(text))
        if not found:
            return
        self._with_any += 1
        self._seen |= set(found)
        self._valid = [pairs for pairs in self._valid if _is_valid(found, pairs)]

    @property
    def pairs(self) -> str:
        """The bracket pairs that are balanced in every target. Empty if there are none, or if few targets
        have brackets."""
        if self._with_any <= _MOST * self._targets:
            return ""
        return next((pairs for pairs in self._valid if set(pairs) <= self._seen), "")


def _is_valid(brackets: str, pairs: str) -> bool:
    left = "".join(bracket for bracket in brackets if bracket in pairs)
    before = None
    while left != before:
        before = left
        for place in range(0, len(pairs), 2):
            left = left.replace(pairs[place : place + 2], "")
    return not left


def share_of_trees(src: Sequence[str], tgt: Sequence[str]) -> float:
    """Share of the targets that are trees over about as many words as their sources."""
    return sum(map(_is_tree, src, tgt)) / max(1, len(tgt))


def _is_tree(src: str, tgt: str) -> bool:
    tree, words = read_tree(tgt), len(src.split())
    return tree is not None and bool(tree.spans) and 0.7 * words <= len(tree.tags) <= 1.3 * words

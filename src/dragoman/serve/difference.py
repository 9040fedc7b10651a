"""Word-level differences between two texts, to show what has to change in a similar sentence of the
memory."""

import re
from typing import Literal, NamedTuple

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_LONGEST = 2000
"""Largest number of characters that are compared word by word."""


class Difference(NamedTuple):
    """`removed` is only in the first text, `added` only in the second."""

    kind: Literal["same", "removed", "added"]
    text: str


def differences(first: str, second: str) -> list[Difference]:
    """The parts of both texts in order. Without the added parts they form the first text, without the removed
    parts the second."""
    from rapidfuzz.distance import Levenshtein  # the studio imports this room, and compares nothing

    if max(len(first), len(second)) > _LONGEST:
        return [Difference("removed", first), Difference("added", second)]
    old, new = _WORD.findall(first), _WORD.findall(second)
    found: list[Difference] = []
    for step in Levenshtein.opcodes(old, new):
        left, right = old[step.src_start : step.src_end], new[step.dest_start : step.dest_end]
        if step.tag == "equal":
            found.append(Difference("same", "".join(left)))
        else:
            found += [Difference("removed", "".join(left)), Difference("added", "".join(right))]
    return [one for one in found if one.text]

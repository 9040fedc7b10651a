"""How many steps a backtracking engine takes for a regular expression: an own matcher that counts them.

Python's engine does not tell. This one tries the same alternatives in the same order, one character a step;
`counted_match` holds it to Python's answer each time, so that it cannot count for another language.
"""

import re
import sys
from collections.abc import Callable
from functools import cache
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

Then = Callable[[int], int | None]
Node = Callable[[int, Then], int | None]
_DEPTH = 200_000


class _Matcher:
    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.text, self.flags = "", pattern.flags
        self.taken: Callable[[int], None] = lambda _: None
        self.start = self._sequence(list(parser.parse(pattern.pattern, pattern.flags)))

    def _sequence(self, items: list[Any]) -> Node:
        nodes = [self._node(*item) for item in items]

        def run(number: int, place: int, then: Then) -> int | None:
            if number == len(nodes):
                return then(place)
            return nodes[number](place, lambda end: run(number + 1, end, then))

        return lambda place, then: run(0, place, then)

    def _node(self, kind: Any, value: Any) -> Node:
        if kind in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
            return self._one(self._test(kind, value))
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
            return self._repeat(kind, *value)
        if kind is op.SUBPATTERN:
            return self._sequence(list(value[3]))
        if kind is op.BRANCH:
            ways = [self._sequence(list(way)) for way in value[1]]
            return lambda place, then: next(
                (end for way in ways if (end := way(place, then)) is not None), None
            )
        if kind in (op.ASSERT, op.ASSERT_NOT):
            return self._look(kind is op.ASSERT, value[0], list(value[1]))
        if kind is op.AT:
            return self._place(value)
        raise NotImplementedError(str(kind))

    def _test(self, kind: Any, value: Any) -> Callable[[str], bool]:
        """Whether a character passes, decided by Python itself."""
        if kind is op.ANY:
            return lambda char: char != "\n" or bool(self.flags & re.DOTALL)
        one = re.compile(_rendered(kind, value), self.flags & (re.IGNORECASE | re.ASCII))
        return cache(lambda char: one.fullmatch(char) is not None)

    def _one(self, test: Callable[[str], bool]) -> Node:
        def run(place: int, then: Then) -> int | None:
            self.taken(1)
            return then(place + 1) if place < len(self.text) and test(self.text[place]) else None

        return run

    def _repeat(self, kind: Any, low: int, high: Any, body: Any) -> Node:
        items, most = list(body), sys.maxsize if high is op.MAXREPEAT else int(high)
        greedy = kind is op.MAX_REPEAT
        if greedy and len(items) == 1 and items[0][0] in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
            return self._run_of(self._test(*items[0]), low, most)
        inside = self._sequence(items)

        def run(place: int, count: int, then: Then) -> int | None:
            self.taken(1)

            def more() -> int | None:
                return inside(place, lambda end: None if end == place else run(end, count + 1, then))

            found = more() if greedy and count < most else None
            if found is None and count >= low:
                found = then(place)
            return more() if found is None and not greedy and count < most else found

        return lambda place, then: run(place, 0, then)

    def _run_of(self, test: Callable[[str], bool], low: int, most: int) -> Node:
        def run(place: int, then: Then) -> int | None:
            end = place
            while end < len(self.text) and end - place < most and test(self.text[end]):
                end += 1
            self.taken(end - place + 1)
            while end >= place + low:
                self.taken(1)
                if (found := then(end)) is not None:
                    return found
                end -= 1
            return None

        return run

    def _look(self, wanted: bool, direction: int, items: list[Any]) -> Node:
        inside = self._sequence(items)
        low, high = parser.SubPattern(parser.State(), items).getwidth() if direction < 0 else (0, 0)
        assert low == high

        def run(place: int, then: Then) -> int | None:
            begin = place - low
            there = begin >= 0 and inside(begin, lambda end: end if direction > 0 or end == place else None)
            is_there = there is not None and there is not False
            return then(place) if is_there == wanted else None

        return run

    def _place(self, value: Any) -> Node:
        lines = bool(self.flags & re.MULTILINE)

        def word(text: str, at: int) -> bool:
            return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")

        tests: dict[Any, Callable[[str, int], bool]] = {
            op.AT_BEGINNING: lambda text, at: at == 0 or (lines and text[at - 1] == "\n"),
            op.AT_BEGINNING_STRING: lambda _, at: at == 0,
            op.AT_END: lambda text, at: at >= len(text) - (text[-1:] == "\n") or (lines and text[at] == "\n"),
            op.AT_END_STRING: lambda text, at: at == len(text),
            op.AT_BOUNDARY: lambda text, at: word(text, at - 1) != word(text, at),
            op.AT_NON_BOUNDARY: lambda text, at: word(text, at - 1) == word(text, at),
        }
        test = tests[value]

        def run(place: int, then: Then) -> int | None:
            self.taken(1)
            return then(place) if test(self.text, place) else None

        return run


def _rendered(kind: Any, value: Any) -> str:
    if kind is op.LITERAL:
        return re.escape(chr(value))
    if kind is op.NOT_LITERAL:
        return f"[^{_class(chr(value))}]"
    parts = []
    for part, own in value:
        if part is op.NEGATE:
            parts.append("^")
        elif part is op.RANGE:
            parts.append(f"{_class(chr(own[0]))}-{_class(chr(own[1]))}")
        elif part is op.CATEGORY:
            parts.append(_CATEGORIES[own])
        else:
            parts.append(_class(chr(own)))
    return f"[{''.join(parts)}]"


def _class(char: str) -> str:
    return f"\\{char}" if char in "\\]^-[&~|" else char


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


@cache
def _matcher(pattern: re.Pattern[str]) -> _Matcher:
    return _Matcher(pattern)


def end_of_match(
    pattern: re.Pattern[str], text: str, places: range, whole: bool, taken: Callable[[int], None]
) -> int:
    """Of the first match that begins at one of these places; -1 where none does. `taken` hears of steps."""
    matcher = _matcher(pattern)
    matcher.text, matcher.taken = text, taken
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(_DEPTH)
    try:
        for place in places:
            taken(1)
            found = matcher.start(place, lambda end: end if not whole or end == len(text) else None)
            if found is not None:
                return found
    finally:
        sys.setrecursionlimit(before)
    return -1

"""What every kind of document is made of: units to translate, and edits that put translations into its text.

text ─ parse ─▶ document.units ─▶ translations ─ document.edits ─▶ the same text, but for the edits
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

Check = Callable[[int], None]
"""Called with the number of parts (lines, tags, text) read since the last call. It may raise to stop reading
a document that is too large or no longer needed."""
UnitState = Literal["new", "done"]
"""`new`: there is no translation yet; `done`: there is one, and it is left alone."""


def unchecked(_parts: int) -> None:
    """Any number of parts is right."""


def split_lines(text: str, check: Check) -> list[str]:
    """The lines of a document, counted before there is a list of them."""
    check(text.count("\n") + 1)
    return text.split("\n")


@dataclass(frozen=True, slots=True)
class Edit:
    """`text[start:end]` becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A text to translate. Tags in it (`<g1>`, `</g1>`, `<g2/>`) stand for the inline `codes` of the file."""

    id: str
    line: int
    source: str
    codes: Mapping[str, str] = field(default_factory=dict)
    before: str = ""
    """White space and codes before the source, kept as they are."""
    after: str = ""
    state: UnitState = "new"


class Document(Protocol):
    @property
    def units(self) -> Sequence[Unit]: ...

    def edits(self, texts: Mapping[int, str]) -> Iterable[Edit]:
        """The edits for these translations, by unit number. Each has been checked to contain the codes of its
        unit."""
        ...


def apply(text: str, edits: Iterable[Edit], check: Check = unchecked) -> str:
    """The text with all edits; the same edit may come several times, none may overlap another."""
    parts: list[str] = []
    at = 0
    wanted: set[Edit] = set()
    for edit in edits:
        check(0)
        wanted.add(edit)
    for edit in sorted(wanted, key=lambda edit: (edit.start, edit.end)):
        assert edit.start >= at, f"edits overlap at {edit.start}"
        parts += (text[at : edit.start], edit.new)
        at = edit.end
    return "".join([*parts, text[at:]])


class Lines:
    """The numbers of lines, from offsets that only grow."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._line = text, 0, 1

    def number(self, offset: int) -> int:
        self._line += self._text.count("\n", self._at, offset)
        self._at = max(self._at, offset)
        return self._line

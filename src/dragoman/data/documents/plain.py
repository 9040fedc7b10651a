"""Plain text: every line that is not blank is a unit; white space around it stays."""

from collections.abc import Iterator, Mapping

from dragoman.data.documents.inline import Inline, written_unit
from dragoman.data.documents.unit import Check, Edit, Unit, split_lines, unchecked


class PlainDocument:
    def __init__(self, text: str, _where: str, _languages: tuple[str, str], check: Check = unchecked) -> None:
        self.units: list[Unit] = []
        self._places: list[tuple[int, int]] = []
        at = 0
        for number, line in enumerate(split_lines(text, check), start=1):
            if line.strip():
                inline = Inline(check)
                inline.text(line)
                self.units.append(inline.unit(str(number), number, str))
                self._places.append((at, at + len(line)))
            at += len(line) + 1

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            yield Edit(*self._places[number], written_unit(self.units[number], text, str))

"""Plain text: every line that is not blank is a unit; white space around it stays."""

from collections.abc import Iterator, Mapping

from dragoman.data.documents.inline import Inline, filled
from dragoman.data.documents.unit import Check, Edit, Unit, lines_of, unchecked


class PlainDocument:
    def __init__(self, text: str, _where: str, _languages: tuple[str, str], check: Check = unchecked) -> None:
        self.units: list[Unit] = []
        self._places: list[tuple[int, int]] = []
        at = 0
        for number, line in enumerate(lines_of(text, check), start=1):
            if line.strip():
                inline = Inline(check)
                inline.text(line)
                self.units.append(inline.unit(str(number), number, str))
                self._places.append((at, at + len(line)))
            at += len(line) + 1

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            yield Edit(*self._places[number], filled(self.units[number], text, str))

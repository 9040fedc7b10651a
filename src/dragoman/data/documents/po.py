"""PO: translations fill the empty strings, and their entries are marked fuzzy for review."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dragoman.data.documents.inline import Inline, written_unit
from dragoman.data.documents.unit import Check, Edit, Unit, split_lines, unchecked
from dragoman.data.formats.gettext import Entry, escape_po, parse_po
from dragoman.errors import UserError

MOST_FORMS = 16
"""Each is filled with the translation of the plural: with more, a file could grow to the square of itself."""


@dataclass(frozen=True)
class _Slot:
    """The strings that one unit fills: one form, or for a plural all but the first."""

    entry: Entry
    forms: tuple[str, ...]


class PoDocument:
    def __init__(self, text: str, where: str, _languages: tuple[str, str], check: Check = unchecked) -> None:
        self._check = check
        self._lines = split_lines(text, check)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line) + 1)
        self.units: list[Unit] = []
        self._slots: list[_Slot] = []
        for entry in parse_po(self._lines, where):
            if not entry.is_header:
                self._add(entry, where)

    def _add(self, entry: Entry, where: str) -> None:
        forms = entry.forms
        if len(forms) > MOST_FORMS:
            raise UserError(f"{where}:{entry.begins}: more than {MOST_FORMS} plural forms are too many")
        plural = "msgid_plural" in entry.fields
        slots = [("msgid", tuple(forms[:1])), ("msgid_plural", tuple(forms[1:]))] if plural else []
        if plural and len(forms) == 1:
            slots = [("msgid_plural", tuple(forms))]
        context = f"{entry.text('msgctxt')}|" if "msgctxt" in entry.fields else ""
        for keyword, filled_forms in slots or [("msgid", tuple(forms))]:
            inline = Inline(self._check)
            inline.text(entry.text(keyword))
            done = not filled_forms or any(entry.text(form) for form in forms)
            name = context + entry.text("msgid")
            unit = inline.unit(name, entry.begins, _as_it_is, "done" if done else "new")
            self.units.append(unit)
            self._slots.append(_Slot(entry, filled_forms))

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            slot = self._slots[number]
            yield self._fuzzy(slot.entry)
            for form in slot.forms:
                yield self._string(slot.entry, form, written_unit(self.units[number], text, _as_it_is))

    def _fuzzy(self, entry: Entry) -> Edit:
        if entry.flags_line is None:
            start = self._starts[entry.begins - 1]
            return Edit(start, start, f"#, fuzzy{self._line_end(entry.begins)}")
        start = self._starts[entry.flags_line - 1]
        after = start + self._lines[entry.flags_line - 1].index("#,") + 2
        return Edit(after, after, "" if entry.fuzzy else " fuzzy,")

    def _string(self, entry: Entry, form: str, text: str) -> Edit:
        """In one line, or line by line where the text has several, as gettext's own tools write it."""
        place = entry.fields[form]
        first, last = self._starts[place.first - 1], self._starts[place.last] - 1
        end = "\r" if self._lines[place.last - 1].endswith("\r") else ""
        *whole, rest = text.split("\n")
        pieces = [f'"{escape_po(piece)}"' for piece in (*(f"{line}\n" for line in whole), rest) if piece]
        strings = ['""', *pieces] if len(pieces) > 1 else pieces or ['""']
        return Edit(first, last, f"{form} {(end + chr(10)).join(strings)}{end}")

    def _line_end(self, number: int) -> str:
        return "\r\n" if self._lines[number - 1].endswith("\r") else "\n"


def _as_it_is(text: str) -> str:
    return text

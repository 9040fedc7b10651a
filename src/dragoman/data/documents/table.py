"""Tables of pairs, TSV and JSON lines: where the source has a text and the target none, it is filled in."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dragoman.data.documents.inline import Inline, written_unit
from dragoman.data.documents.unit import Check, Edit, Unit, split_lines, unchecked
from dragoman.data.formats.columns import find_sides
from dragoman.errors import UserError

_DECODER = json.JSONDecoder()
_LONGEST_LINE = 1 << 20
"""Characters of a line of JSON. What it is read into takes many times its memory."""


class TsvDocument:
    """Columns by the names in the first line, else the first two. A line with the source alone gets a second
    column."""

    def __init__(self, text: str, where: str, languages: tuple[str, str], check: Check = unchecked) -> None:
        self.units: list[Unit] = []
        self._check = check
        self._places: list[Edit] = []
        src, tgt = 0, 1
        at = 0
        for number, line in enumerate(split_lines(text, check), start=1):
            cells = line.removesuffix("\r").split("\t")
            found = find_sides(cells, *languages) if number == 1 and len(cells) > 1 else None
            if found is not None:
                src, tgt = found
            elif line.strip():
                if len(cells) <= max(src, tgt) and not (len(cells) == 1 and (src, tgt) == (0, 1)):
                    raise UserError(
                        f"{where}:{number}: expected {max(src, tgt) + 1} columns, found {len(cells)}"
                    )
                self._add(number, at, cells, src, tgt)
            at += len(line) + 1

    def _add(self, number: int, at: int, cells: list[str], src: int, tgt: int) -> None:
        missing = len(cells) == 1
        inline = Inline(self._check)
        inline.text(cells[src])
        done = not cells[src].strip() or (not missing and bool(cells[tgt].strip()))
        self.units.append(inline.unit(str(number), number, str, "done" if done else "new"))
        start = at + sum(len(cell) + 1 for cell in cells[:tgt]) - missing
        end = start if missing else start + len(cells[tgt])
        self._places.append(Edit(start, end, "\t" if missing else ""))

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            place = self._places[number]
            new = written_unit(self.units[number], " ".join(re.split(r"[\t\n\r]+", text)), str)
            yield Edit(place.start, place.end, place.new + new)


class JsonlDocument:
    """Objects with `src` and `tgt`, `source` and `target`, or the languages of the run; also below
    `translation`."""

    def __init__(self, text: str, where: str, languages: tuple[str, str], check: Check = unchecked) -> None:
        self.units: list[Unit] = []
        self._check = check
        self._places: list[tuple[int, str, str]] = []
        at = 0
        for number, line in enumerate(split_lines(text, check), start=1):
            if len(line) > _LONGEST_LINE:
                raise UserError(f"{where}:{number}: the line is longer than {_LONGEST_LINE:,} characters")
            if line.strip():
                self._add(number, at, line.removesuffix("\r"), languages, f"{where}:{number}")
            at += len(line) + 1

    def _add(self, number: int, at: int, line: str, languages: tuple[str, str], where: str) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{where}: not valid JSON ({error})") from None
        nested = record.get("translation") if isinstance(record, dict) else None
        holder: Any = nested if isinstance(nested, dict) else record
        sides = [languages, ("src", "tgt"), ("source", "target")]
        found = next((pair for pair in sides if isinstance(holder, dict) and pair[0] in holder), None)
        if found is None or not isinstance(holder[found[0]], str):
            raise UserError(f"{where}: expected an object with the text '{languages[0]}', 'src' or 'source'")
        src, tgt = found
        inline = Inline(self._check)
        inline.text(holder[src])
        done = not holder[src].strip() or bool(holder.get(tgt))
        edit = None if done else _value_place(line, src, tgt, nested is holder)
        if not done and edit is None:
            raise UserError(f"{where}: '{tgt}' is no text; leave it out, or write an empty one")
        self.units.append(inline.unit(str(number), number, str, "done" if done else "new"))
        self._places.append(
            (at, line, tgt) if edit is None else (at + edit[0], line[edit[0] : edit[1]], edit[2])
        )

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        for number, text in texts.items():
            start, old, lead = self._places[number]
            value = json.dumps(written_unit(self.units[number], text, str), ensure_ascii=False)
            yield Edit(start, start + len(old), lead + value)


def _value_place(line: str, src: str, tgt: str, nested: bool) -> tuple[int, int, str] | None:
    """Where the value of `tgt` is or will be: start, end, and the text to insert before it."""
    places = _values(line, 0)
    if nested:
        places = _values(line, places["translation"][0])
    start, end = places.get(tgt, (0, 0))
    if line[start:end] in ('""', "null"):
        return start, end, ""
    if tgt in places:
        return None
    end = places[src][1]
    return end, end, f", {json.dumps(tgt, ensure_ascii=False)}: "


def _values(line: str, at: int) -> dict[str, tuple[int, int]]:
    """Start and end of the values of a JSON object, by key; for duplicate keys the last one, which counts.
    The line is known to be valid JSON."""
    places: dict[str, tuple[int, int]] = {}
    at = _past_spaces(line, _past_spaces(line, at) + 1)
    while line[at] != "}":
        name, at = _DECODER.raw_decode(line, at)
        start = _past_spaces(line, _past_spaces(line, at) + 1)
        _, end = _DECODER.raw_decode(line, start)
        places[name] = (start, end)
        at = _past_spaces(line, end)
        at = _past_spaces(line, at + 1) if line[at] == "," else at
    return places


def _past_spaces(line: str, at: int) -> int:
    while line[at] in " \t\r\n":
        at += 1
    return at

"""Subtitles, SRT and WebVTT: a cue is translated as one text, and wrapped to as many lines again.

Numbers, times, settings, notes and styles stay. Where every line begins with a dash, somebody else speaks in
each, and each is translated by itself.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping

from dragoman.data.documents.inline import Escape, Inline, written_unit
from dragoman.data.documents.unit import Check, Edit, Unit, split_lines, unchecked
from dragoman.errors import UserError

_CODE = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)(?![A-Za-z0-9])[^<>\n]*>|<[0-9:.]+>|\{\\[^{}\n]*\}")
_DASHES = ("-", "–", "—")


class SubtitleDocument:
    def __init__(self, text: str, where: str, _languages: tuple[str, str], check: Check = unchecked) -> None:
        self._text, self._check = text, check
        vtt = text.startswith("WEBVTT")
        self._escape: Escape = _escape_vtt if vtt else str
        self.units: list[Unit] = []
        self._places: list[tuple[int, int, int]] = []
        cues = 0
        for number, start, lines in _blocks(split_lines(text, check)):
            timed = next((n for n, line in enumerate(lines) if "-->" in line), None)
            if timed is None:
                if not vtt and any(line.strip() for line in lines):
                    raise UserError(f"{where}:{number}: a subtitle without its times (00:00:01,000 --> …)")
                continue
            cues += 1
            begin = start + sum(len(line) + 1 for line in lines[: timed + 1])
            self._add(str(cues), number + timed + 1, begin, lines[timed + 1 :], vtt)
        if not cues:
            raise UserError(f"{where}: there are no subtitles in the file")

    def _add(self, name: str, line: int, start: int, lines: list[str], vtt: bool) -> None:
        spoken = [each.strip() for each in lines if each.strip()]
        apart = len(spoken) > 1 and all(each.startswith(_DASHES) for each in spoken)
        for group in [[each] for each in lines] if apart else [lines]:
            end = start + sum(len(each) + 1 for each in group) - 1
            content = self._text[start:end]
            stop = start + len(content.rstrip())
            if content.strip():
                inline = _inline(" ".join(each.strip() for each in group if each.strip()), vtt, self._check)
                self.units.append(inline.unit(name, line, self._escape))
                self._places.append((start, stop, sum(bool(each.strip()) for each in group)))
            start, line = end + 1, line + len(group)

    def edits(self, texts: Mapping[int, str]) -> Iterator[Edit]:
        line_end = "\r\n" if "\r\n" in self._text else "\n"
        for number, text in texts.items():
            start, end, count = self._places[number]
            if text != self.units[number].source:
                wrapped = wrap(written_unit(self.units[number], text, self._escape), count)
                yield Edit(start, end, line_end.join(wrapped))


def wrap(text: str, count: int) -> list[str]:
    """At most `count` lines of about the same length, cut at spaces outside of tags."""
    lines: list[str] = []
    spaces = _spaces_outside_tags(text)
    begin = first = 0
    for left in range(count, 1, -1):
        if first == len(spaces):
            break
        aim = begin + (len(text) - begin) / left
        after = bisect_left(spaces, aim, first)
        near = [n for n in (after - 1, after) if first <= n < len(spaces)]
        chosen = min(near, key=lambda n: abs(spaces[n] - aim))
        lines.append(text[begin : spaces[chosen]])
        begin, first = spaces[chosen] + 1, chosen + 1
    return [*lines, text[begin:]]


def _spaces_outside_tags(text: str) -> list[int]:
    """Where a line may be cut. A space is inside a tag if the next bracket after it closes one."""
    found: list[int] = []
    waiting: list[int] = []
    for at, char in enumerate(text):
        if char == " ":
            waiting.append(at)
        elif char in "<>":
            found += waiting if char == "<" else ()
            waiting = []
    return found + waiting


def _blocks(every: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """Runs of lines without an empty one: the number of the first, its offset, the lines."""
    at, begins, first, lines = 0, 0, 1, []
    for number, line in enumerate(every, start=1):
        if line.strip():
            if not lines:
                begins, first = at, number
            lines.append(line)
        elif lines:
            yield first, begins, lines
            lines = []
        at += len(line) + 1
    if lines:
        yield first, begins, lines


def _inline(text: str, vtt: bool, check: Check) -> Inline:
    inline = Inline(check)
    at = 0
    for match in _CODE.finditer(text):
        inline.text(_unescape_vtt(text[at : match.start()]) if vtt else text[at : match.start()])
        at = match.end()
        if match[2] is None:
            inline.alone(match[0])
        else:
            (inline.close if match[1] else inline.open)(match[0], match[2].lower())
    inline.text(_unescape_vtt(text[at:]) if vtt else text[at:])
    return inline


def _unescape_vtt(text: str) -> str:
    for char, escaped in (("<", "&lt;"), (">", "&gt;"), ("\u00a0", "&nbsp;"), ("&", "&amp;")):
        text = text.replace(escaped, char)
    return text


def _escape_vtt(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

"""The inline syntax of Markdown as codes: emphasis and links around text, code and images by themselves."""

import re
from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

from dragoman.data.documents.html import VOID
from dragoman.data.documents.inline import Inline
from dragoman.data.documents.unit import Check

_PUNCTUATION = frozenset(r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]{0,1000})?(/?)>")
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{0,2000}>|<[^\s<>@]{1,200}@[^\s<>@]{1,200}>")
_BRACKETS = re.compile(r"\[((?:[^\[\]\\`]|\\.|`[^`]{0,200}`|\[[^\[\]]{0,200}\]){0,2000})\]")
_TARGET = re.compile(r"\((?:[^()\\\n]|\\.|\([^()\n]{0,500}\)){0,2000}\)|\[[^\[\]\n]{0,500}\]")
_STARTS = re.compile(r"[\\`!\[\]<*_~]")


@dataclass
class _Scan:
    text: str
    inline: Inline
    labels: Collection[str] = ()
    """Of the link definitions in the document, in folded case."""
    closings: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Where a link's text ends: the end of its target, and how it is to be written."""
    opened: list[tuple[tuple[str, int], int]] = field(default_factory=list)
    """Emphasis that is open: its mark and how many of them, and where it began."""
    places: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    """For each kind of marks, where in `opened` they are."""

    @cached_property
    def backticks(self) -> dict[int, list[int]]:
        """Where runs of backticks begin, by their length."""
        found: dict[int, list[int]] = {}
        for run in re.finditer("`+", self.text):
            self.inline.check(1)
            found.setdefault(run.end() - run.start(), []).append(run.start())
        return found


def inline_of(text: str, labels: Collection[str], check: Check) -> Inline:
    """The content of a block, given as one line. `labels` are what `[text]` can be a link to."""
    scan = _Scan(text, Inline(check), labels)
    at = 0
    while at < len(text):
        if at in scan.closings:
            end, raw = scan.closings.pop(at)
            scan.inline.close(raw, ("link", at))
            at = end
            continue
        end = _code(scan, at)
        if end is None:
            following = _STARTS.search(text, at + 1)
            end = following.start() if following else len(text)
            scan.inline.text(text[at:end])
        at = end
    return scan.inline


def _code(scan: _Scan, at: int) -> int | None:
    """The end of the code that begins here, if one does."""
    text, char = scan.text, scan.text[at]
    if char == "\\" and at + 1 < len(text) and text[at + 1] in _PUNCTUATION:
        scan.inline.text(text[at + 1])
        return at + 2
    if char == "`":
        return _code_span(scan, at)
    if char == "<" and (link := _AUTOLINK.match(text, at)):
        scan.inline.alone(link[0])
        return link.end()
    if char == "<" and (tag := _TAG.match(text, at)):
        name = tag[2].lower()
        if tag[3] or name in VOID:
            scan.inline.alone(tag[0])
        else:
            (scan.inline.close if tag[1] else scan.inline.open)(tag[0], name)
        return tag.end()
    if char in "![":
        return _link(scan, at)
    return _emphasis(scan, at) if char in "*_~" else None


def _code_span(scan: _Scan, at: int) -> int:
    end = at
    while end < len(scan.text) and scan.text[end] == "`":
        end += 1
    marks = end - at
    others = scan.backticks.get(marks, [])
    closing = bisect_left(others, end)
    end = others[closing] + marks if closing < len(others) else end
    scan.inline.alone(scan.text[at:end])
    return end


def _link(scan: _Scan, at: int) -> int | None:
    image = scan.text[at] == "!"
    brackets = _BRACKETS.match(scan.text, at + image)
    if brackets is None:
        return None
    target = _TARGET.match(scan.text, brackets.end())
    raw = target[0] if target else ""
    if raw in ("", "[]") and fold_label(brackets[1]) in scan.labels:
        raw = f"[{brackets[1]}]"  # the text is about to change, the label is not
    if brackets[1].startswith("^"):
        scan.inline.alone(brackets[0])
        return brackets.end()
    if not raw:
        return None
    end = target.end() if target else brackets.end()
    if image or not brackets[1].strip():
        scan.inline.alone(scan.text[at:end])
        return end
    scan.inline.open("[", ("link", brackets.end() - 1))
    scan.closings[brackets.end() - 1] = (end, f"]{raw}")
    return at + 1


def fold_label(label: str) -> str:
    return " ".join(label.casefold().split())


def _emphasis(scan: _Scan, at: int) -> int:
    text, char, end = scan.text, scan.text[at], at
    while end < len(text) and text[end] == char:
        end += 1
    before, after = text[at - 1] if at else " ", text[end] if end < len(text) else " "
    if (char == "~" and end - at != 2) or (char == "_" and before.isalnum() and after.isalnum()):
        scan.inline.text(text[at:end])
        return end
    closing = _closing_marks(scan, char, end - at, before.isspace(), after.isspace())
    if closing:
        scan.inline.text(text[at : end - closing])
        place = scan.places[char, closing][-1]
        scan.inline.close(text[end - closing : end], ("emphasis", scan.opened[place][1]))
        for marks, _ in scan.opened[place:]:  # what was opened inside is not closed any more
            scan.places[marks].pop()
            scan.opened.pop()
    elif after.isspace():
        scan.inline.text(text[at:end])  # a star by itself is text
    else:
        scan.inline.open(text[at:end], ("emphasis", at))
        scan.places.setdefault((char, end - at), []).append(len(scan.opened))
        scan.opened.append(((char, end - at), at))
    return end


def _closing_marks(scan: _Scan, char: str, count: int, space_before: bool, space_after: bool) -> int:
    """How many of so many marks close what is open. Before white space, where they cannot open anything, it
    may be the last ones only."""
    fewest = 1 if space_after and char != "~" else count
    lengths = range(count - space_before, fewest - 1, -1)
    return next((length for length in lengths if scan.places.get((char, length))), 0)


def escape_markdown(text: str) -> str:
    """Characters that would begin something are escaped where they can."""
    text = text.replace("\\", "\\\\")
    text = re.sub(r"([`*])", r"\\\1", text)
    text = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)
    return re.sub(r"<(?=[A-Za-z/!?])", r"\\<", text)

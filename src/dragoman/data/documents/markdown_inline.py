"""The inline syntax of Markdown as codes: emphasis and links around text, code and images by themselves."""

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from dragoman.data.documents.html import VOID
from dragoman.data.documents.inline import Inline

_PUNCTUATION = frozenset(r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~""")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)(?:\s[^<>]{0,1000})?(/?)>")
_AUTOLINK = re.compile(r"<[A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{0,2000}>|<[^\s<>@]{1,200}@[^\s<>@]{1,200}>")
_BRACKETS = re.compile(r"\[((?:[^\[\]\\`]|\\.|`[^`]{0,200}`|\[[^\[\]]{0,200}\]){0,2000})\]")
_TARGET = re.compile(r"\((?:[^()\\\n]|\\.|\([^()\n]{0,500}\)){0,2000}\)|\[[^\[\]\n]{0,500}\]")
_STARTS = re.compile(r"[\\`!\[<*_~]")


@dataclass
class _Scan:
    text: str
    inline: Inline = field(default_factory=Inline)
    labels: Collection[str] = ()
    """Of the link definitions in the document, in folded case."""
    closings: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Where a link's text ends: the end of its target, and how it is to be written."""
    opened: list[tuple[str, int]] = field(default_factory=list)
    """Emphasis that is open: its marks and its number."""
    unclosed: set[int] = field(default_factory=set)


def inline_of(text: str, labels: Collection[str] = ()) -> Inline:
    """The content of a block, given as one line. `labels` are what `[text]` can be a link to."""
    scan = _Scan(text, labels=labels)
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
            end = min([following.start() if following else len(text), *(c for c in scan.closings if c > at)])
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
    if marks not in scan.unclosed:
        for match in re.finditer("`+", scan.text[end:]):
            if len(match[0]) == marks:
                scan.inline.alone(scan.text[at : end + match.end()])
                return end + match.end()
        scan.unclosed.add(marks)
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


def _emphasis(scan: _Scan, at: int) -> int | None:
    text, char, end = scan.text, scan.text[at], at
    while end < len(text) and text[end] == char:
        end += 1
    marks = text[at:end]
    before, after = text[at - 1] if at else " ", text[end] if end < len(text) else " "
    if (char == "~" and len(marks) != 2) or (char == "_" and before.isalnum() and after.isalnum()):
        scan.inline.text(marks)
        return end
    found = next((n for n in range(len(scan.opened) - 1, -1, -1) if scan.opened[n][0] == marks), None)
    if found is not None and not before.isspace():
        scan.inline.close(marks, ("emphasis", scan.opened[found][1]))
        del scan.opened[found:]
        return end
    if after.isspace():
        return None  # a star by itself is text
    scan.inline.open(marks, ("emphasis", at))
    scan.opened.append((marks, at))
    return end


def escape_markdown(text: str) -> str:
    """Characters that would begin something are escaped where they can."""
    text = text.replace("\\", "\\\\")
    text = re.sub(r"([`*])", r"\\\1", text)
    text = re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", text)
    return re.sub(r"<(?=[A-Za-z/!?])", r"\\<", text)

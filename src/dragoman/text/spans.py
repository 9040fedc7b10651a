"""Spans that a translation has to copy: URLs, e-mail addresses, placeholders, markup, numbers.

One pass from left to right. At each character that can begin a span, the scanners of that character look for
its end; the first that finds one takes the span. There are no regular expressions: every scanner stops at the
next character that could begin its own kind, or after a fixed number of characters, so time is linear in the
length of any text. Letters and digits are ASCII.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal, get_args

from dragoman.errors import UserError

SpanKind = Literal["url", "email", "number", "placeholder", "printf", "variable", "tag", "entity"]
ALL_KINDS: tuple[SpanKind, ...] = get_args(SpanKind)
DEFAULT_KINDS: tuple[SpanKind, ...] = tuple(kind for kind in ALL_KINDS if kind != "number")
"""All kinds except numbers: languages write them differently (1,234.5 and 1.234,5)."""

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")
_NAME = _LETTERS | _DIGITS | {"_"}
_TAG_NAME = _NAME | frozenset(":.-")
_HOST = _LETTERS | _DIGITS | frozenset(".-")
_ADDRESS = _NAME | frozenset("+.-%")
_ENDS_URL = frozenset('<>"`|\\^«»“”„')
_AFTER_URL = frozenset(".,;:!?'’*_~")
_NUMBER_SEPARATORS = frozenset(".,:/-'’\u00a0\u202f")
_NUMBER_SIGNS = frozenset("%‰°€$£¥")
_PRINTF_FLAGS = frozenset("-+#0'")
_PRINTF_ENDS = frozenset("diouxXeEfFgGaAcspn@%")
_ATTRIBUTES_WITHOUT_VALUE = frozenset({
    "async", "autofocus", "autoplay", "checked", "controls", "default", "defer", "disabled", "download",
    "hidden", "loop", "multiple", "muted", "novalidate", "open", "readonly", "required", "reversed",
    "selected",
})  # fmt: skip
_LONGEST = 256  # characters of a placeholder; of a comment sixteen times as many
_LONGEST_ENTITY = 32
_LONG_INTEGER = 5  # digits from which a number without separators is a span


@dataclass(frozen=True)
class Span:
    kind: SpanKind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def check_kinds(kinds: Collection[str]) -> None:
    for kind in kinds:
        if kind not in ALL_KINDS:
            raise UserError(f"protect: expected some of {', '.join(ALL_KINDS)}, found {kind!r}")


def find(text: str, kinds: Collection[SpanKind] = DEFAULT_KINDS) -> list[Span]:
    """The spans of `text` from left to right; none overlaps another."""
    check_kinds(kinds)
    spans: list[Span] = []
    comments = _Comments(text)
    at = looked = 0
    while at < len(text):
        kind: SpanKind | None = None
        end = at
        if at >= looked and text[at] in _NAME and not (at and text[at - 1] in _NAME):
            looked, kind, end = _address(text, at, kinds)
        if kind is None:
            kind, end = _first_found(text, at, kinds, comments)
        if kind is not None:
            spans.append(Span(kind, text[at:end], at))
        at = max(end, at + 1)
    return spans


class _Comments:
    """The ends of comments. Each is searched once, however many beginnings come before it."""

    def __init__(self, text: str) -> None:
        self._text, self._end = text, 0

    def end(self, at: int) -> int | None:
        """The end of the comment that begins here, unless it is too long."""
        if 0 <= self._end < at + 4:
            self._end = self._text.find("-->", at + 4)
        return self._end + 3 if 0 <= self._end <= at + 16 * _LONGEST - 3 else None


def _first_found(
    text: str, at: int, kinds: Collection[SpanKind], comments: _Comments
) -> tuple[SpanKind | None, int]:
    if text.startswith("<!--", at):
        end = comments.end(at) if "tag" in kinds else None
        return (None, at) if end is None else ("tag", end)
    for kind, scan in _SCANNERS.get("0" if text[at] in _DIGITS else text[at], ()):
        if kind in kinds and (end := scan(text, at)) is not None:
            return kind, end
    return None, at


def _run(text: str, at: int, allowed: Collection[str]) -> int:
    while at < len(text) and text[at] in allowed:
        at += 1
    return at


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at].isalnum() or text[at] == "_")


def _address(text: str, at: int, kinds: Collection[SpanKind]) -> tuple[int, SpanKind | None, int]:
    """A URL (`scheme://…`, `www.…`) or an e-mail address, where it is wanted. The first number is how far it
    has looked: from inside that run nothing is tried again."""
    run = _run(text, at, _ADDRESS)
    if text.startswith("://", run) and text[at] in _LETTERS:
        end = _url_end(text, run + 3) if "url" in kinds else at
        return (run, "url", end) if end > run + 3 else (run, None, at)
    if text[at : at + 4].lower() == "www." and run > at + 4:
        end = _url_end(text, at) if "url" in kinds else at
        return (run, "url", end) if end > at + 4 else (run, None, at)
    if text.startswith("@", run) and "email" in kinds:
        end = _run(text, run + 1, _HOST)
        while end > run and text[end - 1] in ".-":
            end -= 1
        labels = text[run + 1 : end].split(".")
        if len(labels) > 1 and all(labels) and len(labels[-1]) > 1 and labels[-1].isalpha():
            return end, "email", end
    return run, None, at


def _url_end(text: str, at: int) -> int:
    """The end of what can stand in a URL, without the sentence's own punctuation."""
    start, end = at, at
    while end < len(text) and text[end] > " " and not text[end].isspace() and text[end] not in _ENDS_URL:
        end += 1
    opened = {")": text.count("(", start, end), "]": text.count("[", start, end)}
    opened = {close: count - text.count(close, start, end) for close, count in opened.items()}
    while end > start and (text[end - 1] in _AFTER_URL or opened.get(text[end - 1], 0) < 0):
        if text[end - 1] in opened:
            opened[text[end - 1]] += 1
        end -= 1
    return end


def _number(text: str, at: int) -> int | None:
    """Digits with separators between them (1,234.56, 12.03.2024, 10:30), a sign before them or after them
    (-3, +49, $5, 3%, 20 without one is plain), or five and more in a row. Plain short ones are no span."""
    signed = text[at] not in _DIGITS
    first = at + signed
    if _is_word(text, at - 1) or (at and text[at - 1] in _NUMBER_SEPARATORS and not signed):
        return None
    end, separated = _run(text, first, _DIGITS), False
    if end == first:
        return None
    plain = end - first
    while end + 1 < len(text) and text[end] in _NUMBER_SEPARATORS and text[end + 1] in _DIGITS:
        end, separated = _run(text, end + 1, _DIGITS), True
    marked = _run(text, end, _NUMBER_SIGNS)
    if _is_word(text, marked):  # 5px, 3rd, 20°C: the letters belong to it
        marked = _run(text, marked, _NAME) if marked > end or separated else marked
        while marked + 1 < len(text) and text[marked] in _NUMBER_SEPARATORS and text[marked + 1] in _NAME:
            marked = _run(text, marked + 1, _NAME)
        if _is_word(text, marked):
            return None
    return marked if signed or separated or marked > end or plain >= _LONG_INTEGER else None


def _placeholder(text: str, at: int) -> int | None:
    """`{name}`, `{0}`, `{}`, `{0, number}`, and anything between `{{` and `}}`."""
    double = text.startswith("{{", at)
    start = at + 1 + double
    end = _closing_brace(text, start)
    if end is None:
        return None
    if double:
        return end + 2 if text.startswith("}}", end) else None
    previous = ","
    for char in text[start:end].strip(" "):
        if char.isspace() and previous not in ", ":
            return None  # words in braces are text
        previous = char
    return end + 1


def _closing_brace(text: str, at: int) -> int | None:
    for place in range(at, min(len(text), at + _LONGEST)):
        if text[place] in "{\n":
            return None
        if text[place] == "}":
            return place
    return None


def _printf(text: str, at: int) -> int | None:
    """`%s`, `%-5.2f`, `%1$s`, `%(name)s`, `%{name}`, `%%`. After a digit it is a per cent sign."""
    if at and (text[at - 1] in _DIGITS or text[at - 1].isalpha()):
        return None
    place = at + 1
    if text.startswith("{", place):
        end = _placeholder(text, place)
        return None if text.startswith("{{", place) else end
    if text.startswith("(", place):
        end = _run(text, place + 1, _NAME)
        if end == place + 1 or not text.startswith(")", end):
            return None
        place = end + 1
    else:
        digits = _run(text, place, _DIGITS)
        place = digits + 1 if digits > place and text.startswith("$", digits) else place
    place = _run(text, _run(text, place, _PRINTF_FLAGS), _DIGITS | {"*"})
    if text.startswith(".", place):
        place = _run(text, place + 1, _DIGITS | {"*"})
    place = _run(text, place, "hlLqjzt")
    if place < len(text) and text[place] in _PRINTF_ENDS and place - at < _LONGEST:
        return place + 1
    return None


def _variable(text: str, at: int) -> int | None:
    """`$NAME` and `${NAME}`."""
    if _is_word(text, at - 1):
        return None
    if text.startswith("${", at):
        end = _closing_brace(text, at + 2)
        inside = "" if end is None else text[at + 2 : end]
        return None if end is None or not inside or any(map(str.isspace, inside)) else end + 1
    end = _run(text, at + 1, _NAME)
    starts_name = end > at + 1 and text[at + 1] not in _DIGITS
    return end if starts_name and not _is_word(text, end) else None


def _entity(text: str, at: int) -> int | None:
    """`&nbsp;`, `&#160;`, `&#xA0;`."""
    start = at + 1 + text.startswith("#", at + 1)
    end = _run(text, start, _NAME)
    return end + 1 if start < end <= start + _LONGEST_ENTITY and text.startswith(";", end) else None


def _tag(text: str, at: int) -> int | None:
    """An opening, closing or empty element with its attributes. An attribute has a value or a name that HTML
    knows without one, so that `a <b and c> d` is no tag."""
    closing = text.startswith("/", at + 1)
    start = at + 1 + closing
    if start >= len(text) or text[start] not in _LETTERS:
        return None
    place = _run(text, start, _TAG_NAME)
    while not closing:
        after = _run(text, place, " \t\n\r")
        name_end = _run(text, after, _TAG_NAME | {"@"})
        if name_end == after or after == place:
            place = after
            break
        value_end = _attribute_end(text, after, name_end)
        if value_end is None:
            return None
        place = value_end
    if closing:
        place = _run(text, place, " \t\n\r")
    elif text.startswith("/", place):
        place += 1
    return place + 1 if text.startswith(">", place) else None


def _attribute_end(text: str, start: int, name_end: int) -> int | None:
    equals = _run(text, name_end, " \t\n\r")
    if not text.startswith("=", equals):
        return name_end if text[start:name_end].lower() in _ATTRIBUTES_WITHOUT_VALUE else None
    place = _run(text, equals + 1, " \t\n\r")
    if place >= len(text):
        return None
    quote = text[place]
    if quote in "\"'":
        end = place + 1
        while end < len(text) and text[end] not in (quote, "<"):
            end += 1
        return end + 1 if text.startswith(quote, end) else None
    end = place
    while end < len(text) and not text[end].isspace() and text[end] not in "\"'<>=`/":
        end += 1
    return end if end > place else None


Scanner = Callable[[str, int], int | None]
_SCANNERS: dict[str, list[tuple[SpanKind, Scanner]]] = {
    "{": [("placeholder", _placeholder)],
    "%": [("printf", _printf)],
    "$": [("variable", _variable), ("number", _number)],
    "€": [("number", _number)],
    "£": [("number", _number)],
    "¥": [("number", _number)],
    "+": [("number", _number)],
    "-": [("number", _number)],
    "0": [("number", _number)],
    "&": [("entity", _entity)],
    "<": [("tag", _tag)],
}

"""XML from strangers, as a stream of events in constant memory.

The parser is Python's own expat, which has no code that could fetch anything. Refused, each with one sentence
that names file and line: entities that a file declares (with them goes every bomb), a DOCTYPE with an
internal subset, elements nested too deep, tags and texts too long. A DOCTYPE that only names a DTD, as TMX
files have it, is let pass and not read.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar
from xml.parsers import expat

from dragoman.data.formats.lines import read_chunks
from dragoman.errors import UserError

MAX_DEPTH = 256
MAX_TOKEN = 4 << 20
"""Bytes of one tag, comment or processing instruction."""
MAX_TEXT = 16 << 20
"""Characters of the text that a handler collects for one segment."""
_FEED = 1 << 18
_CUT_OFF = {"no element found", "unclosed token", "unclosed CDATA section", "partial character"}

T = TypeVar("T", covariant=True)


class Handler(Protocol[T]):
    """Receives the events of a file, and returns results from time to time."""

    def start(self, name: str, attributes: dict[str, str], line: int) -> None: ...

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...

    def take(self) -> Iterable[T]: ...


def read_xml(path: str | Path, handler: Handler[T]) -> Iterator[T]:
    """Feed a file to a handler, and yield what it finds."""
    parser = hardened_parser(str(path))
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            refuse_depth(str(path), parser.CurrentLineNumber)
        handler.start(name, attributes, parser.CurrentLineNumber)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        handler.end(name)

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = handler.text
    for _ in feed(parser, _pieces(read_chunks(path)), str(path)):
        yield from handler.take()


def root_name(path: str | Path) -> str | None:
    """The name of the root element of a file that begins as XML; None for any other file."""
    head = next(read_chunks(path), b"")[:_FEED]
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if (
        not head.replace(b"\0", b"" if wide else b"\0")
        .lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
        .startswith(b"<")
    ):
        return None
    names: list[str] = []
    parser = hardened_parser(str(path))
    parser.StartElementHandler = lambda name, _attributes: names.append(name)
    with suppress(expat.ExpatError, LookupError):
        parser.Parse(head, False)
    return names[0].rpartition(":")[2] if names else None


def hardened_parser(where: str, encoding: str | None = None) -> expat.XMLParserType:
    """An XML parser that refuses declared entities and internal DTDs. `encoding` overrides the file's own."""
    parser = expat.ParserCreate(encoding)

    def refuse(*_: object) -> NoReturn:
        raise UserError(
            f"{where}:{parser.CurrentLineNumber}: the DOCTYPE declares entities or elements of its own, which"
            " can be a trap: refused; remove what is between [ and ]"
        )

    def doctype(_name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        if has_subset:
            refuse()

    def undefined(name: str, _is_parameter: int) -> None:
        line = parser.CurrentLineNumber
        raise UserError(f"{where}:{line}: the entity &{name}; is not defined; write the character itself")

    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = refuse
    parser.SkippedEntityHandler = undefined
    return parser


def check_root(name: str, expected: str, where: str, line: int) -> None:
    if name != expected:
        raise UserError(f"{where}:{line}: expected <{expected}> as the root, found <{name}>")


def refuse_depth(where: str, line: int) -> NoReturn:
    raise UserError(f"{where}:{line}: elements are nested more than {MAX_DEPTH} deep: refused")


def feed(parser: expat.XMLParserType, pieces: Iterable[bytes], where: str) -> Iterator[None]:
    """Parse piece by piece, and let the caller look after each. Whatever is wrong with the file is told with
    its line."""
    fed = 0
    try:
        for piece in pieces:
            parser.Parse(piece, False)
            fed += len(piece)
            if fed - max(0, parser.CurrentByteIndex) > MAX_TOKEN + _FEED:
                line = parser.CurrentLineNumber
                raise UserError(
                    f"{where}:{line}: a tag or comment of more than {MAX_TOKEN >> 20} MiB: refused"
                )
            yield
        parser.Parse(b"", True)
        yield
    except expat.ExpatError as error:
        _explain(error, where)
    except (LookupError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{where}:1: an encoding that cannot be read ({error}); save as UTF-8") from None


def check_text_size(characters: int, where: str, line: int) -> None:
    if characters > MAX_TEXT:
        raise UserError(
            f"{where}:{line}: a segment of more than {MAX_TEXT >> 20} million characters: refused"
        )


def _explain(error: expat.ExpatError, where: str) -> NoReturn:
    said = expat.ErrorString(error.code) or "unknown error"
    if said in _CUT_OFF:
        raise UserError(
            f"{where}:{error.lineno}: the file is cut off before its end ({said}); fetch or save it again"
        ) from None
    hint = "; is it in the encoding that it names?" if "invalid token" in said else ""
    raise UserError(f"{where}:{error.lineno}: not well-formed XML ({said}{hint})") from None


def _pieces(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), _FEED):
            yield chunk[start : start + _FEED]

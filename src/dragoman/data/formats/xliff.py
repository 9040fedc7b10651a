"""XLIFF 1.2, with what Trados (sdlxliff) and memoQ (mqxliff) add to it, and XLIFF 2.

    1.2   <file source-language target-language> … <trans-unit> <source> <seg-source> <target state>
    2.x   <xliff srcLang trgLang> <file> <unit> <segment state> <source> <target>

Segments are told by `<mrk mtype="seg" mid>` in 1.2 where `seg-source` has them, else a unit is one. A segment
without a finished translation (state new, initial, needs-…; Draft or Rejected in Trados; NotStarted in memoQ)
is an empty pair, so that it is counted and not lost. Files for the other direction are turned round.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import UNKNOWN, Segment, as_pair_of_languages, best_match, name_languages
from dragoman.data.formats.pair import Pair
from dragoman.data.formats.xml import check_root, read_xml
from dragoman.errors import UserError

HIDDEN = {"bpt": False, "ept": False, "ph": True, "it": True}
"""Elements of 1.2 with native code, and whether they stand by themselves. In 2.x `ph` is empty."""
_UNFINISHED = frozenset({"new", "initial"})
_UNFINISHED_TRADOS = frozenset({"Draft", "RejectedTranslation", "RejectedSignOff", "Unspecified"})
_UNFINISHED_MEMOQ = frozenset({"NotStarted", "Rejected", "PartiallyEdited", "Pretranslated"})
_SIDES = ("source", "seg-source", "target")


def is_unfinished(state: str | None) -> bool:
    return state is not None and (state in _UNFINISHED or state.startswith("needs-"))


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    path = source.files[0]
    wanted = (source.src or src_lang, source.tgt or tgt_lang)
    found: dict[tuple[str, str], None] = {}
    segments = pairs = 0
    for piece in read_xml(path, _Handler(path)):
        segments += 1
        found[piece.languages] = None
        turned = (piece.languages[1], piece.languages[0])
        if _agree(wanted, piece.languages):
            src, tgt = piece.source, piece.target
        elif _agree(wanted, turned):
            src, tgt = piece.target, piece.source
        else:
            src = tgt = ""
            pairs -= 1
        pairs += 1
        yield Pair(src, tgt, piece.line, document=piece.file)
    if not segments:
        raise UserError(f"{path}: the file has no segments")
    if not pairs:
        names = name_languages([" → ".join(two) for two in found])
        raise UserError(f"{path}: no segment is from '{wanted[0]}' to '{wanted[1]}'; they are {names}")


def languages_of(path: str) -> tuple[str, str] | None:
    """The languages of the first `file` element that names both."""
    for piece in read_xml(path, _Handler(path)):
        if all(piece.languages):
            return as_pair_of_languages(*piece.languages)
    return None


def _agree(wanted: tuple[str, str], found: tuple[str, str]) -> bool:
    """Whether two languages match; an unnamed one matches any."""
    return wanted == UNKNOWN or all(
        not there or best_match(asked, [there]) is not None
        for asked, there in zip(wanted, found, strict=True)
    )


@dataclass(frozen=True)
class _Piece:
    source: str
    target: str
    line: int
    languages: tuple[str, str]
    file: str
    """The number of the `<file>` that it is in."""


@dataclass
class _Unit:
    """A trans-unit of 1.2, or a segment of 2.x."""

    line: int
    state: str | None = None
    unfinished: bool = False
    whole: dict[str, Segment] = field(default_factory=dict)
    """Segments by element: `source`, `seg-source` and `target`."""
    parts: dict[str, dict[str, Segment]] = field(default_factory=dict)
    """Parts by element, then by segment id."""
    unfinished_parts: set[str] = field(default_factory=set)


class _Handler:
    def __init__(self, path: str) -> None:
        self._path = path
        self._done: list[_Piece] = []
        self._prefix: str | None = None
        self._languages = ("", "")
        self._files = 0
        self._unit: _Unit | None = None
        self._side: str | None = None
        self._aside = 0  # how deep inside alt-trans, matches, notes …: what is there is not the unit's own
        self._marks: list[str | None] = []

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if self._prefix is None:
            self._begin(name, attributes, line)
            return
        if name == "sdl:seg" and self._unit is not None:
            if attributes.get("conf", "Unspecified") in _UNFINISHED_TRADOS:
                self._unit.unfinished_parts.add(attributes.get("id", ""))
            return
        name = name.removeprefix(self._prefix)
        if self._side is not None:
            self._start_inline(name, attributes, line)
        elif self._unit is None:
            self._start_outside(name, attributes, line)
        elif self._aside or name not in _SIDES:
            self._aside += 1
        else:
            self._unit.whole[name] = Segment(self._path, line)
            self._side = name
            if name == "target":
                self._unit.state = attributes.get("state", self._unit.state)

    def _begin(self, name: str, attributes: dict[str, str], line: int) -> None:
        prefix, colon, local = name.rpartition(":")
        check_root(local, "xliff", self._path, line)
        self._prefix = prefix + colon
        self._languages = (attributes.get("srcLang", ""), attributes.get("trgLang", ""))

    def _start_outside(self, name: str, attributes: dict[str, str], line: int) -> None:
        self._files += name == "file"
        if name == "file" and "source-language" in attributes:
            self._languages = (attributes["source-language"], attributes.get("target-language", ""))
        elif name in ("trans-unit", "segment"):
            unfinished = attributes.get("mq:status") in _UNFINISHED_MEMOQ
            self._unit = _Unit(line, attributes.get("state"), unfinished)

    def _start_inline(self, name: str, attributes: dict[str, str], line: int) -> None:
        assert self._unit is not None and self._side is not None
        whole = self._unit.whole[self._side]
        if name == "mrk":
            mark = attributes.get("mid") if attributes.get("mtype") == "seg" else None
            self._marks.append(mark)
            if mark is not None:
                self._unit.parts.setdefault(self._side, {})[mark] = Segment(self._path, line)
        for segment in (whole, self._part()):
            if segment is not None and name in HIDDEN:
                segment.hide(HIDDEN[name])
            elif segment is not None and name == "x":
                segment.code()

    def _part(self) -> Segment | None:
        """The segment inside the unit that is being read, if it is one of several."""
        assert self._unit is not None and self._side is not None
        mark = next((mark for mark in reversed(self._marks) if mark is not None), None)
        return self._unit.parts[self._side].get(mark) if mark is not None else None

    def end(self, name: str) -> None:
        name = name.removeprefix(self._prefix or "")
        if self._side is not None:
            assert self._unit is not None
            if name == self._side:
                self._side = None
            elif name == "mrk":
                self._marks.pop()
            elif name in HIDDEN:
                for segment in (self._unit.whole[self._side], self._part()):
                    if segment is not None:
                        segment.show()
        elif self._aside:
            self._aside -= name != "sdl:seg"
        elif self._unit is not None and name in ("trans-unit", "segment"):
            self._done += self._pieces(self._unit)
            self._unit = None

    def text(self, data: str) -> None:
        if self._side is not None:
            assert self._unit is not None
            self._unit.whole[self._side].add(data)
            part = self._part() if self._marks else None
            if part is not None:
                part.add(data)

    def take(self) -> list[_Piece]:
        done, self._done = self._done, []
        return done

    def _pieces(self, unit: _Unit) -> list[_Piece]:
        unfinished = unit.unfinished or is_unfinished(unit.state)
        parts, targets = unit.parts.get("seg-source", {}), unit.parts.get("target", {})
        if parts and (targets or not self._has_text(unit, "target")):
            return [
                _Piece(
                    part.text,
                    ""
                    if unfinished or mark in unit.unfinished_parts or mark not in targets
                    else targets[mark].text,
                    unit.line,
                    self._languages,
                    str(self._files),
                )
                for mark, part in parts.items()
            ]
        whole = unit.whole
        target = "" if unfinished or "target" not in whole else whole["target"].text
        source = whole["source"].text if "source" in whole else ""
        return [_Piece(source, target, unit.line, self._languages, str(self._files))]

    def _has_text(self, unit: _Unit, side: str) -> bool:
        return side in unit.whole and bool(unit.whole[side].text)

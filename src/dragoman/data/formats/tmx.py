"""Translation memories: TMX 1.4 and older, as OmegaT, Trados and the others write them.

    <tu> <tuv xml:lang="en-US"> <seg>Click <bpt i="1">&lt;b></bpt>here<ept i="1">&lt;/b></ept>.</seg> </tuv> …

The native code inside `bpt ept ph it ut` is not text, nor is what is in a `sub` inside it; `hi` is. A unit
that lacks one of the two languages is an empty pair, so that it is counted and not lost.
"""

from collections.abc import Iterator
from itertools import permutations

from dragoman.data.config import SourceConfig
from dragoman.data.formats.bitext import (
    UNKNOWN,
    Segment,
    as_pair_of_languages,
    best_match,
    name_languages,
    normal,
    primary,
)
from dragoman.data.formats.pair import Pair
from dragoman.data.formats.xml import check_root, read_xml
from dragoman.errors import UserError

HIDDEN = {"bpt": False, "ept": False, "ph": True, "it": True, "ut": True}
"""Elements with native code, and whether they stand by themselves."""
_ALL_LANGUAGES = "*all*"


def read(source: SourceConfig, src_lang: str, tgt_lang: str) -> Iterator[Pair]:
    path = source.files[0]
    wanted = (source.src or src_lang, source.tgt or tgt_lang)
    if wanted == UNKNOWN:
        wanted = languages_of(path) or wanted
    chosen: dict[tuple[str, ...], tuple[str | None, str | None]] = {}
    units = pairs = 0
    seen: dict[str, None] = {}
    for unit in read_xml(path, _Handler(path)):
        units += 1
        there = tuple(unit.texts)
        if there not in chosen:
            seen |= dict.fromkeys(there)
            src = best_match(wanted[0], there)
            chosen[there] = (src, best_match(wanted[1], [each for each in there if each != src]))
            if len(chosen) > 10_000:
                raise UserError(f"{path}:{unit.line}: over 10,000 sets of languages; is this a memory?")
        src, tgt = chosen[there]
        pairs += src is not None and tgt is not None
        yield Pair(unit.texts[src] if src else "", unit.texts[tgt] if tgt else "", unit.line)
    if not units:
        raise UserError(f"{path}: the file has no translation units")
    if not pairs:
        names = name_languages(list(seen))
        raise UserError(
            f"{path}: no unit has both '{wanted[0]}' and '{wanted[1]}'; the languages in it are {names}"
        )


def languages_of(path: str) -> tuple[str, str] | None:
    """The source language that the header names (else that of the first unit), and the other language of the
    first unit that has two. None where the file does not tell."""
    handler = _Handler(path)
    for unit in read_xml(path, handler):
        named = handler.source_language
        src = best_match(named, unit.texts) if named else next(iter(unit.texts), None)
        others = [each for each in unit.texts if src is not None and normal(each) != normal(src)]
        if src is not None and others:
            apart = next((each for each in others if primary(each) != primary(src)), others[0])
            return as_pair_of_languages(src, apart)
    return None


def pairs_of_languages(path: str) -> list[tuple[str, str]]:
    """Every two languages that some unit has, both ways. Short codes, unless a language has variants."""
    sets: dict[tuple[str, ...], None] = {}
    for unit in read_xml(path, _Handler(path)):
        sets.setdefault(tuple(map(normal, unit.texts)))
    found = {code for languages in sets for code in languages}
    variants = {primary(code) for code in found if [primary(c) for c in found].count(primary(code)) > 1}
    named = {code: code if primary(code) in variants else primary(code) for code in found}
    pairs = (pair for languages in sets for pair in permutations(languages, 2))
    return list(dict.fromkeys((named[src], named[tgt]) for src, tgt in pairs))


class _Unit:
    def __init__(self, line: int) -> None:
        self.line = line
        self.texts: dict[str, str] = {}


class _Handler:
    """Collects units. Of several variants in the same language the first counts."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._done: list[_Unit] = []
        self._unit: _Unit | None = None
        self._language = ""
        self._is_tmx = False
        self._segment: Segment | None = None
        self.source_language: str | None = None

    def start(self, name: str, attributes: dict[str, str], line: int) -> None:
        if not self._is_tmx:
            check_root(name, "tmx", self._path, line)
            self._is_tmx = True
        elif self._segment is not None:
            if name in HIDDEN:
                self._segment.hide(HIDDEN[name])
        elif name == "seg" and self._unit is not None and self._language not in self._unit.texts:
            self._segment = Segment(self._path, line)
        elif name == "tuv" and self._unit is not None:
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
            if not self._language:
                raise UserError(
                    f"{self._path}:{line}: a tuv without xml:lang; every variant needs a language"
                )
        elif name == "tu":
            self._unit = _Unit(line)
        elif name == "header":
            named = attributes.get("srclang", _ALL_LANGUAGES)
            self.source_language = None if normal(named) == _ALL_LANGUAGES else named

    def end(self, name: str) -> None:
        if self._segment is not None:
            if name in HIDDEN:
                self._segment.show()
            elif name == "seg":
                assert self._unit is not None
                self._unit.texts[self._language] = self._segment.text
                self._segment = None
        elif name == "tu" and self._unit is not None:
            self._done.append(self._unit)
            self._unit = None

    def text(self, data: str) -> None:
        if self._segment is not None:
            self._segment.add(data)

    def take(self) -> list[_Unit]:
        done, self._done = self._done, []
        return done

"""Shared parts of the readers of translation files: choosing the languages, and the text of a segment without
inline codes."""

import re
from collections.abc import Iterable, Sequence

from dragoman.data.formats.language_codes import is_language
from dragoman.data.formats.xml import check_text_size

UNKNOWN = ("src", "tgt")
"""Default names of unknown languages."""
_CODE = "\0"  # never in XML: where a code stood by itself
_BETWEEN_SPACES = re.compile(r"(?<=\s)\0+\s")
_BETWEEN_WORDS = re.compile(r"(?<=\w)\0+(?=\w)")


def normal(language: str) -> str:
    """`EN_us` as `en-us`."""
    return language.strip().replace("_", "-").casefold()


def primary(language: str) -> str:
    return normal(language).partition("-")[0]


def best_match(wanted: str, found: Iterable[str]) -> str | None:
    """The available language that matches best: the same, then a variant. `en` matches `en-GB`; `en-US`
    matches `en`, or `en-GB` if there is no other."""
    found = list(found)
    exact = [language for language in found if normal(language) == normal(wanted)]
    related = [language for language in found if primary(language) == primary(wanted)]
    broader = [language for language in related if normal(language) == primary(wanted)]
    return next(iter([*exact, *broader, *related]), None)


def as_pair_of_languages(src: str | None, tgt: str | None) -> tuple[str, str] | None:
    """Language names of a run: short (`en`, `de`), unless only the variants differ (`pt-PT`, `pt-BR`)."""
    if not src or not tgt or not (is_language(primary(src)) and is_language(primary(tgt))):
        return None
    if primary(src) != primary(tgt):
        return primary(src), primary(tgt)
    return (src, tgt) if normal(src) != normal(tgt) else None


class Segment:
    """The text of one segment while it is read. Codes are left out; one that stood by itself between two
    words leaves a space."""

    def __init__(self, where: str, line: int) -> None:
        self._where, self._line = where, line
        self._parts: list[str] = []
        self._size = 0
        self._hidden = 0

    def add(self, text: str) -> None:
        if not self._hidden:
            self._parts.append(text)
            self._size += len(text)
            check_text_size(self._size, self._where, self._line)

    def code(self) -> None:
        self._parts.append(_CODE)

    def hide(self, alone: bool) -> None:
        """Native code begins; its text is not the segment's."""
        if alone and not self._hidden:
            self.code()
        self._hidden += 1

    def show(self) -> None:
        self._hidden -= 1

    @property
    def text(self) -> str:
        text = "".join(self._parts)
        if _CODE in text:
            text = _BETWEEN_WORDS.sub(" ", _BETWEEN_SPACES.sub("", text)).replace(_CODE, "")
        return text.strip()


def name_languages(languages: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(languages)) or "none"

"""What the options of `dragoman translate` say about the translations, chunk by chunk."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.errors import UserError

if TYPE_CHECKING:
    from dragoman.text.glossary import Glossary


class Wishes:
    """`--prefix`, `--glossary` and `--forbid`. `@FILE` stands for the lines of a file."""

    def __init__(self, prefix: str | None, glossary: Path | None, forbid: Sequence[str] | None) -> None:
        self.prefix = prefix
        self.glossary = _load(glossary) if glossary else None
        self.forbidden = [phrase for given in forbid or () for phrase in _phrases(given)]
        self._lines = _lines(prefix) if prefix and prefix.startswith("@") else None

    def finish(self) -> None:
        """After the last text: no prefix may be left over."""
        if self._lines is not None and next(self._lines, None) is not None:
            raise UserError(f"--prefix {self.prefix}: it has more lines than there are texts")

    def prefixes(self, count: int) -> list[str] | None:
        """Those of the next `count` texts."""
        if self._lines is None:
            return [self.prefix] * count if self.prefix else None
        found = list(islice(self._lines, count))
        if len(found) < count:
            raise UserError(f"--prefix {self.prefix}: it has fewer lines than there are texts")
        return found

    def applied(self, source: str, text: str) -> list[dict[str, Any]] | None:
        """The glossary's terms in a source, each with the variant that the translation has."""
        from dragoman.text.word_boundaries import has_phrase

        if self.glossary is None:
            return None
        return [
            {
                "source": match.entry.source,
                "start": match.start,
                "end": match.end,
                "target": next((target for target in match.targets if has_phrase(text, target)), None),
            }
            for match in self.glossary.matches(source)
        ]


def _load(path: Path) -> "Glossary":
    from dragoman.text.glossary import Glossary

    return Glossary.load(path)


def _phrases(given: str) -> list[str]:
    return [line for line in _lines(given) if line.strip()] if given.startswith("@") else [given]


def _lines(given: str) -> Iterator[str]:
    from dragoman.data.formats import read_lines

    return read_lines(given.removeprefix("@"))

"""Fuzzy matches from the translation memory in other dialects: the extension parameter `matches`, which the
original servers do not have."""

from collections.abc import Sequence
from typing import Any

from dragoman.serve.difference import differences
from dragoman.serve.fields import Fields
from dragoman.serve.languages import LanguageCodes
from dragoman.serve.memory import FuzzyMatch
from dragoman.serve.service import Service


async def hints(
    service: Service, fields: Fields, texts: Sequence[str], pairs: Sequence[LanguageCodes]
) -> list[list[dict[str, Any]]]:
    """The matches of each text if the request asks for them, else nothing."""
    if not fields.flag("matches"):
        return []
    found = [await service.similar(text, pair) for text, pair in zip(texts, pairs, strict=True)]
    return [[hint_of(match, text) for match in row] for text, row in zip(texts, found, strict=True)]


def hint_of(match: FuzzyMatch, text: str) -> dict[str, Any]:
    """A match as JSON. `difference` lists the changes from the source of the match to the text."""
    changed = [{"kind": one.kind, "text": one.text} for one in differences(match.source, text)]
    return {"source": match.source, "target": match.target, "quality": match.quality, "difference": changed}

"""Checks on the texts of a request."""

import re
from collections.abc import Sequence

from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal

_HALF = re.compile("[\ud800-\udfff]")


def check_texts(texts: Sequence[str], limits: Limits, metrics: Metrics) -> None:
    """Refuse texts that exceed the limits or are not valid text."""
    if len(texts) > limits.texts:
        raise Refusal(413, f"Invalid request: {len(texts)} texts exceed the limit ({limits.texts})")
    for text in texts:
        if len(text) > limits.characters:
            told = f"request ({len(text)}) exceeds text limit ({limits.characters})"
            raise Refusal(413, f"Invalid request: {told}")
        if _HALF.search(text):
            raise Refusal(400, "Invalid request: half a surrogate pair is no text")
        if "\0" in text:
            raise Refusal(400, "Invalid request: NUL in the text")
    metrics.count("dragoman_characters_total", sum(map(len, texts)))

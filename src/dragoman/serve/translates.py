"""The interface that the service needs from a translator (`decode/translator/base.py`)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Cancelled
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.text.glossary import Glossary
from dragoman.text.spans import SpanKind


class Translates(Protocol):
    search: SearchConfig

    def translate(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int | None = None,
        protect: Collection[SpanKind] = (),
        cancelled: Sequence[Cancelled] | None = None,
    ) -> list[str]: ...

    def hypotheses(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        prefixes: Sequence[str] | None = None,
        glossary: Glossary | None = None,
        similar: Mapping[str, str] | None = None,
        protect: Collection[SpanKind] = (),
        align: bool = False,
        batch_tokens: int | None = None,
        cancelled: Sequence[Cancelled] | None = None,
    ) -> list[list[Hypothesis]]: ...

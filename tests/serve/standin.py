"""A translator that shouts: it writes capitals, keeps what is protected, and remembers what it was asked."""

import threading
from collections.abc import Collection, Sequence
from typing import Any

from starlette.testclient import TestClient

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Cancelled
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.errors import UserError
from dragoman.serve.app import Options, build
from dragoman.serve.limits import Limits
from dragoman.serve.memory import TranslationMemory
from dragoman.serve.metrics import Metrics
from dragoman.serve.models import (
    PARTS,
    Ability,
    Continuation,
    Embed,
    Fill,
    FilledText,
    Model,
    Models,
    Predict,
    PredictedText,
    Question,
    Write,
)
from dragoman.serve.service import Served, Service
from dragoman.text.context import ContextConfig, sentence_of
from dragoman.text.glossary import Glossary
from dragoman.text.spans import SpanKind, find
from dragoman.text.word_boundaries import words

ADDRESS = "http://127.0.0.1"
MEMORY = TranslationMemory([
    ("The cat sat on the mat.", "Die Katze saß auf der Matte."),
    ("The dog sat on the mat.", "Der Hund saß auf der Matte."),
    ("Completely different words here", "Ganz andere Wörter hier"),
])  # fmt: skip


ALL: "list[Shouter | Echo]" = []


class Shouter:
    """It waits before it translates for as long as `go_on` is not set; the end of a test sets it."""

    def __init__(self, mark: str = "") -> None:
        self.search = SearchConfig()
        self.batches: list[list[str]] = []
        self.mark = mark
        self.context: ContextConfig | None = None
        self.go_on = threading.Event()
        self.go_on.set()
        ALL.append(self)
        self.error: Exception | None = None

    def translate(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        batch_tokens: int | None = None,
        protect: Collection[SpanKind] = (),
        cancelled: Sequence[Cancelled] | None = None,
    ) -> list[str]:
        del search, batch_tokens, cancelled
        self.go_on.wait()
        self.batches.append(list(texts))
        if self.error is not None and "bad" in " ".join(texts):
            raise self.error
        return [self._shout(text, protect) for text in texts]

    def hypotheses(
        self,
        texts: Sequence[str],
        *,
        search: SearchConfig | None = None,
        prefixes: Sequence[str] | None = None,
        glossary: Glossary | None = None,
        protect: Collection[SpanKind] = (),
        align: bool = False,
        batch_tokens: int | None = None,
        cancelled: Sequence[Cancelled] | None = None,
    ) -> list[list[Hypothesis]]:
        del batch_tokens
        count = (search or self.search).n_best
        rows = []
        for number, (text, best) in enumerate(
            zip(texts, self.translate(texts, protect=protect, cancelled=cancelled), strict=True)
        ):
            for match in glossary.matches(text) if glossary else ():
                best = best.replace(text[match.start : match.end].upper(), match.targets[0])
            ways = [best, *(f"{best} #{number}" for number in range(2, count + 1))]
            if prefixes and prefixes[number]:
                ways = [f"{prefixes[number]} {other} way" for other in "ABCDEFGH"[:count]]
            rows.append([self._hypothesis(text, way, align) for way in ways])
        return rows

    def _hypothesis(self, text: str, way: str, align: bool) -> Hypothesis:
        """Words are linked in their order, and MAYBE is a word that it is not sure of."""
        pieces = way.split()
        scores = tuple(-2.0 if piece.startswith("MAYBE") else -0.1 for piece in pieces)
        both = min(len(list(words(text))), len(list(words(way))))
        links = tuple((place, place) for place in range(both)) if align else None
        marked = tuple(f"▁{piece}" for piece in pieces)
        return Hypothesis(way, -1.0, -1.0, (), marked, (*scores, -0.1), "stop", alignment=links)

    def _shout(self, text: str, kinds: Collection[SpanKind]) -> str:
        text, parts, at = sentence_of(text), [], 0
        for span in find(text, kinds):
            parts += [text[at : span.start].upper(), span.text]
            at = span.end
        return "".join([*parts, text[at:].upper()]) + self.mark


def service_of(
    *pairs: tuple[str, str],
    limits: Limits | None = None,
    pivot: str | None = None,
    insists: bool = False,
    workers: int = 1,
) -> Service:
    served = [Served(pair, Shouter(), insists, "-".join(pair), workers) for pair in pairs or [("en", "de")]]
    memories = {("en", "de"): MEMORY} if ("en", "de") in (one.languages for one in served) else {}
    return Service(served, pivot=pivot, memories=memories, limits=limits)


def client_of(
    service: Service | None, options: Options | None = None, models: Models | None = None
) -> TestClient:
    return TestClient(build(service, options, models), base_url=ADDRESS, raise_server_exceptions=False)


class Echo:
    """A model that does everything to a text in a way that can be seen, and may be held up before each word
    that it writes."""

    def __init__(self) -> None:
        self.go_on, self.told = threading.Event(), 0
        self.gone: list[bool] = []
        self.go_on.set()
        ALL.append(self)

    def answers(self, texts: Sequence[str], how: Question, cancelled: Sequence[Cancelled]) -> list[Any]:
        if "refuse" in texts:
            raise UserError("text: this one is refused")
        if isinstance(how, Predict):
            return [PredictedText(label=text.split(PARTS)[-1], probability=0.5) for text in texts]
        if isinstance(how, Fill):
            return [[FilledText(probability=1.0, gaps=[], text=text)] * how.count for text in texts]
        if isinstance(how, Embed):
            return [[float(len(text)), 0.1] for text in texts]
        return [self._written(text, how, left) for text, left in zip(texts, cancelled, strict=True)]

    def _written(self, prompt: str, how: Write, left: Cancelled) -> list[Continuation]:
        said: list[str] = []
        for word in f" {prompt}".split(" ")[1:][: how.max_tokens]:
            said.append(f" {word}")
            self.told += 1
            if how.hear is not None:
                how.hear(said[-1])
            self.go_on.wait()
            if left():
                self.gone.append(True)
                break
        one = Continuation(text="".join(said), finish_reason="stop", log_prob=-1.0, tokens=len(said))
        return [one] * how.count


def echoes(
    *names: str, echo: Echo | None = None, limits: Limits | None = None, metrics: Metrics | None = None
) -> Models:
    """Models that do everything."""
    answers = (echo or Echo()).answers
    able: tuple[Ability, ...] = ("predict", "generate", "chat", "fill", "embed")
    models = [
        Model(name, able, answers, lambda text: len(text.split()), "none", "pair", ("a", "b"), (2, 2))
        for name in names
    ]
    return Models(models, limits or Limits(), metrics or Metrics())


def shouter(service: Service, pair: tuple[str, str] = ("en", "de")) -> Shouter:
    translator = service.served[pair].translator
    assert isinstance(translator, Shouter)
    return translator

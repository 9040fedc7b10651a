"""Models that do not translate, behind the same gate: prediction, generation, gap filling and embeddings.

The service does not import torch. The code that opens a run passes in a function (`Model.answers`). A text of
several parts (a pair, or the words of a sentence) is queued as one string with NUL between the parts, because
no text contains NUL.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field

from dragoman.decode.search.job import Cancelled
from dragoman.errors import UserError
from dragoman.serve.batcher import RequestBatches
from dragoman.serve.checks import check_texts
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal

Ability = Literal["predict", "generate", "chat", "fill", "embed"]
PARTS = "\0"
"""Separator between the parts of a text."""


@dataclass(frozen=True)
class Predict:
    """A prediction. It has no options."""


@dataclass(frozen=True)
class Fill:
    count: int = 5


@dataclass(frozen=True)
class Embed:
    pool: Literal["mean", "first", "last"] = "mean"


@dataclass(frozen=True)
class Write:
    max_tokens: int = 64
    temperature: float = 1.0
    top_p: float = 1.0
    count: int = 1
    seed: int = 0
    open: bool = False
    """Whether the last word of the prompt may be continued."""
    stop: tuple[str, ...] = ()
    """Strings at which a continuation ends. They are not part of it."""
    shown: int | None = None
    """How many of the most probable pieces to tell at each place; None: no probabilities of pieces."""
    hear: Callable[[str], None] | None = None
    """Called with each new part of the continuation, in the thread of the model."""


Question = Predict | Fill | Embed | Write


class PredictedText(BaseModel):
    label: Annotated[str | None, Field(description="Tasks classify and pair: the label.")] = None
    score: Annotated[float | None, Field(description="Tasks similarity and regress: the number.")] = None
    tags: Annotated[list[str] | None, Field(description="Task tag: one tag per word.")] = None
    choice: Annotated[int | None, Field(description="Task choice: index of the choice, from 0.")] = None
    answer: Annotated[str | None, Field(description="Task span: the answer; empty if there is none.")] = None
    start: Annotated[int | None, Field(description="Task span: where the answer starts in the context.")] = (
        None
    )
    end: int | None = None
    probability: Annotated[
        float | None, Field(description="Probability of the prediction; mean over tags.")
    ] = None
    probabilities: Annotated[
        dict[str, float] | None, Field(description="Probability of every label or choice.")
    ] = None


class FilledText(BaseModel):
    probability: float
    gaps: Annotated[list[str], Field(description="The text in each gap; empty if it cannot be determined.")]
    text: str


class PieceScore(BaseModel):
    text: str
    log_prob: float
    best: list[tuple[str, float]]
    begin: int


class Continuation(BaseModel):
    text: Annotated[str, Field(description="The continuation without the prompt.")]
    finish_reason: Literal["stop", "length"]
    log_prob: Annotated[
        float | None,
        Field(description="log p of the whole line, including prompt and end; null if cut by `stop`."),
    ]
    tokens: Annotated[int, Field(description="Number of pieces of the continuation.")]
    _pieces: list[PieceScore] | None = None

    @property
    def pieces(self) -> list[PieceScore] | None:
        """The pieces with their probabilities, if `Write.shown` asks for them. No part of the answer."""
        return self._pieces

    def with_pieces(self, pieces: list[PieceScore]) -> Self:
        self._pieces = pieces
        return self


@dataclass(frozen=True)
class Model:
    name: str
    does: tuple[Ability, ...]
    answers: Callable[[Sequence[str], Question, Sequence[Cancelled]], list[Any]]
    """The answers to texts: a `PredictedText`, fillings, continuations, or a vector for each."""
    count: Callable[[str], int]
    """The number of pieces of a text."""
    objective: str = ""
    task: str | None = None
    labels: tuple[str, ...] = ()
    parts: tuple[int, int | None] = (1, 1)
    """Smallest and largest number of parts of an input for prediction."""


class ModelBatches(RequestBatches[Question, Any]):
    def __init__(self, model: Model, limits: Limits, metrics: Metrics) -> None:
        super().__init__(limits, metrics)
        self.model = model

    def _run(
        self,
        texts: Sequence[str],
        how: Question,
        cancelled: Sequence[Cancelled],
        similar: Mapping[str, str],  # noqa: ARG002
    ) -> list[Any]:
        return self.model.answers(texts, how, cancelled)

    def _worth_keeping(self, how: Question) -> bool:
        return isinstance(how, Predict | Fill)  # vectors are large, and samples are seldom requested again


class Models:
    def __init__(self, models: Sequence[Model], limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.batches: dict[str, ModelBatches] = {}
        for model in models:
            if model.name in self.batches:
                raise UserError(f"{model.name}: two runs have this name; clients could not tell them apart")
            self.batches[model.name] = ModelBatches(model, limits, metrics)

    @property
    def models(self) -> list[Model]:
        return [own.model for own in self.batches.values()]

    @property
    def waiting(self) -> int:
        return sum(own.waiting for own in self.batches.values())

    @property
    def full(self) -> bool:
        return any(own.full for own in self.batches.values())

    def close(self) -> None:
        for own in self.batches.values():
            own.close()

    def find(self, ability: Ability, name: str | None = None) -> Model:
        """The model with this name, or the only one with this ability."""
        able = [model for model in self.models if ability in model.does]
        named = able if name is None else [model for model in able if model.name == name]
        if len(named) == 1:
            return named[0]
        if name is not None and name in self.batches:
            raise Refusal(400, f"model: {name} does {' and '.join(self.batches[name].model.does)} alone")
        if not able:
            raise Refusal(400, f"no model here can {ability}; see GET /api/v1/models")
        wrong = "expected" if name is None else "it is not served; expected"
        raise Refusal(400 if name is None else 404, f"model: {wrong} {_listed([m.name for m in able])}")

    def check(self, texts: Sequence[str]) -> None:
        check_texts(texts, self.limits, self.metrics)

    async def ask(self, model: Model, texts: Sequence[str], how: Question) -> list[Any]:
        return await self.batches[model.name].ask(texts, how)

    async def stream(self, model: Model, prompt: str, how: Write) -> AsyncIterator[str | Continuation]:
        """The parts of the only continuation, and finally the complete continuation. If the consumer stops
        early, the search is cancelled."""
        loop, parts = asyncio.get_running_loop(), asyncio.Queue[str | None]()

        def hear(part: str) -> None:
            if part:
                loop.call_soon_threadsafe(parts.put_nowait, part)

        heard = replace(how, hear=hear)
        task = loop.create_task(self.ask(model, [prompt], heard))
        task.add_done_callback(lambda _: parts.put_nowait(None))
        try:
            while (part := await parts.get()) is not None:
                yield part
            ((found,),) = await task
            yield found
        finally:
            task.cancel()


def _listed(names: Sequence[str]) -> str:
    return f"one of {', '.join(names)}" if len(names) > 1 else names[0]

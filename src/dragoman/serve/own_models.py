"""The native API for models that do not translate: `/api/v1/predict`, `generate`, `fill`, `embed`."""

import secrets
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter
from fastapi.responses import Response
from pydantic import BaseModel, Field

from dragoman.serve.events import events
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
    Write,
)
from dragoman.serve.own import ERRORS, Closed, Error
from dragoman.serve.refusal import Refusal

Name = Annotated[str | None, Field(description="Optional if only one model of this kind is served.")]
MOST_STOPS = 8
Texts = Annotated[list[str], Field(min_length=1)]


class ServedModel(BaseModel):
    name: str
    does: list[Ability]
    objective: Annotated[str, Field(description="Training objective.")]
    task: Annotated[str | None, Field(description="Task of a fine-tuned model.")]
    labels: list[str]


class ModelList(BaseModel):
    models: list[ServedModel]
    characters: int
    texts: int
    written: Annotated[int, Field(description="Maximum number of generated pieces.")]


class PredictRequest(Closed):
    texts: Annotated[
        list[str | list[str]],
        Field(
            min_length=1,
            description="A text each; for pair, similarity and span two; for choice what comes first and all "
            "that may follow; for tag a sentence, or its words.",
        ),
    ]
    model: Name = None


class Predictions(BaseModel):
    model: str
    predictions: list[PredictedText]


class GenerateRequest(Closed):
    prompts: Annotated[Texts, Field(description="Prompts; the last line of each is continued.")]
    max_tokens: Annotated[int, Field(ge=1, description="Maximum length of the continuation, in pieces.")] = 64
    count: Annotated[int, Field(ge=1, description="Number of continuations per prompt.")] = 1
    temperature: Annotated[float, Field(ge=0, le=100, description="Sampling temperature; 0 is greedy.")] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: Annotated[
        int | None, Field(ge=0, lt=2**63, description="Random seed; by default each answer differs.")
    ] = None
    stop: Annotated[
        tuple[str, ...],
        Field(max_length=MOST_STOPS, description="Texts at which a continuation is cut.", strict=False),
    ] = ()
    prompt_open: Annotated[bool, Field(description="The last word of a prompt may be incomplete.")] = False
    stream: Annotated[
        bool, Field(description="Server-sent events: `text` part by part, then the whole continuation.")
    ] = False
    model: Name = None


class Continuations(BaseModel):
    model: str
    continuations: Annotated[list[list[Continuation]], Field(description="The continuations of each prompt.")]


class FillRequest(Closed):
    texts: Annotated[Texts, Field(description="Texts with `<mask>` at each gap.")]
    count: Annotated[int, Field(ge=1, le=100, description="Number of fillings per text, best first.")] = 5
    model: Name = None


class Fillings(BaseModel):
    model: str
    fillings: list[list[FilledText]]


class EmbedRequest(Closed):
    texts: Texts
    pool: Annotated[
        Literal["mean", "first", "last"], Field(description="How the vectors of the last layer are pooled.")
    ] = "mean"
    model: Name = None


class Vectors(BaseModel):
    model: str
    vectors: list[list[float]]


def router_of(models: Models) -> APIRouter:
    router = APIRouter(prefix="/api/v1", responses={**ERRORS, 404: {"model": Error}}, tags=["dragoman"])

    @router.get("/models")
    async def served() -> ModelList:
        """Models that do not translate, and the limits of requests."""
        found = [
            ServedModel(
                name=m.name, does=list(m.does), objective=m.objective, task=m.task, labels=[*m.labels]
            )
            for m in models.models
        ]
        limits = models.limits
        return ModelList(
            models=found, characters=limits.characters, texts=limits.texts, written=limits.written
        )

    @router.post("/predict", response_model_exclude_none=True)
    async def predict(asked: PredictRequest) -> Predictions:
        """Predict with a fine-tuned model."""
        model = models.find("predict", asked.model)
        models.check([part for text in asked.texts for part in ([text] if isinstance(text, str) else text)])
        if len(asked.texts) > models.limits.texts:
            raise Refusal(413, f"texts: at most {models.limits.texts}, found {len(asked.texts)}")
        texts = [PARTS.join(_parts(model, text, number)) for number, text in enumerate(asked.texts, start=1)]
        return Predictions(model=model.name, predictions=await models.ask(model, texts, Predict()))

    @router.post(
        "/generate",
        response_model=Continuations,
        responses={200: {"content": {"text/event-stream": {}}}},
    )
    async def generate(asked: GenerateRequest) -> Continuations | Response:
        """Continue texts. Each continuation is one line."""
        model, how = writing(models, asked.model, asked.prompts, how_of(asked), asked.count)
        if not asked.stream:
            found = await models.ask(model, asked.prompts, how)
            return Continuations(model=model.name, continuations=found)
        if len(asked.prompts) > 1 or asked.count > 1:
            raise Refusal(400, "stream: only one continuation of one prompt can be streamed")

        def event(part: str | Continuation) -> str:
            if isinstance(part, str):
                return StreamedText(text=part).model_dump_json()
            return Continuations(model=model.name, continuations=[[part]]).model_dump_json()

        return await events(models.stream(model, asked.prompts[0], how), event)

    @router.post("/fill")
    async def fill(asked: FillRequest) -> Fillings:
        """Fill the gaps of texts."""
        model = models.find("fill", asked.model)
        models.check(asked.texts)
        return Fillings(model=model.name, fillings=await models.ask(model, asked.texts, Fill(asked.count)))

    @router.post("/embed")
    async def embed(asked: EmbedRequest) -> Vectors:
        """Embed texts: one vector per text."""
        model = models.find("embed", asked.model)
        models.check(asked.texts)
        return Vectors(model=model.name, vectors=await models.ask(model, asked.texts, Embed(asked.pool)))

    return router


class StreamedText(BaseModel):
    text: str


def how_of(asked: GenerateRequest) -> Write:
    return Write(
        max_tokens=asked.max_tokens,
        temperature=asked.temperature,
        top_p=asked.top_p,
        count=asked.count,
        seed=drawn_seed() if asked.seed is None else asked.seed,
        open=asked.prompt_open,
        stop=asked.stop,
    )


def drawn_seed() -> int:
    return secrets.randbits(32)


def writing(
    models: Models,
    name: str | None,
    prompts: Sequence[str],
    how: Write,
    count: int,
    ability: Ability = "generate",
) -> tuple[Model, Write]:
    """The model to use. Raises an error if the request exceeds the limits."""
    model, limits = models.find(ability, name), models.limits
    models.check(prompts)
    if count > limits.alternatives:
        raise Refusal(400, f"continuations of a prompt: at most {limits.alternatives}, found {count}")
    if count * how.max_tokens > limits.written:
        told = f"{count} × {how.max_tokens}" if count > 1 else f"{how.max_tokens}"
        raise Refusal(400, f"max_tokens: at most {limits.written} pieces for a prompt, found {told}")
    if not all(how.stop):
        raise Refusal(400, "stop: expected texts that are not empty")
    if len(how.stop) > MOST_STOPS:  # each is looked for after every piece
        raise Refusal(400, f"stop: at most {MOST_STOPS} texts, found {len(how.stop):,}")
    if max(map(len, how.stop), default=0) > limits.characters:
        raise Refusal(413, f"stop: a text exceeds text limit ({limits.characters})")
    return model, how


def _parts(model: Model, text: str | list[str], number: int) -> list[str]:
    """The parts of an input for prediction. A sentence to be tagged is split into words."""
    least, most = model.parts
    if isinstance(text, str):
        text = text.split() if model.task == "tag" else [text]
    if not least <= len(text) <= (most or len(text)) or not all(part.strip() for part in text):
        wanted = {(1, 1): "a text", (2, 2): "a list of two texts", (1, None): "words"}.get(model.parts)
        wanted = wanted or f"a list of at least {least} texts"
        raise Refusal(400, f"texts.{number - 1}: {model.name} expects {wanted}, none of them blank")
    return text

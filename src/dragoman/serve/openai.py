"""OpenAI's dialect for plain text: `/v1/completions` and `/v1/embeddings`; `openai_chat.py` has the chat."""

import base64
import secrets
import struct
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.serve.events import events
from dragoman.serve.models import Continuation, Embed, Model, Models, PieceScore, Write
from dragoman.serve.own_models import drawn_seed, writing
from dragoman.serve.refusal import Refusal

_WITHOUT_EFFECT = ("user", "stream_options", "store", "metadata")
_NEUTRAL: tuple[Any, ...] = (None, 0, 1, False, "", [], {})
"""Values of unknown fields that have no effect."""


class Open(BaseModel):
    """A request that may have unknown fields, as long as they have no effect."""

    model_config = ConfigDict(extra="allow", strict=True)

    def refuse_unknown(self) -> None:
        for name, value in (self.model_extra or {}).items():
            if name not in _WITHOUT_EFFECT and (value is True or value not in _NEUTRAL):
                raise Refusal(400, f"{name[:40]!r}: this server cannot do that; leave it out")


class WritingRequest(Open):
    """What completions and chats have in common."""

    model: str
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    temperature: Annotated[float | None, Field(ge=0, le=100)] = None
    top_p: Annotated[float | None, Field(gt=0, le=1)] = None
    n: Annotated[int | None, Field(ge=1)] = None
    seed: Annotated[int | None, Field(ge=0, lt=2**63)] = None
    stop: str | list[str] | None = None
    stream: bool | None = None


class CompletionRequest(WritingRequest):
    prompt: str | list[str]
    echo: bool | None = None
    logprobs: Annotated[int | None, Field(ge=0, le=5)] = None


class EmbeddingRequest(Open):
    model: str
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"


def router_of(models: Models) -> APIRouter:
    router = APIRouter(prefix="/v1", include_in_schema=False)
    created = int(time.time())

    @router.get("/models")
    async def served() -> dict[str, Any]:
        return {"object": "list", "data": [_model(model.name, created) for model in models.models]}

    @router.get("/models/{name:path}")
    async def one(name: str) -> dict[str, Any]:
        if name not in models.batches:
            raise Refusal(404, f"The model '{name[:80]}' does not exist")
        return _model(name, created)

    @router.post("/completions", response_model=None)
    async def completions(asked: CompletionRequest) -> Response:
        asked.refuse_unknown()
        prompts = _texts("prompt", asked.prompt)
        stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
        how = Write(
            max_tokens=asked.max_tokens or 16,
            temperature=1.0 if asked.temperature is None else asked.temperature,
            top_p=asked.top_p or 1.0,
            count=asked.n or 1,
            seed=drawn_seed() if asked.seed is None else asked.seed,
            open=True,
            stop=tuple(stops),
            shown=asked.logprobs,
        )
        if asked.logprobs is not None and asked.echo:
            raise Refusal(400, "logprobs: those of the prompt are not told; leave echo out")
        model, how = writing(models, asked.model, prompts, how, how.count)
        head = {
            "id": f"cmpl-{secrets.token_hex(12)}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model.name,
        }
        if asked.stream:
            return await _streamed(models, model, prompts, how, head, bool(asked.echo))
        found: list[list[Continuation]] = await models.ask(model, prompts, how)
        choices = [
            _choice(number, (prompt if asked.echo else "") + one.text, one.finish_reason, one.pieces)
            for number, (prompt, one) in enumerate(
                (prompt, one) for prompt, row in zip(prompts, found, strict=True) for one in row
            )
        ]
        written = sum(one.tokens for row in found for one in row)
        return JSONResponse({**head, "choices": choices, "usage": usage(model, prompts, written)})

    @router.post("/embeddings")
    async def embeddings(asked: EmbeddingRequest) -> JSONResponse:
        asked.refuse_unknown()
        texts = _texts("input", asked.input)
        model = models.find("embed", asked.model)
        models.check(texts)
        found: list[list[float]] = await models.ask(model, texts, Embed())
        data = [
            {"object": "embedding", "index": number, "embedding": _vector(vector, asked.encoding_format)}
            for number, vector in enumerate(found)
        ]
        told = usage(model, texts, 0)
        del told["completion_tokens"]
        return JSONResponse({"object": "list", "data": data, "model": model.name, "usage": told})

    return router


async def _streamed(
    models: Models, model: Model, prompts: Sequence[str], how: Write, head: dict[str, Any], echo: bool
) -> Response:
    if len(prompts) > 1 or how.count > 1 or how.shown is not None:
        raise Refusal(400, "stream: only one continuation of one prompt can be streamed, without logprobs")
    shown = [prompts[0]] if echo else []

    def event(part: str | Continuation) -> str:
        text, reason = (part, None) if isinstance(part, str) else ("", part.finish_reason)
        text = "".join([*shown, text])
        shown.clear()
        return _Chunk(**head, choices=[_choice(0, text, reason)]).model_dump_json()

    return await events(models.stream(model, prompts[0], how), event, "[DONE]")


class _Chunk(BaseModel):
    id: str
    object: str
    created: int
    model: str
    choices: list[dict[str, Any]]


def _texts(name: str, given: str | list[str]) -> list[str]:
    texts = [given] if isinstance(given, str) else given
    if not texts:
        raise Refusal(400, f"{name}: expected a text or several, found none")
    return texts


def _choice(
    number: int, text: str, reason: str | None, pieces: Sequence[PieceScore] | None = None
) -> dict[str, Any]:
    told = None
    if pieces is not None:
        told = {
            "tokens": [piece.text for piece in pieces],
            "token_logprobs": [piece.log_prob for piece in pieces],
            "top_logprobs": [dict(piece.best) for piece in pieces],
            "text_offset": [piece.begin for piece in pieces],
        }
    return {"index": number, "text": text, "logprobs": told, "finish_reason": reason}


def usage(model: Model, texts: Sequence[str], written: int) -> dict[str, int]:
    read = sum(map(model.count, texts))
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _model(name: str, created: int) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": created, "owned_by": "dragoman"}


def _vector(vector: list[float], encoding: str) -> list[float] | str:
    """A vector as base64 of little-endian float32, which OpenAI's own client requests, or as numbers."""
    if encoding == "float":
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")

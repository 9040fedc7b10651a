"""OpenAI's `/v1/chat/completions`, for language models and runs trained on dialogues: a message is a line,
and so is the answer."""

import secrets
import time
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.serve.events import events
from dragoman.serve.models import Continuation, Model, Models, PieceScore, Write
from dragoman.serve.openai import WritingRequest, usage
from dragoman.serve.own_models import drawn_seed, writing
from dragoman.serve.refusal import Refusal

_TOKENS = 64
_MOST_MESSAGES = 256


class TextPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["text"]
    text: str


class Message(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart]

    @property
    def lines(self) -> list[str]:
        text = self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)
        return [line for line in text.split("\n") if line.strip()]


class ChatRequest(WritingRequest):
    messages: Annotated[list[Message], Field(min_length=1, max_length=_MOST_MESSAGES)]
    max_completion_tokens: Annotated[int | None, Field(ge=1)] = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int | None, Field(ge=0, le=20)] = None

    @property
    def prompt(self) -> str:
        """The lines of all messages, and an empty one, which is to be written."""
        lines = [line for message in self.messages for line in message.lines]
        if not lines:
            raise Refusal(400, "messages: expected text in at least one of them")
        return "\n".join([*lines, ""])

    @property
    def shown(self) -> int | None:
        """How many of the most probable pieces to tell for each; None: no probabilities at all."""
        if self.top_logprobs is not None and not self.logprobs:
            raise Refusal(400, "top_logprobs: set logprobs to true as well")
        return (self.top_logprobs or 0) if self.logprobs else None


def router_of(models: Models) -> APIRouter:
    router = APIRouter(prefix="/v1", include_in_schema=False)

    @router.post("/chat/completions", response_model=None)
    async def chat(asked: ChatRequest) -> Response:
        asked.refuse_unknown()
        stops = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
        how = Write(
            max_tokens=asked.max_completion_tokens or asked.max_tokens or _TOKENS,
            temperature=1.0 if asked.temperature is None else asked.temperature,
            top_p=asked.top_p or 1.0,
            count=asked.n or 1,
            seed=drawn_seed() if asked.seed is None else asked.seed,
            stop=tuple(stops),
            shown=asked.shown,
        )
        prompt = asked.prompt
        model, how = writing(models, asked.model, [prompt], how, how.count, "chat")
        head = {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "created": int(time.time()),
            "model": model.name,
        }
        if asked.stream:
            return await _streamed(models, model, prompt, how, head)
        (found,) = await models.ask(model, [prompt], how)
        choices = [
            {
                "index": number,
                "message": {"role": "assistant", "content": one.text, "refusal": None},
                "logprobs": _logprobs(one.pieces),
                "finish_reason": one.finish_reason,
            }
            for number, one in enumerate(found)
        ]
        told = usage(model, [prompt], sum(one.tokens for one in found))
        return JSONResponse({**head, "object": "chat.completion", "choices": choices, "usage": told})

    return router


async def _streamed(models: Models, model: Model, prompt: str, how: Write, head: dict[str, Any]) -> Response:
    if how.count > 1 or how.shown is not None:
        raise Refusal(400, "stream: only one answer can be streamed, and without logprobs")
    begun = False

    def event(part: str | Continuation) -> str:
        nonlocal begun
        text, reason = (part, None) if isinstance(part, str) else ("", part.finish_reason)
        delta = {"content": text} if reason is None else {}
        if not begun:
            delta, begun = {"role": "assistant", **delta}, True
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _Chunk(**head, object="chat.completion.chunk", choices=[choice]).model_dump_json()

    return await events(models.stream(model, prompt, how), event, "[DONE]")


class _Chunk(BaseModel):
    id: str
    object: str
    created: int
    model: str
    choices: list[dict[str, Any]]


def _logprobs(pieces: Sequence[PieceScore] | None) -> dict[str, Any] | None:
    if pieces is None:
        return None
    content = [
        {
            **_token(piece.text, piece.log_prob),
            "top_logprobs": [_token(text, value) for text, value in piece.best],
        }
        for piece in pieces
    ]
    return {"content": content, "refusal": None}


def _token(text: str, log_prob: float) -> dict[str, Any]:
    return {"token": text, "logprob": log_prob, "bytes": list(text.encode())}

"""The attention behind a translation: `/api/v1/explain`, for translators that provide it.

The service does not import torch. The code that opens a run passes in a function (`Served.explains`). A
sentence is limited to `Limits.explained_pieces`, and the answer to `Limits.explained_weights` before it is
computed, because both grow with the square of the length. An exported model has no attention to show, and the
error says so.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from dragoman.errors import UserError
from dragoman.serve.download import InPieces
from dragoman.serve.own import ERRORS
from dragoman.serve.refusal import Refusal, busy
from dragoman.serve.service import Service

MOST_CHARACTERS = 1000


class Attention(BaseModel):
    kind: Annotated[
        Literal["encoder", "decoder", "cross", "joint", "copy"],
        Field(description="Which attention: rows attend to columns."),
    ]
    layer: Annotated[int, Field(description="Number of the layer, from 1.")]
    aligns: Annotated[bool, Field(description="Whether this attention aligns words best.")]
    weights: Annotated[
        list[list[list[float]]],
        Field(
            description="Heads, rows, columns, to five digits. Rows are `source` (encoder) or `read`; columns"
            " likewise."
        ),
    ]


class Explanation(BaseModel):
    text: Annotated[str, Field(description="The explained translation.")]
    source: Annotated[list[str], Field(description="Pieces of the source, with </s>.")]
    read: Annotated[list[str], Field(description="<s> and the pieces that the decoder read.")]
    written: Annotated[list[str], Field(description="The pieces of the translation, with </s>.")]
    scores: Annotated[list[float], Field(description="log p of each piece of the translation.")]
    attentions: list[Attention]


Explains = Callable[[str, str | None], Explanation]
"""Called with a sentence and a translation, or None for the model's own."""


class ExplainRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: Annotated[str, Field(min_length=1, description="One sentence.")]
    source: str
    target: str
    translation: Annotated[
        str | None, Field(description="A translation to explain; by default the model's own.")
    ] = None


def _answer(explains: Explains, text: str, translation: str | None) -> bytes:
    """The answer as JSON, serialised in the translator's thread because it may be several megabytes."""
    return explains(text, translation).model_dump_json().encode("utf-8")


def router_of(service: Service) -> APIRouter:
    router = APIRouter(prefix="/api/v1", responses={**ERRORS}, tags=["dragoman"])
    turn = asyncio.Semaphore(1)

    @router.post("/explain", response_model=Explanation)
    async def explain(asked: ExplainRequest) -> Response:
        """The attention behind a translation, where the model runs in PyTorch."""
        given = [asked.text, *([] if asked.translation is None else [asked.translation])]
        service.check(given)
        for text in given:
            if not text.strip() or len(text) > MOST_CHARACTERS:
                raise Refusal(400, f"expected a sentence of 1 to {MOST_CHARACTERS} characters")
        pair = service.pair(asked.source, asked.target)
        explains = service.served[pair].explains if pair in service.served else None
        if explains is None:
            told = "shows no attention: it is an export or goes through a pivot; serve the run itself"
            raise Refusal(400, f"{pair[0]}→{pair[1]} {told}")
        if turn.locked():
            raise busy("Slowdown: another sentence is being explained")
        answer: Callable[[str, str | None], bytes] = partial(_answer, explains)
        async with turn:
            try:
                found = await service.batchers[pair].in_turn(answer, asked.text, asked.translation)
            except UserError as error:
                raise Refusal(400, str(error)) from None
        return InPieces(found, "application/json")

    return router

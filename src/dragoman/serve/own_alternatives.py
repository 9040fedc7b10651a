"""Alternative translations of a sentence, or continuations of a given prefix, in the native API."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from dragoman.serve.own import ERRORS, Closed
from dragoman.serve.service import Service, Wish
from dragoman.text.word_boundaries import words


class AlternativesRequest(Closed):
    text: Annotated[str, Field(description="One sentence.")]
    source: str
    target: str
    prefix: Annotated[str, Field(description="The beginning of the translation, in whole words.")] = ""
    count: Annotated[int, Field(ge=1, le=8)] = 8


class Alternative(BaseModel):
    text: Annotated[str, Field(description="The whole translation.")]
    next: Annotated[str, Field(description="The first word after the prefix.")]
    score: float | None


def router_of(service: Service) -> APIRouter:
    router = APIRouter(prefix="/api/v1", responses={**ERRORS}, tags=["dragoman"])

    @router.post("/alternatives")
    async def alternatives(asked: AlternativesRequest) -> list[Alternative]:
        """Translations of a sentence, best first; with a prefix, those that begin with it. Translations with
        distinct next words come first."""
        service.check([asked.text, asked.prefix])
        pair = service.pair(asked.source, asked.target)
        count = min(asked.count, service.limits.alternatives + 1)
        wish = Wish(n_best=count, split="none", memory=False, prefix=asked.prefix.strip())
        (found,) = await service.translate([asked.text], pair, wish)
        scored = [one for _, answer in found.sentences for one in _scored(answer.texts, answer.scores)]
        every = [
            Alternative(text=text, next=_next_word(text, wish.prefix), score=score) for text, score in scored
        ]
        first = list({one.next: one for one in reversed(every)}.values())[::-1]
        return [*first, *(one for one in every if one not in first)]

    return router


def _scored(texts: tuple[str, ...], scores: tuple[float, ...]) -> list[tuple[str, float | None]]:
    told = [*scores, *[None] * len(texts)]
    return list({text: (text, score) for text, score in zip(texts, told, strict=False)}.values())


def _next_word(text: str, prefix: str) -> str:
    rest = text[len(prefix) :] if text.startswith(prefix) else text
    place = next(iter(words(rest)), (0, len(rest)))
    return rest[place[0] : place[1]]

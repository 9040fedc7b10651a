"""Corrections in the native API: add, delete, and download as TMX."""

from fastapi import APIRouter, Response
from pydantic import BaseModel

from dragoman.serve.corrections import Corrections
from dragoman.serve.download import Download
from dragoman.serve.own import ERRORS, Closed, Error
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service


class CorrectionRequest(Closed):
    source: str
    target: str
    text: str
    translation: str


class TakenBackRequest(Closed):
    source: str
    target: str
    text: str


class Kept(BaseModel):
    corrections: int
    """Current number of corrections."""


def router_of(service: Service) -> APIRouter:
    errors = {**ERRORS, **{code: {"model": Error} for code in (403, 404, 456, 507)}}
    router = APIRouter(prefix="/api/v1/corrections", responses={**errors}, tags=["dragoman"])

    def corrections() -> Corrections:
        if service.corrections is None:
            raise Refusal(403, "This server takes no corrections (serve --corrections FILE)")
        return service.corrections

    @router.post("")
    async def correct(asked: CorrectionRequest) -> Kept:
        """Store the translation of a text. Every dialect uses it from now on."""
        kept = corrections()
        service.check([asked.text, asked.translation])
        await kept.put(service.pair(asked.source, asked.target), asked.text, asked.translation)
        return Kept(corrections=len(kept))

    @router.delete("")
    async def take_back(asked: TakenBackRequest) -> Kept:
        """Delete the correction of a text."""
        kept = corrections()
        service.check([asked.text])
        await kept.remove(service.pair(asked.source, asked.target), asked.text)
        return Kept(corrections=len(kept))

    @router.get("", response_class=Response, responses={200: {"content": {"*/*": {}}}})
    async def fetch() -> Response:
        """All corrections as a TMX file."""
        return Download(corrections().tmx(), "corrections.tmx")

    return router

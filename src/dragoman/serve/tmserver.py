"""The dialect of the Translate Toolkit's tmserver, under `/tm`: fuzzy matches from the translation memory."""

from typing import Any

from fastapi import APIRouter, Request

from dragoman.serve.fields import read_fields
from dragoman.serve.service import Service


def router_of(service: Service) -> APIRouter:
    router = APIRouter(prefix="/tm", include_in_schema=False)

    @router.get("/languages/")
    @router.get("/languages")
    async def languages() -> dict[str, list[str]]:
        pairs = [pair for pair in service.routes if service.known(pair)]
        return {
            "sourceLanguages": list(dict.fromkeys(src for src, _ in pairs)),
            "targetLanguages": list(dict.fromkeys(tgt for _, tgt in pairs)),
        }

    @router.get("/{source}/{target}/unit/{text:path}")
    async def unit(request: Request, source: str, target: str, text: str) -> list[dict[str, Any]]:
        fields = await read_fields(request)
        service.check([text])
        least = fields.number("min_similarity", 75, 0, 100)
        most = fields.number("max_candidates", 3, 0, 100)
        found = await service.similar(text, service.pair(source, target), least, most)
        return [{"source": one.source, "target": one.target, "quality": one.quality} for one in found]

    return router

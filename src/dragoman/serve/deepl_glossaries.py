"""DeepL's dialect for glossaries: `/v2/glossaries` for one language pair, `/v3/glossaries` for several."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from dragoman.serve.dictionaries import Dictionary, Given, given_of, pair_of
from dragoman.serve.fields import Fields, read_fields
from dragoman.serve.glossaries import Glossaries, Named
from dragoman.serve.languages import LanguageCodes, base
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service


def router_of(service: Service, glossaries: Glossaries) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    _add_single(router, service, glossaries)
    _add_multilingual(router, glossaries)
    _add_dictionaries(router, glossaries)
    return router


def _add_single(router: APIRouter, service: Service, glossaries: Glossaries) -> None:
    @router.get("/v2/glossary-language-pairs")
    async def pairs() -> dict[str, Any]:
        known = dict.fromkeys((base(src), base(tgt)) for src, tgt in service.routes)
        return {"supported_languages": [{"source_lang": src, "target_lang": tgt} for src, tgt in known]}

    @router.post("/v2/glossaries")
    async def create(request: Request) -> JSONResponse:
        fields = await read_fields(request)
        return JSONResponse(_single(await glossaries.create(fields.text("name"), [given_of(fields)])), 201)

    @router.get("/v2/glossaries")
    async def every() -> dict[str, Any]:
        return {"glossaries": [_single(one) for one in glossaries if len(one.dictionaries) == 1]}

    @router.get("/v2/glossaries/{name}")
    async def one(name: str) -> dict[str, Any]:
        return _single(glossaries.find(name))

    @router.get("/v2/glossaries/{name}/entries")
    async def entries(name: str) -> PlainTextResponse:
        (_, dictionary) = _only(glossaries.find(name))
        return PlainTextResponse(dictionary.tsv, media_type="text/tab-separated-values")

    @router.delete("/v2/glossaries/{name}")
    async def delete(name: str) -> Response:
        await glossaries.delete(name)
        return Response(status_code=204)


def _add_multilingual(router: APIRouter, glossaries: Glossaries) -> None:
    @router.post("/v3/glossaries")
    async def create(request: Request) -> JSONResponse:
        fields = await read_fields(request)
        made = await glossaries.create(fields.text("name"), _given(fields))
        return JSONResponse(_told(made), 201)

    @router.get("/v3/glossaries")
    async def every() -> dict[str, Any]:
        return {"glossaries": [_told(one) for one in glossaries]}

    @router.get("/v3/glossaries/{name}")
    async def one(name: str) -> dict[str, Any]:
        return _told(glossaries.find(name))

    @router.patch("/v3/glossaries/{name}")
    async def change(request: Request, name: str) -> dict[str, Any]:
        fields = await read_fields(request)
        given = _given(fields) if fields.get("dictionaries") else []
        new_name = None if fields.get("name") is None else fields.text("name")
        return _told(await glossaries.extend(name, new_name, given))

    @router.delete("/v3/glossaries/{name}")
    async def delete(name: str) -> Response:
        await glossaries.delete(name)
        return Response(status_code=204)


def _add_dictionaries(router: APIRouter, glossaries: Glossaries) -> None:
    @router.put("/v3/glossaries/{name}/dictionaries")
    async def replace(request: Request, name: str) -> dict[str, Any]:
        given = given_of(await read_fields(request))
        return _dictionary(given.pair, await glossaries.replace(name, given))

    @router.get("/v3/glossaries/{name}/entries")
    async def entries(request: Request, name: str) -> dict[str, Any]:
        fields = await read_fields(request)
        found = glossaries.find(name).dictionaries
        pair = pair_of(fields) if fields.get("source_lang") else None
        if pair is not None and pair not in found:
            raise Refusal(404, "Dictionary not found")
        chosen = found if pair is None else {pair: found[pair]}
        told = [
            {"source_lang": src, "target_lang": tgt, "entries": own.tsv, "entries_format": "tsv"}
            for (src, tgt), own in chosen.items()
        ]
        return {"dictionaries": told}

    @router.delete("/v3/glossaries/{name}/dictionaries")
    async def delete(request: Request, name: str) -> Response:
        await glossaries.remove(name, pair_of(await read_fields(request)))
        return Response(status_code=204)


def _given(fields: Fields) -> list[Given]:
    given = fields.get("dictionaries")
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise Refusal(400, "Bad request: 'dictionaries' must be a list of dictionaries")
    return [given_of(Fields(one)) for one in given]


def _only(named: Named) -> tuple[LanguageCodes, Dictionary]:
    if len(named.dictionaries) != 1:
        raise Refusal(404, "Glossary not found: it is multilingual; ask for it by /v3/glossaries")
    return next(iter(named.dictionaries.items()))


def _single(named: Named) -> dict[str, Any]:
    pair, dictionary = _only(named)
    return {
        "glossary_id": named.id,
        "name": named.name,
        "ready": True,
        "creation_time": named.created,
        **_dictionary(pair, dictionary),
    }


def _dictionary(pair: LanguageCodes, dictionary: Dictionary) -> dict[str, Any]:
    return {"source_lang": pair[0], "target_lang": pair[1], "entry_count": len(dictionary.entries)}


def _told(named: Named) -> dict[str, Any]:
    return {
        "glossary_id": named.id,
        "name": named.name,
        "creation_time": named.created,
        "dictionaries": [_dictionary(pair, own) for pair, own in named.dictionaries.items()],
    }

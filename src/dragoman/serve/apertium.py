"""The dialect of Apertium's APy: `GET /translate?langpair=en|de&q=…`, `/listPairs`, `/identifyLang`."""

from typing import Any

from fastapi import APIRouter, Request

from dragoman.serve.documents import Documents
from dragoman.serve.fields import Fields, read_fields
from dragoman.serve.hints import hints
from dragoman.serve.languages import name_of
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service, Wish


def router_of(service: Service, documents: Documents) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/translate")
    async def translate(request: Request) -> dict[str, Any]:
        return await translate_form(service, documents, await read_fields(request))

    @router.get("/listPairs")
    async def list_pairs() -> dict[str, Any]:
        pairs = [{"sourceLanguage": src, "targetLanguage": tgt} for src, tgt in service.routes]
        return _response(pairs)

    @router.get("/listLanguageNames")
    async def list_language_names() -> dict[str, str]:
        return {code: name_of(code) for code in [*service.sources, *service.targets]}

    @router.get("/identifyLang")
    async def identify_language(request: Request) -> dict[str, float]:
        text = (await read_fields(request)).text("q")
        service.check([text])
        return {code: sure / 100 for code, sure in service.detect(text)}

    return router


async def translate_form(service: Service, documents: Documents, fields: Fields) -> dict[str, Any]:
    source, _, target = fields.text("langpair").partition("|")
    text = fields.text("q")
    if not source or not target:
        raise Refusal(400, "langpair: expected two languages, such as en|de")
    service.check([text])
    pair = service.pair(source, target)
    if fields.get("format") == "html":
        found = await documents.html(text, pair, Wish())
    else:
        (found,) = await service.translate([text], pair)
    matches = await hints(service, fields, [text], [pair])
    return _response({"translatedText": found.text, **({"matches": matches[0]} if matches else {})})


def _response(data: Any) -> dict[str, Any]:
    return {"responseData": data, "responseDetails": None, "responseStatus": 200}

"""LibreTranslate's dialect: `/translate`, `/detect`, `/languages`, `/translate_file` and related paths."""

from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dragoman.serve.apertium import translate_form
from dragoman.serve.documents import Documents, language_of_document, name_with_suffix, supported
from dragoman.serve.download import Download
from dragoman.serve.fields import Fields, read_fields
from dragoman.serve.hints import hints
from dragoman.serve.jobs import Jobs
from dragoman.serve.languages import LanguageCodes, base, name_of
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service, Translated, Wish


def router_of(service: Service, documents: Documents, jobs: Jobs, keyed: bool, probe: bool) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.post("/translate")
    async def translate(request: Request) -> JSONResponse:
        fields = await read_fields(request)
        if fields.get("langpair") is not None and fields.get("target") is None:
            return JSONResponse(await translate_form(service, documents, fields))
        return JSONResponse(await _translate(service, documents, fields, probe))

    @router.post("/detect")
    async def detect(request: Request) -> list[dict[str, Any]]:
        text = (await read_fields(request)).text("q")
        service.check([text])
        return [{"confidence": sure, "language": code} for code, sure in service.detect(text)]

    @router.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        return [
            {
                "code": code,
                "name": name_of(code),
                "targets": [tgt for src, tgt in service.routes if src == code],
            }
            for code in dict.fromkeys([*service.sources, *service.targets])
        ]

    @router.post("/suggest")
    async def suggest(request: Request) -> dict[str, bool]:
        fields = await read_fields(request)
        if service.corrections is None:
            raise Refusal(403, "Suggestions are disabled on this server.")
        text, better = (fields.text(name).replace("\r\n", "\n") for name in ("q", "s"))
        service.check([text, better])
        source, target = fields.text("source"), fields.text("target")
        source = service.detect(text, target)[0][0] if source == "auto" else source
        await service.corrections.put(service.pair(source, target), text, better)
        return {"success": True}

    @router.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        src, tgt = next(iter(service.routes))
        return {
            "apiKeys": keyed,
            "charLimit": service.limits.characters,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": keyed,
            "language": {
                "source": {"code": src, "name": name_of(src)},
                "target": {"code": tgt, "name": name_of(tgt)},
            },
            "suggestions": service.corrections is not None,
            "supportedFilesFormat": supported(),
        }

    @router.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    _add_files(router, service, jobs)
    return router


def _add_files(router: APIRouter, service: Service, jobs: Jobs) -> None:
    @router.post("/translate_file")
    async def translate_file(request: Request) -> dict[str, str]:
        fields = await read_fields(request)
        upload = fields.file("file")
        data = await upload.read()
        source, target = fields.text("source"), fields.text("target")
        name = name_with_suffix(upload.filename or "", data)
        if source == "auto":
            source = await language_of_document(service, data, name, target)
        job = jobs.start(data, name, service.pair(source, target), Wish())
        try:
            await job.finished()
        except BaseException:
            jobs.drop(job)
            raise
        if job.error is not None:
            jobs.drop(job)
            raise Refusal(400, job.error)
        suffix = PurePath(name).suffix
        return {"translatedFileUrl": str(request.url_for("download_file", name=f"{job.id}{suffix}"))}

    @router.get("/download_file/{name}", name="download_file")
    async def download_file(name: str) -> Response:
        """The name is long and random, so it serves as the access token."""
        job = jobs.find(PurePath(name).stem)
        if job.result is None:
            raise Refusal(404, "There is no such file")
        return Download(job.result, job.name)


async def _translate(service: Service, documents: Documents, fields: Fields, probe: bool) -> dict[str, Any]:
    texts = [text.replace("\r\n", "\n") for text in fields.texts("q")]
    source, target = fields.text("source"), fields.text("target")
    format = fields.text("format", "text") or "text"
    if format not in ("text", "html"):
        raise Refusal(400, f"{format} format is not supported")
    several = isinstance(fields.get("q"), list)
    if not texts or not (several or texts[0]):
        raise Refusal(400, "Invalid request: missing q parameter")
    more = fields.number("alternatives", 0, 0, service.limits.alternatives)
    service.check(texts)
    if probe and texts == ["test"] and (base(source), base(target)) == ("en", "de"):
        served = [(base(src), base(tgt)) for src, tgt in service.routes]
        if ("en", "de") not in served:
            return {"translatedText": texts if several else texts[0]}
    detected = [service.detect(text, target)[0] for text in texts] if source == "auto" else []
    sources = [code for code, _ in detected] or [source] * len(texts)
    pairs = [service.pair(own, target) for own in sources]
    found = await _all(service, documents, texts, pairs, Wish(n_best=more + 1), format)
    answer: dict[str, Any] = {"translatedText": [one.text for one in found]}
    if detected:
        answer["detectedLanguage"] = [{"confidence": sure, "language": code} for code, sure in detected]
    if more:
        answer["alternatives"] = [list(one.alternatives) for one in found]
    if matches := await hints(service, fields, texts, pairs):
        answer["matches"] = matches
    return answer if several else {name: value[0] for name, value in answer.items()}


async def _all(
    service: Service,
    documents: Documents,
    texts: list[str],
    pairs: list[LanguageCodes],
    wish: Wish,
    format: str,
) -> list[Translated]:
    if format == "html":
        return [await documents.html(text, pair, wish) for text, pair in zip(texts, pairs, strict=True)]
    results: dict[int, Translated] = {}
    for pair in dict.fromkeys(pairs):
        numbers = [number for number, own in enumerate(pairs) if own == pair]
        found = await service.translate([texts[number] for number in numbers], pair, wish)
        results |= zip(numbers, found, strict=True)
    return [results[number] for number in range(len(texts))]

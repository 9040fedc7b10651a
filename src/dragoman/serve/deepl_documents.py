"""DeepL's dialect for documents: upload by `/v2/document`, then query the status and fetch the result by id
and key."""

import hmac
from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request, Response

from dragoman.serve.deepl import pair_of
from dragoman.serve.documents import language_of_document, name_with_suffix
from dragoman.serve.download import Download
from dragoman.serve.fields import read_fields
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.jobs import DocumentJob, Jobs
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service, Wish


def router_of(service: Service, jobs: Jobs, glossaries: Glossaries) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.post("/v2/document")
    async def upload(request: Request) -> dict[str, str]:
        fields = await read_fields(request)
        file = fields.file("file")
        data = await file.read()
        name = name_with_suffix(fields.text("filename", "") or file.filename or "", data)
        target, source = fields.text("target_lang"), fields.text("source_lang", "")
        if fields.text("formality", "default") not in ("default", "prefer_more", "prefer_less"):
            raise Refusal(400, "'formality' is not supported for given 'target_lang'.")
        asked = fields.text("output_format", "").lower().removeprefix(".")
        if asked and asked != PurePath(name).suffix.lower().removeprefix("."):
            raise Refusal(400, "Value for 'output_format' not supported: a document keeps its format.")
        wish = Wish(glossary=await glossaries.wanted(fields, source, target))
        source = source or await language_of_document(service, data, name, target)
        job = jobs.start(data, name, pair_of(service, source, target), wish)
        service.metrics.count("dragoman_characters_total", job.characters)
        return {"document_id": job.id, "document_key": job.key}

    @router.post("/v2/document/{name}")
    async def status(request: Request, name: str) -> dict[str, Any]:
        job = await _job(jobs, request, name)
        if job.error is not None:
            return {"document_id": job.id, "status": "error", "error_message": job.error}
        if job.result is not None:
            return {"document_id": job.id, "status": "done", "billed_characters": job.characters}
        status = "translating" if job.running else "queued"
        return {"document_id": job.id, "status": status, "seconds_remaining": 5}

    @router.post("/v2/document/{name}/result")
    async def result(request: Request, name: str) -> Response:
        """The result can be fetched once."""
        job = await _job(jobs, request, name)
        if job.result is None:
            raise Refusal(503 if job.error is None else 404, job.error or "Document not ready")
        job.fetched = True
        return Download(job.result, job.name, ended=lambda: jobs.drop(job))

    return router


async def _job(jobs: Jobs, request: Request, name: str) -> DocumentJob:
    key = (await read_fields(request)).text("document_key")
    job = jobs.find(name)
    if not hmac.compare_digest(key.encode("utf-8"), job.key.encode("ascii")):
        raise Refusal(404, "There is no such document")
    return job

"""Documents in the native API: translated while the client waits, or as a job whose status it polls."""

from typing import Annotated, Literal

from fastapi import APIRouter, Form, Response, UploadFile
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from dragoman.serve.documents import Documents, name_with_suffix
from dragoman.serve.download import Download
from dragoman.serve.jobs import DocumentJob, Jobs
from dragoman.serve.own import ERRORS, Error
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service, Wish


class Started(BaseModel):
    id: str


class DocumentProgress(BaseModel):
    status: Literal["waiting", "translating", "done", "error"]
    done: Annotated[int, Field(description="Number of translated sentences, of `total`.")]
    total: int
    error: str | None = None


def router_of(service: Service, documents: Documents, jobs: Jobs) -> APIRouter:
    errors = {**ERRORS, 404: {"model": Error}}
    router = APIRouter(prefix="/api/v1/documents", responses={**errors}, tags=["dragoman"])

    @router.post(
        "", response_class=Response, responses={200: {"content": {"*/*": {}}}, 202: {"model": Started}}
    )
    async def translate_document(
        file: UploadFile,
        source: Annotated[str, Form()],
        target: Annotated[str, Form()],
        wait: Annotated[bool, Form(description="`false`: return an id for polling at once.")] = True,
    ) -> Response:
        """Translate a document in place. `X-Units-Translated` and `X-Units-Left` count its units."""
        data = await file.read()
        name = name_with_suffix(file.filename or "", data)
        pair = service.pair(source, target)
        if not wait:
            return JSONResponse({"id": jobs.start(data, name, pair, Wish()).id}, 202)
        written, outcome = await documents.translate(data, name, pair)
        return Download(written, name, _counts(len(outcome.texts), len(outcome.left)))

    @router.get("/{id}")
    async def progress(id: str) -> DocumentProgress:
        """The progress of a document."""
        job = jobs.find(id)
        return DocumentProgress(status=_status(job), done=job.done, total=job.total, error=job.error)

    @router.get("/{id}/result", response_class=Response, responses={200: {"content": {"*/*": {}}}})
    async def result(id: str) -> Response:
        """The translated document. It can be fetched once."""
        job = jobs.find(id)
        if job.result is None:
            raise Refusal(404 if job.error else 400, job.error or "The document is not translated yet")
        job.fetched = True
        return Download(job.result, job.name, _counts(job.translated, job.left), lambda: jobs.drop(job))

    @router.delete("/{id}")
    async def stop(id: str) -> DocumentProgress:
        """Cancel the translation of a document and delete it."""
        job = jobs.find(id)
        told = DocumentProgress(status=_status(job), done=job.done, total=job.total, error=job.error)
        jobs.drop(job)
        return told

    return router


def _status(job: DocumentJob) -> Literal["waiting", "translating", "done", "error"]:
    if job.error is not None:
        return "error"
    if job.result is not None:
        return "done"
    return "translating" if job.running else "waiting"


def _counts(translated: int, left: int) -> dict[str, str]:
    return {"X-Units-Translated": str(translated), "X-Units-Left": str(left)}

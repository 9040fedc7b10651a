"""The application: all dialects beside each other, behind one gate."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dragoman.errors import UserError
from dragoman.serve import (
    apertium,
    deepl,
    deepl_documents,
    deepl_glossaries,
    docs_page,
    explain,
    libretranslate,
    openai,
    openai_chat,
    own,
    own_alternatives,
    own_corrections,
    own_documents,
    own_models,
    own_state,
    page,
    tmserver,
)
from dragoman.serve.documents import Documents
from dragoman.serve.gate import FAULT, Gate, refused
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.jobs import Jobs
from dragoman.serve.keys import Keys
from dragoman.serve.models import Models
from dragoman.serve.refusal import Refusal
from dragoman.serve.service import Service


@dataclass(frozen=True)
class Options:
    keys: Keys | None = None
    glossaries: Path | None = None
    """File that stores the glossaries of clients."""
    version: str = "0"
    beside: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Background task that runs until the service ends (`nightly.py`)."""
    probe: bool = False
    """Whether to answer Weblate's test request («test» from English to German) if that pair is not served."""


def build(service: Service | None, options: Options | None = None, models: Models | None = None) -> Gate:
    """The application for translators, other models, or both. Both share limits and counters."""
    options = options or Options()
    parts = [part for part in (service, models) if part is not None]
    closing: list[Callable[[], None]] = [part.close for part in parts]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        task = None if options.beside is None else asyncio.get_running_loop().create_task(options.beside())
        yield
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        for close in reversed(closing):
            close()

    app = FastAPI(
        title="dragoman",
        version=options.version,
        summary="Models of your own.",
        docs_url=None,  # FastAPI's pages fetch their scripts from elsewhere
        redoc_url=None,
        openapi_url="/openapi.json",
        lifespan=lifespan,
        redirect_slashes=False,
    )
    if service is not None:
        for router in _translating(service, options, closing):
            app.include_router(router)
    app.include_router(own_state.router_of(parts))
    app.include_router(own_state.metrics_router_of(parts, parts[0].metrics))
    if models is not None:
        app.include_router(own_models.router_of(models))
        app.include_router(openai.router_of(models))
        app.include_router(openai_chat.router_of(models))
    answer_errors(app)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    others = [*(docs_page.TRANSLATING if service else ()), *(docs_page.OPENAI if models else ())]
    app.include_router(docs_page.router_of(_openapi(app), others, home=service is None))
    return Gate(app, parts[0].limits, parts[0].metrics, options.keys)


def _translating(
    service: Service, options: Options, closing: list[Callable[[], None]]
) -> tuple[APIRouter, ...]:
    """The routers in matching order: the most frequent requests come first."""
    documents = Documents(service)
    jobs = Jobs(documents, service.limits)
    glossaries = Glossaries(service.limits, options.glossaries)
    closing += [documents.close, jobs.close]
    return (
        libretranslate.router_of(service, documents, jobs, options.keys is not None, options.probe),
        deepl.router_of(service, documents, glossaries, options.probe),
        own.router_of(service, documents),
        apertium.router_of(service, documents),
        tmserver.router_of(service),
        explain.router_of(service),
        own_alternatives.router_of(service),
        own_corrections.router_of(service),
        own_documents.router_of(service, documents, jobs),
        page.router_of(),
        deepl_glossaries.router_of(service, glossaries),
        deepl_documents.router_of(service, jobs, glossaries),
    )


def answer_errors(app: FastAPI) -> None:
    """Errors are answered in the format of the dialect. Answers name the problem but never repeat the
    request."""

    @app.exception_handler(Refusal)
    async def refusal(request: Request, error: Refusal) -> Response:
        return refused(request.scope, error)

    @app.exception_handler(UserError)
    async def mistake(request: Request, error: UserError) -> Response:
        return refused(request.scope, Refusal(400, str(error)))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        told = [f"{_field_of(one['loc'])}: {one['msg']}" for one in error.errors()]
        return refused(request.scope, Refusal(400, "Invalid request: " + "; ".join(told[:5])))

    @app.exception_handler(Exception)
    async def fault(request: Request, _: Exception) -> Response:
        return refused(request.scope, Refusal(500, FAULT))  # the gate logs it

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        return refused(request.scope, Refusal(error.status_code, str(error.detail), error.headers))


def _field_of(place: tuple[int | str, ...]) -> str:
    """The name of the invalid field, with the index of an item, but without names that a client chose."""
    known = [part for number, part in enumerate(place[1:]) if number == 0 or isinstance(part, int)]
    return ".".join(map(str, known)) or "body"


def _openapi(app: FastAPI) -> dict[str, Any]:
    """FastAPI documents a status 422, which this server never returns."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title,
            version=app.version,
            summary=app.summary,
            routes=app.routes,
            tags=app.openapi_tags,
        )
        for path in found["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            found.get("components", {}).get("schemas", {}).pop(name, None)
        app.openapi_schema = found
    return app.openapi_schema

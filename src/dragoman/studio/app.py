"""The studio behind the server's own gate: the page, its files, and what it asks for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files

from fastapi import APIRouter, FastAPI, Response

from dragoman.drawing import assets
from dragoman.serve.app import answer_errors
from dragoman.serve.gate import Gate
from dragoman.serve.limits import Limits
from dragoman.serve.metrics import Metrics
from dragoman.serve.refusal import Refusal
from dragoman.serve.run import until_stopped
from dragoman.studio.api import Worker, router_of
from dragoman.studio.subjects import Subjects
from dragoman.studio.workshop import Workshop
from dragoman.studio.workshop_api import workshop_router

HOST = "127.0.0.1"
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
POLICY = "; ".join([
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",  # heat-maps are pictures inside a drawing, and drawings become pictures
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
])  # fmt: skip


def build(subjects: Subjects, limits: Limits | None = None, workshop: Workshop | None = None) -> Gate:
    worker = Worker()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        worker.close()
        if workshop is not None:
            await asyncio.to_thread(workshop.close)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan, redirect_slashes=False)
    app.include_router(_files())
    app.include_router(router_of(subjects, worker, trains=workshop is not None))
    if workshop is not None:
        app.include_router(workshop_router(workshop, subjects))
    answer_errors(app)
    return Gate(app, limits or Limits(), Metrics(), None)


def serve(
    subjects: Subjects, port: int, ready: Callable[[str], None], workshop: Workshop | None = None
) -> None:
    """Blocks, on loopback alone."""
    limits = Limits()
    until_stopped(build(subjects, limits, workshop), limits, HOST, port, ready)


def _files() -> APIRouter:
    """Read once, and looked up by name: no path of a request ever reaches the disk."""
    found = {name: text.encode() for name, text in assets().items()} | {
        path.name: path.read_bytes()
        for path in (files("dragoman.studio") / "assets").iterdir()
        if path.name.rpartition(".")[2] in _TYPES
    }
    router = APIRouter(include_in_schema=False)

    def answer(name: str) -> Response:
        if name not in found:
            raise Refusal(404, "Not found")
        kind = _TYPES[name.rpartition(".")[2]]
        headers = {"Content-Security-Policy": POLICY}
        return Response(found[name], media_type=f"{kind}; charset=utf-8", headers=headers)

    @router.get("/")
    async def page() -> Response:
        return answer("index.html")

    @router.get("/assets/{name}")
    async def asset(name: str) -> Response:
        return answer(name)

    @router.get("/favicon.ico")
    async def icon() -> Response:
        return Response(status_code=204)

    return router

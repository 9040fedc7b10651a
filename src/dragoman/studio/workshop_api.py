"""The Train view's part of `/api/studio`. Every request has to carry the token of the address that was
printed: another user of the machine can reach the port, but does not know it."""

import asyncio
import hmac
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header
from pydantic import BaseModel, ConfigDict, Field

from dragoman.serve.refusal import Refusal
from dragoman.studio.subjects import Subjects
from dragoman.studio.workshop import Workshop

Path = Annotated[str, Field(max_length=4096)]
Token = Annotated[str, Header(alias="X-Studio-Token", max_length=200)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FilesRequest(_Request):
    files: Annotated[list[Path], Field(max_length=64)]


class TrainRequest(FilesRequest):
    name: Annotated[str, Field(max_length=80)]
    minutes: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)] = 10.0


class RunRequest(_Request):
    name: Annotated[str, Field(max_length=80)]


class EvaluateRequest(FilesRequest):
    name: Annotated[str, Field(max_length=80)]


def workshop_router(workshop: Workshop, subjects: Subjects) -> APIRouter:
    router = APIRouter(prefix="/api/studio/workshop")

    async def ask(token: str, job: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if not hmac.compare_digest(token.encode(), workshop.token.encode()):
            raise Refusal(403, "Open the address that `dragoman studio` has printed: it carries a token")
        return await asyncio.to_thread(job)

    @router.post("/files")
    async def files(token: Token = "") -> Any:
        return await ask(token, workshop.files)

    @router.post("/state")
    async def state(token: Token = "") -> Any:
        return await ask(token, workshop.state)

    @router.post("/report")
    async def report(asked: FilesRequest, token: Token = "") -> Any:
        return await ask(token, lambda: workshop.report(asked.files))

    @router.post("/plan")
    async def plan(asked: TrainRequest, token: Token = "") -> Any:
        return await ask(token, lambda: workshop.plan(asked.files, asked.name, asked.minutes))

    @router.post("/start")
    async def start(asked: TrainRequest, token: Token = "") -> Any:
        return await ask(token, lambda: workshop.start(asked.files, asked.name, asked.minutes))

    @router.post("/stop")
    async def stop(token: Token = "") -> Any:
        return await ask(token, workshop.stop)

    @router.post("/resume")
    async def resume(asked: RunRequest, token: Token = "") -> Any:
        return await ask(token, lambda: workshop.resume(asked.name))

    @router.post("/evaluate")
    async def evaluate(asked: EvaluateRequest, token: Token = "") -> Any:
        return await ask(token, lambda: workshop.evaluate(asked.name, asked.files))

    @router.post("/export")
    async def export(asked: RunRequest, token: Token = "") -> Any:
        return await ask(token, lambda: workshop.export(asked.name))

    @router.post("/serve")
    async def serve(asked: RunRequest, token: Token = "") -> Any:
        return await ask(token, lambda: workshop.serve(asked.name))

    @router.post("/test")
    async def test(asked: FilesRequest, token: Token = "") -> Any:
        return await ask(token, lambda: {"name": subjects.add_test(workshop.check(asked.files))})

    @router.post("/open")
    async def open_run(asked: RunRequest, token: Token = "") -> Any:
        def job() -> dict[str, Any]:
            return {"name": subjects.add(workshop.directory(asked.name))}

        return await ask(token, job)

    return router

"""What the page asks for, at `/api/studio`: closed requests with limits, and answers made one at a time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from dragoman.studio import sentence
from dragoman.studio.history import history
from dragoman.studio.steps import one_head
from dragoman.studio.subject import MOST_CHARACTERS, MOST_WRITTEN, Subject, Subjects

MOST_BEAM = 16
Ids = Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MOST_WRITTEN)]
Heads = Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(max_length=256)]
Beam = Annotated[int, Field(ge=1, le=MOST_BEAM)]
Alpha = Annotated[float, Field(ge=0, le=4, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=255)]


class _About(BaseModel):
    """Which model, and which sentence."""

    model_config = ConfigDict(extra="forbid", strict=True)
    run: Name
    checkpoint: Name | None = None
    text: Annotated[str, Field(max_length=MOST_CHARACTERS)]


class TranslateRequest(_About):
    beam: Beam = 5
    n_best: Beam = 5
    alpha: Alpha = 1.0
    head: Annotated[Ids, Field(description="Pieces that the translation begins with.")] = []


class PositionsRequest(_About):
    target: Ids


class AttentionRequest(_About):
    target: Ids | None = None
    masked: Annotated[dict[Name, Heads], Field(max_length=256)] = {}
    kind: Literal["encoder", "decoder", "cross", "joint", "copy"] | None = None
    beam: Beam = 5
    alpha: Alpha = 1.0


class BeamRequest(_About):
    beam: Beam = 5
    alpha: Alpha = 1.0


class HeadRequest(PositionsRequest):
    module: Name
    head: Annotated[int, Field(ge=0)]
    position: Annotated[int, Field(ge=0)]


class TrainingRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    run: Name
    since: Annotated[int, Field(ge=0)] = 0


class Worker:
    """One thread: hooks on a model are not for two at once. Who leaves before his turn is passed over."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="studio")

    async def __call__(self, job: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._executor, job)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def router_of(subjects: Subjects, worker: Worker) -> APIRouter:
    router = APIRouter(prefix="/api/studio")

    async def ask(about: _About, job: Callable[[Subject], dict[str, Any]]) -> dict[str, Any]:
        return await worker(lambda: job(subjects.get(about.run, about.checkpoint)))

    @router.get("/runs")
    async def runs() -> Any:
        return {"runs": await asyncio.to_thread(subjects.describe), "unreadable": subjects.unreadable}

    @router.post("/translate")
    async def translate(asked: TranslateRequest) -> Any:
        return await ask(
            asked,
            lambda of: sentence.translate(of, asked.text, asked.beam, asked.n_best, asked.alpha, asked.head),
        )

    @router.post("/positions")
    async def positions(asked: PositionsRequest) -> Any:
        return await ask(asked, lambda of: sentence.positions(of, asked.text, asked.target))

    @router.post("/attention")
    async def attention(asked: AttentionRequest) -> Any:
        return await ask(
            asked,
            lambda of: sentence.attention(
                of, asked.text, asked.target, asked.masked, asked.kind, asked.beam, asked.alpha
            ),
        )

    @router.post("/heads")
    async def heads(asked: PositionsRequest) -> Any:
        return await ask(asked, lambda of: sentence.weigh_heads(of, asked.text, asked.target))

    @router.post("/beam")
    async def beam(asked: BeamRequest) -> Any:
        return await ask(asked, lambda of: sentence.beam_tree(of, asked.text, asked.beam, asked.alpha))

    @router.post("/head")
    async def head(asked: HeadRequest) -> Any:
        return await ask(
            asked,
            lambda of: one_head(of, asked.text, asked.target, asked.module, asked.head, asked.position),
        )

    @router.post("/training")
    async def training(asked: TrainingRequest) -> Any:
        return await asyncio.to_thread(lambda: history(subjects.get(asked.run).run, asked.since))

    return router

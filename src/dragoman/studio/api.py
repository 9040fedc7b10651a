"""What the page asks for, at `/api/studio`: closed requests with limits, and answers made one at a time."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from dragoman.errors import UserError
from dragoman.studio import corpus, reading, sentence, vectors
from dragoman.studio.history import history
from dragoman.studio.lessons import lessons
from dragoman.studio.limits import MOST_CHARACTERS, MOST_WRITTEN
from dragoman.studio.reading import Reading
from dragoman.studio.steps import one_head
from dragoman.studio.subject import Subject
from dragoman.studio.subjects import OpenSubject, Subjects
from dragoman.studio.vectors import OpenVectors
from dragoman.studio.whole import whole_model

MOST_BEAM = 16
_VIEWS = {"image": "Picture", "series": "Series"}
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


class Draw(BaseModel):
    """Options for sampling instead of beam search."""

    model_config = ConfigDict(extra="forbid", strict=True)
    temperature: Annotated[float, Field(gt=0, le=4, allow_inf_nan=False)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=1000)] = 0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    seed: Annotated[int, Field(ge=0, le=2**31)] = 1


class ShownTranslateRequest(_About):
    beam: Beam = 5
    n_best: Beam = 5
    alpha: Alpha = 1.0
    head: Annotated[Ids, Field(description="Pieces that the translation begins with.")] = []
    begin: Annotated[
        str, Field(max_length=MOST_CHARACTERS, description="Text that it begins with, instead of `head`.")
    ] = ""
    draw: Draw | None = None


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


class WalkRequest(PositionsRequest):
    position: Annotated[int, Field(ge=0)] = 0
    stage: Annotated[int, Field(ge=0)] | None = None


class TextRequest(_About):
    """A text, with `<mask>` where something is missing."""


class LayersRequest(_About):
    place: Annotated[int, Field(ge=0)]


class DataRequest(_About):
    test: Annotated[Name, Field(description="Name of a test set; the validation set if empty.")] = ""
    count: Annotated[int, Field(ge=1, le=200)] = 50
    beam: Beam = 5
    alpha: Alpha = 1.0


class PictureRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    run: Name
    checkpoint: Name | None = None
    example: Annotated[int, Field(ge=0)] = 0
    layer: Annotated[int, Field(ge=1, le=1000)] | None = None
    head: Annotated[int, Field(ge=1, le=1000)] | None = None


class SeriesRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    run: Name
    checkpoint: Name | None = None
    example: Annotated[int, Field(ge=0)] = 0


class TrainingRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    run: Name
    since: Annotated[int, Field(ge=0)] = 0


class Worker:
    """A single worker thread, because hooks on a model cannot be shared. Cancelled requests are skipped."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="studio")

    async def __call__(self, job: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._executor, job)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


def _sees(of: OpenSubject) -> OpenVectors:
    if not isinstance(of, OpenVectors):
        raise UserError(f"{of.run.directory.name}: only for runs on images and series")
    return of


def _of_text(of: OpenSubject) -> Subject | Reading:
    if isinstance(of, OpenVectors):
        raise UserError(
            f"{of.run.directory.name}: this run does not read text; open the view {_VIEWS[of.sees]}"
        )
    return of


def _writes(of: OpenSubject) -> Subject:
    if not isinstance(of, Subject):
        raise UserError(f"{of.run.directory.name}: this network reads and does not write; open the view Read")
    return of


def _reads(of: Subject | Reading) -> Reading:
    if isinstance(of, Subject):
        raise UserError(f"{of.run.directory.name}: only for networks that guess what is masked, such as BERT")
    return of


class Desk:
    """Answers requests in order."""

    def __init__(self, subjects: Subjects, worker: Worker) -> None:
        self.subjects, self.worker = subjects, worker

    async def see(
        self, asked: PictureRequest | SeriesRequest, job: Callable[[OpenVectors], dict[str, Any]]
    ) -> dict[str, Any]:
        """Only of a run on images or series."""
        return await self.worker(lambda: job(_sees(self.subjects.get(asked.run, asked.checkpoint))))

    async def look(self, about: _About, job: Callable[[Subject | Reading], dict[str, Any]]) -> dict[str, Any]:
        return await self.worker(lambda: job(_of_text(self.subjects.get(about.run, about.checkpoint))))

    async def ask(self, about: _About, job: Callable[[Subject], dict[str, Any]]) -> dict[str, Any]:
        """Only of a model that writes."""
        return await self.look(about, lambda of: job(_writes(of)))


def router_of(subjects: Subjects, worker: Worker, trains: bool = False) -> APIRouter:
    """`trains`: whether there is a Train view."""
    router, desk = APIRouter(prefix="/api/studio"), Desk(subjects, worker)
    _add_writing(router, desk)
    _add_reading(router, desk)
    _add_vectors(router, desk)
    _add_runs(router, desk, trains)
    return router


def _add_writing(router: APIRouter, desk: Desk) -> None:
    """Routes for models that generate text."""

    @router.post("/translate")
    async def translate(asked: ShownTranslateRequest) -> Any:
        def job(of: Subject) -> dict[str, Any]:
            settings = of.settings(asked.beam, asked.n_best, asked.alpha)
            drawn = None if asked.draw is None else asked.draw.model_dump()
            chosen = settings if drawn is None else of.draws(asked.n_best, **drawn)
            head = of.beginning(asked.begin) if asked.begin.strip() else asked.head
            return sentence.translate(of, asked.text, chosen, head)

        return await desk.ask(asked, job)

    @router.post("/positions")
    async def positions(asked: PositionsRequest) -> Any:
        return await desk.ask(asked, lambda of: sentence.positions(of, asked.text, asked.target))

    @router.post("/beam")
    async def beam(asked: BeamRequest) -> Any:
        return await desk.ask(asked, lambda of: sentence.beam_tree(of, asked.text, asked.beam, asked.alpha))

    @router.post("/head")
    async def head(asked: HeadRequest) -> Any:
        return await desk.ask(
            asked,
            lambda of: one_head(of, asked.text, asked.target, asked.module, asked.head, asked.position),
        )

    @router.post("/walk")
    async def walk(asked: WalkRequest) -> Any:
        return await desk.ask(
            asked, lambda of: whole_model(of, asked.text, asked.target, asked.position, asked.stage)
        )


def _add_reading(router: APIRouter, desk: Desk) -> None:
    """Routes for encoders."""

    @router.post("/attention")
    async def attention(asked: AttentionRequest) -> Any:
        def job(of: Subject | Reading) -> dict[str, Any]:
            if isinstance(of, Reading):
                return reading.attention(of, asked.text, asked.masked, asked.kind)
            return sentence.attention(
                of, asked.text, asked.target, asked.masked, asked.kind, asked.beam, asked.alpha
            )

        return await desk.look(asked, job)

    @router.post("/heads")
    async def heads(asked: PositionsRequest) -> Any:
        def job(of: Subject | Reading) -> dict[str, Any]:
            if isinstance(of, Reading):
                return reading.weigh_heads(of, asked.text)
            return sentence.weigh_heads(of, asked.text, asked.target)

        return await desk.look(asked, job)

    @router.post("/read")
    async def read(asked: TextRequest) -> Any:
        return await desk.look(asked, lambda of: reading.read(of, asked.text))

    @router.post("/fill")
    async def fill(asked: TextRequest) -> Any:
        return await desk.look(asked, lambda of: reading.fill(of, asked.text))

    @router.post("/layers")
    async def layers(asked: LayersRequest) -> Any:
        return await desk.look(asked, lambda of: reading.layers(_reads(of), asked.text, asked.place))


def _add_vectors(router: APIRouter, desk: Desk) -> None:
    """Routes for runs on images and series."""

    @router.post("/picture")
    async def picture(asked: PictureRequest) -> Any:
        return await desk.see(asked, lambda of: vectors.picture(of, asked.example, asked.layer, asked.head))

    @router.post("/series")
    async def series(asked: SeriesRequest) -> Any:
        return await desk.see(asked, lambda of: vectors.series(of, asked.example))


def _add_runs(router: APIRouter, desk: Desk, trains: bool) -> None:
    """About runs and their data."""

    @router.get("/runs")
    async def runs() -> Any:
        told = await asyncio.to_thread(desk.subjects.describe)
        return {
            "runs": told,
            "unreadable": desk.subjects.unreadable,
            "lessons": lessons(),
            "tests": list(desk.subjects.tests),
            "trains": trains,
        }

    @router.post("/data")
    async def data(asked: DataRequest) -> Any:
        files = desk.subjects.test_files(asked.test)
        return await desk.ask(asked, lambda of: corpus.table(of, asked.count, asked.beam, asked.alpha, files))

    @router.post("/nearest")
    async def nearest(asked: TextRequest) -> Any:
        return await desk.worker(lambda: {"pairs": desk.subjects.nearest(asked.run).find(asked.text)})

    @router.post("/training")
    async def training(asked: TrainingRequest) -> Any:
        return await asyncio.to_thread(lambda: history(desk.subjects.get(asked.run).run, asked.since))

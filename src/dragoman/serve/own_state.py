"""Liveness, readiness and metrics of the server."""

from collections.abc import Sequence
from typing import Protocol

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse

from dragoman.serve.metrics import Metrics
from dragoman.serve.own import ERRORS, Status
from dragoman.serve.refusal import Refusal


class HasQueue(Protocol):
    @property
    def waiting(self) -> int: ...

    @property
    def full(self) -> bool: ...


def router_of(parts: Sequence[HasQueue]) -> APIRouter:
    router = APIRouter(prefix="/api/v1", responses={**ERRORS}, tags=["dragoman"])

    @router.get("/health")
    async def health() -> Status:
        """Liveness: the server is running."""
        return Status(status="ok")

    @router.get("/ready")
    async def ready() -> Status:
        """Readiness: the server accepts requests; 503 while the queue is full."""
        if any(part.full for part in parts):
            raise Refusal(503, "the queue is full", {"Retry-After": "1"})
        return Status(status="ok")

    return router


def metrics_router_of(parts: Sequence[HasQueue], metrics: Metrics) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/metrics")
    async def exposition() -> PlainTextResponse:
        gauges = {"dragoman_waiting_sentences": float(sum(part.waiting for part in parts))}
        return PlainTextResponse(metrics.exposition(gauges))

    return router

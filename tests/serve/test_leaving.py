"""A client that leaves stops the decoding of its sentences within one step, counted in a real search."""

import asyncio
import threading

import pytest

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import JointState
from dragoman.decode.translator.translator import Translator
from dragoman.serve.batcher import Kindred
from dragoman.serve.limits import Limits
from dragoman.serve.service import Served, Service
from dragoman.shapes import Tensor
from odd_inputs import tiny_translator
from serve.live import REQUEST, on_a_still_clock, serving, until


class Slow:
    """A translator whose search stops before a step until it is let go on."""

    def __init__(self, beam: int, at: int, patch: pytest.MonkeyPatch) -> None:
        self.translator: Translator = tiny_translator()
        self.translator.search = SearchConfig(beam=beam, min_length=40, max_extra=60)
        self.rows: list[int] = []
        self.there, self.go_on = threading.Event(), threading.Event()
        step = self.translator.scorer.step

        def slow(last_ids: Tensor, state: JointState) -> tuple[Tensor, JointState]:
            self.rows.append(len(last_ids))
            if len(self.rows) == at:
                self.there.set()
                self.go_on.wait()
            return step(last_ids, state)

        patch.setattr(self.translator.scorer, "step", slow)


@pytest.mark.parametrize("beam", [1, 4])
def test_no_step_is_begun_after_the_client_has_left(beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(beam, at=3, patch=monkeypatch)
    service = Service([Served(("en", "de"), slow.translator)], limits=Limits(window_s=0))

    async def story() -> None:
        async with serving(service) as server:
            client = await server.client()
            try:
                await client.send(REQUEST)
                await until(slow.there.is_set)
                client.close()
                await until(lambda: service.metrics.value("dragoman_requests_total"))  # it is noticed
            finally:
                slow.go_on.set()
            batcher = service.batchers["en", "de"]
            await until(lambda: not batcher._workers)
            assert not batcher._known  # nothing that was broken off is remembered

    on_a_still_clock(story)
    assert len(slow.rows) == 3


def test_who_stays_gets_what_it_would_have_got(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Slow(4, at=0, patch=monkeypatch).translator.translate(["a dog ran"])
    slow = Slow(4, at=5, patch=monkeypatch)
    service = Service([Served(("en", "de"), slow.translator)], limits=Limits(window_s=0))

    async def story() -> None:
        batcher = service.batchers["en", "de"]
        leaves, stays = (
            asyncio.ensure_future(batcher.ask([text], Kindred())) for text in ("the cat", "a dog ran")
        )
        await until(slow.there.is_set)
        leaves.cancel()
        await until(leaves.done)
        slow.go_on.set()
        (answer,) = await stays
        assert answer.texts == (alone[0],)
        assert [text for text, *_ in batcher._known] == ["a dog ran"]

    on_a_still_clock(story)
    service.close()
    assert slow.rows[4] == 2 * slow.rows[5]

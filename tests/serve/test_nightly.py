"""The server learns from corrections at night. The clock is a fake one, and so is `dragoman adapt`."""

import asyncio
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import UserError
from dragoman.serve.app import Options
from dragoman.serve.corrections import Corrections
from dragoman.serve.limits import Limits
from dragoman.serve.memory import open_memories
from dragoman.serve.nightly import Adaptation, Nightly, next_time, nightly_of, parse_time
from dragoman.serve.service import Served, Service
from serve.standin import Shouter, client_of

PAIR = ("en", "de")
BEGIN = datetime(2026, 3, 27, 22, 30)


class Enough(Exception):
    """The test has seen what it wants to see."""


class Night:
    """A clock that goes on when somebody sleeps; corrections come in before each morning."""

    def __init__(self, tmp_path: Path, statuses: Sequence[int], corrected: Sequence[bool]) -> None:
        self.time, self.statuses, self.corrected = BEGIN, list(statuses), list(corrected)
        self.asked: list[tuple[str, str]] = []
        self.days = 0
        self.run = tmp_path / "runs" / "en-de"
        self.run.mkdir(parents=True)
        one = Served(PAIR, Shouter(), insists=True, name=str(self.run))
        self.corrections = Corrections(Limits(), tmp_path / "c.tmx", lambda: self.time.replace(tzinfo=UTC))
        self.service = Service([one], corrections=self.corrections)
        self.nightly = Nightly(
            self.service, self.corrections, time(3), self.open_run, self.adapt, lambda: self.time, self.sleep
        )

    async def sleep(self, seconds: float) -> None:
        """Never past the hour; and a clock that was set is looked at again after ten minutes."""
        assert 0 < seconds <= 600
        assert self.time + timedelta(seconds=seconds) <= next_time(time(3), self.time)
        before = self.time.date()
        self.time += timedelta(seconds=seconds)
        if self.time.date() != before:
            if not self.corrected:
                raise Enough
            if self.corrected.pop(0):
                await self.corrections.put(PAIR, f"text {self.time}", "besser")

    def adapt(self, run: Path, corrections: Path, out: Path) -> int:
        assert corrections == self.corrections.file and corrections.is_file()
        self.asked.append((run.name, out.name))
        self.time += timedelta(hours=2)
        status = self.statuses.pop(0)
        if not status:
            out.mkdir()
        return status

    def open_run(self, run: Path) -> Served:
        return Served(PAIR, Shouter(mark="!"), insists=True, name=str(run))

    def pass_by(self) -> None:
        with pytest.raises(Enough):
            asyncio.run(self.nightly.run())

    @property
    def serving(self) -> str:
        return Path(self.service.served[PAIR].name).name


def test_the_time_of_the_day_comes_once_a_day() -> None:
    assert parse_time("03:00") == time(3) and parse_time("23:59") == time(23, 59)
    for wrong in ("24:00", "3", "03:60", "at night", "03:00:00"):
        with pytest.raises(UserError, match=r"--adapt-at .*: expected a time of the day such as 03:00"):
            parse_time(wrong)
    assert next_time(time(3), BEGIN) == datetime(2026, 3, 28, 3)
    assert next_time(time(3), datetime(2026, 3, 28, 2, 59, 59)) == datetime(2026, 3, 28, 3)
    assert next_time(time(3), datetime(2026, 3, 28, 3)) == datetime(2026, 3, 29, 3)


def test_a_better_run_takes_the_place_of_the_old_one_and_is_adapted_next(tmp_path: Path) -> None:
    night = Night(tmp_path, [0, 0], [True, True])
    night.pass_by()
    first, second = "en-de-adapted-20260328", "en-de-adapted-20260329"
    assert night.asked == [("en-de", first), (first, second)]
    assert night.serving == "en-de-adapted-20260329"


def test_what_is_not_better_changes_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    night = Night(tmp_path, [1], [True])
    before = night.service.batchers[PAIR]
    night.pass_by()
    assert night.serving == "en-de" and night.service.batchers[PAIR] is before
    assert "en→de stays as it was (exit status 1" in caplog.text and "text 2026" not in caplog.text


def test_without_new_corrections_nothing_is_learnt(tmp_path: Path) -> None:
    night = Night(tmp_path, [1], [False, True, False, False])
    night.pass_by()
    assert night.asked == [("en-de", "en-de-adapted-20260329")]


def test_a_night_that_fails_is_not_the_last_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    night = Night(tmp_path, [0, 0], [True, True])
    opened = iter([UserError("cannot be opened"), None])

    def open_run(run: Path, real: Callable[[Path], Served] = night.open_run) -> Served:
        if (error := next(opened)) is not None:
            raise error
        return real(run)

    night.nightly.open_run = open_run
    night.pass_by()
    assert "adapt: cannot be opened" in caplog.text
    assert night.serving == "en-de-adapted-20260329"


def test_names_are_never_taken_twice(tmp_path: Path) -> None:
    night = Night(tmp_path, [0], [True])
    (night.run.parent / "en-de-adapted-20260328").mkdir()
    night.pass_by()
    assert night.asked == [("en-de", "en-de-adapted-20260328-2")]


def test_requests_in_work_finish_with_the_old_model(tmp_path: Path) -> None:
    service = Night(tmp_path, [], []).service
    old = service.served[PAIR].translator
    assert isinstance(old, Shouter)

    async def ask() -> tuple[str, str]:
        old.go_on.clear()
        first = asyncio.create_task(service.translate(["a word"], PAIR))
        batcher = service.batchers[PAIR]
        while not batcher._workers:
            await asyncio.sleep(0)
        service.exchange(replace(service.served[PAIR], translator=Shouter(mark="!")))
        second = await service.translate(["a word"], PAIR)
        old.go_on.set()
        answer = (await first)[0].text
        with pytest.raises(RuntimeError, match="shutdown"):  # its threads have gone
            await batcher.in_turn(lambda *_: None, "x", None)
        return answer, second[0].text

    first, second = asyncio.run(ask())
    assert first == "A WORD" and second.startswith("A WORD") and "!" in second


def test_it_needs_corrections_and_runs(tmp_path: Path) -> None:
    night = Night(tmp_path, [], [])
    assert callable(nightly_of(night.service, time(3), night.open_run))
    exported = Service([Served(PAIR, Shouter(), name="exports/en-de")], corrections=night.corrections)
    with pytest.raises(UserError, match="exports/en-de is an export, which cannot learn"):
        nightly_of(exported, time(3), night.open_run)
    night.service.corrections = None
    with pytest.raises(UserError, match=r"--adapt-at: .* give --corrections too"):
        nightly_of(night.service, time(3), night.open_run)


def test_it_runs_beside_the_service_and_ends_with_it(tmp_path: Path) -> None:
    told: list[str] = []

    async def beside() -> None:
        try:
            told.append("begun")
            await asyncio.Event().wait()
        finally:
            told.append("ended")

    with client_of(Night(tmp_path, [], []).service, Options(beside=beside)) as client:
        assert client.get("/api/v1/health").status_code == 200
    assert told == ["begun", "ended"]


def test_the_process_is_adapt_and_its_output_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[Any] = []

    class Process:
        def __init__(self, command: list[str], **named: Any) -> None:
            commands.append(command)
            named["stdout"].write(b"better: quoted\n")

        def wait(self) -> int:
            return 0

        def poll(self) -> int:
            return 0

    monkeypatch.setattr("dragoman.serve.nightly.subprocess.Popen", Process)
    adaptation = Adaptation()
    assert adaptation(tmp_path / "run", tmp_path / "c.tmx", tmp_path / "new") == 0
    run, memory, out = (str(tmp_path / name) for name in ("run", "c.tmx", "new"))
    assert commands == [[sys.executable, "-m", "dragoman", "adapt", run, memory, "--out", out]]
    assert (tmp_path / "new.log").read_text("utf-8") == "better: quoted\n"
    adaptation.end()
    assert adaptation(tmp_path / "run", tmp_path / "c.tmx", tmp_path / "later") == 1 and len(commands) == 1


def test_a_memory_that_breaks_off_is_told_and_the_server_goes_on(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.tsv", tmp_path / "bad.po"
    good.write_text("a cat\teine Katze\n", "utf-8")
    header = 'msgid ""\nmsgstr "Language: de\\n"\n\n'
    bad.write_text(
        f'{header}msgid "a dog"\nmsgstr "ein Hund"\n\nmsgid no quotes\n\nmsgid "a cow"\nmsgstr "eine Kuh"\n',
        "utf-8",
    )
    told: list[str] = []
    memory = open_memories([bad, good], [PAIR], told.append)[PAIR]
    assert memory.exact("a dog") == "ein Hund" and memory.exact("a cat") == "eine Katze"
    assert memory.exact("a cow") is None
    assert len(told) == 1 and told[0].startswith(f"--memory {bad}:7: ")
    assert told[0].endswith("the 1 pairs before that are used, the rest is not")

"""Once a day the server trains on the corrections with `dragoman adapt`, in a separate process. If the new
run is better, it replaces the old one.

    it is time ─▶ new corrections? ─▶ adapt, in another process ─ exit 0 ─▶ open the new run ─▶ exchange
                      └ no: wait                                └ else: nothing changes

`adapt` compares both runs on held-out corrections and on the validation set of the old one; its exit status
says whether the new one is better. Requests in progress finish with the old model.
"""

import asyncio
import itertools
import logging
import re
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

from dragoman.errors import UserError
from dragoman.files import open_to_append
from dragoman.serve.corrections import Corrections
from dragoman.serve.languages import LanguageCodes
from dragoman.serve.service import Served, Service

_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_LONGEST_SLEEP_S = 600.0
"""Longest sleep in seconds. The clock may be set or the machine may sleep, so the time is checked
repeatedly."""
_log = logging.getLogger("dragoman")


def parse_time(text: str) -> time:
    found = _TIME.fullmatch(text)
    if found is None:
        raise UserError(f"--adapt-at {text}: expected a time of the day such as 03:00")
    return time(int(found[1]), int(found[2]))


def next_time(at: time, now: datetime) -> datetime:
    """The next time after `now` with this time of day."""
    today = now.replace(hour=at.hour, minute=at.minute, second=0, microsecond=0)
    return today if today > now else today + timedelta(days=1)


class Adaptation:
    """The `adapt` process, which can be terminated. Its output goes to a file beside the new run, because it
    quotes corrections and the server log must not contain texts."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._ended = threading.Event()

    def __call__(self, run: Path, corrections: Path, out: Path) -> int:
        command = [sys.executable, "-m", "dragoman", "adapt", str(run), str(corrections), "--out", str(out)]
        with open_to_append(out.with_name(f"{out.name}.log")) as said:
            if self._ended.is_set():
                return 1
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )
            return self._process.wait()

    def end(self) -> None:
        self._ended.set()
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()


@dataclass
class Nightly:
    """Runs `adapt` once a day. `now` returns the local time and `sleep` waits; `adapt` blocks and returns an
    exit status; `open_run` opens a run for the service."""

    service: Service
    corrections: Corrections
    at: time
    open_run: Callable[[Path], Served]
    adapt: Callable[[Path, Path, Path], int]
    now: Callable[[], datetime] = datetime.now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        self._learnt: dict[LanguageCodes, datetime] = {}

    async def run(self) -> None:
        """Run forever. An error in one night is logged, and the next night is tried again."""
        due = next_time(self.at, self.now())
        while True:
            while (left := (due - self.now()).total_seconds()) > 0:
                await self.sleep(min(left, _LONGEST_SLEEP_S))
            for pair in list(self.service.served):
                try:
                    await self.learn(pair)
                except (UserError, OSError) as error:
                    _log.warning("adapt: %s", error)
            due = next_time(self.at, self.now())

    async def learn(self, pair: LanguageCodes) -> bool:
        """Adapt the model of a language pair. Returns whether a new run has replaced the old one."""
        newest = max(
            (unit.when for unit in self.corrections if (unit.src_lang, unit.tgt_lang) == pair), default=None
        )
        if newest is None or newest <= self._learnt.get(pair, datetime.min.replace(tzinfo=UTC)):
            return False
        old = Path(self.service.served[pair].name)
        out = _free(old, self.now())
        name = "→".join(pair)
        _log.info("adapt: %s learns from the corrections into %s", name, out)
        status = await asyncio.to_thread(self.adapt, old, self.corrections.file, out)
        self._learnt[pair] = newest
        if status:
            _log.info("adapt: %s stays as it was (exit status %d; see %s.log)", name, status, out)
            return False
        self.service.exchange(await asyncio.to_thread(self.open_run, out))
        _log.info("adapt: %s is answered by %s from now on", name, out)
        return True


def _free(old: Path, now: datetime) -> Path:
    """An unused path beside the run, with the date in its name."""
    stem = re.sub(r"-adapted-\d{8}(-\d+)?$", "", old.name)
    first = old.with_name(f"{stem}-adapted-{now:%Y%m%d}")
    others = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], others) if not path.exists())


def nightly_of(
    service: Service, at: time, open_run: Callable[[Path], Served]
) -> Callable[[], Coroutine[Any, Any, None]]:
    """The background task of the server. Cancelling it also ends the running process."""
    corrections = service.corrections
    if corrections is None:
        raise UserError("--adapt-at: there is nothing to learn from; give --corrections too")
    for one in service.served.values():
        if not one.insists:  # runs handle glossaries themselves
            raise UserError(f"--adapt-at: {one.name} is an export, which cannot learn; serve the run itself")

    async def beside() -> None:
        adaptation = Adaptation()
        try:
            await Nightly(service, corrections, at, open_run, adaptation).run()
        finally:
            adaptation.end()

    return beside

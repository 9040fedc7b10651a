"""Rate-limited log lines for events that may happen thousands of times a second."""

import asyncio
import logging

log = logging.getLogger("dragoman.serve")


class Seldom:
    """Counts events, and logs one line per interval with their number."""

    def __init__(self, message: str, every_s: float, level: int = logging.WARNING) -> None:
        self._message, self._every_s, self._level = message, every_s, level
        self._count = 0

    def note(self) -> None:
        if not self._count:
            asyncio.get_running_loop().call_later(self._every_s, self._write)
        self._count += 1

    def _write(self) -> None:
        log.log(self._level, self._message, self._count)
        self._count = 0

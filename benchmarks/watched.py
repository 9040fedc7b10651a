"""The processes below one: their CPU seconds and memory, looked at four times a second."""

import os
import threading
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Watch:
    def __init__(self, root: int) -> None:
        self._root = root
        self._seconds: dict[int, float] = {}
        self._memory: dict[int, float] = {}
        self._names: dict[int, str] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look_until_ended, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def cpu(self) -> float:
        """Seconds of all processes, up to when each was last seen."""
        return sum(self._seconds.values())

    def memory(self, name: str) -> float:
        """The most that one process with this in its command line has had at a time, in MiB."""
        return max((self._memory[pid] for pid, own in self._names.items() if name in own), default=0.0)

    def _look_until_ended(self) -> None:
        while not self._ended.wait(0.25):
            found: dict[int, list[str]] = {}
            for entry in Path("/proc").iterdir():
                if entry.name.isdigit():
                    try:
                        found[int(entry.name)] = (entry / "stat").read_text().rpartition(")")[2].split()
                    except OSError:
                        continue
            for pid in _below(self._root, {pid: int(fields[1]) for pid, fields in found.items()}):
                self._note(pid, found[pid])

    def _note(self, pid: int, fields: list[str]) -> None:
        self._seconds[pid] = (int(fields[11]) + int(fields[12])) / _TICKS
        memory = int(fields[21]) * _PAGE / 2**20
        self._memory[pid] = max(self._memory.get(pid, 0.0), memory)
        try:
            name = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return
        if name.strip() and not self._names.get(pid, "").startswith("ray::RayWorker"):
            self._names[pid] = name


def _below(root: int, parents: dict[int, int]) -> set[int]:
    found = {root} & parents.keys()
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found

"""What all parts share: how a case ended, and limits that a process sets itself."""

import resource
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Found:
    """How a case ended: refused, harmless, silent, traceback or hang; and whether something was left."""

    part: str
    kind: str
    number: int
    outcome: str
    left: bool
    what: str
    said: str = ""

    @property
    def bad(self) -> bool:
        return self.outcome not in ("refused", "harmless") or self.left


def limit_memory(more: int) -> None:
    """So many bytes of address space beyond what this process has now."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))

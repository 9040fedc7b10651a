"""Limits that a process sets itself before it reads what may be hostile."""

import resource
from pathlib import Path


def limit_memory(more: int) -> None:
    """So many bytes of address space beyond what the process has now."""
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))

"""A child of this process that may take only so much more memory than it begins with."""

import json
import os
import resource
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LONGEST = 600
"""Seconds after which a child that goes on for ever is ended."""


def within(megabytes: int, act: Callable[[], Any]) -> Any:
    """What `act` returns, as JSON holds it, in a child that has so much address space beyond what it has."""
    source, target = os.pipe()
    child = os.fork()
    if not child:
        _answer(target, megabytes, act)
    os.close(target)
    with os.fdopen(source) as answers:
        answer = answers.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, f"it ended with {os.waitstatus_to_exitcode(status)}: {answer[-3000:]}"
    return json.loads(answer)


def _answer(target: int, megabytes: int, act: Callable[[], Any]) -> None:
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_LONGEST)
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        answer = json.dumps(act())
        status = 0
    except BaseException:
        answer = traceback.format_exc()
    with os.fdopen(target, "w") as answers:
        answers.write(answer)
    os._exit(status)

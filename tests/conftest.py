"""Every tensor shape that a signature names is checked while its own tests run; `src/` itself checks none.

A check costs more than a small product, so the tests of what is built upon it (training, commands, service)
go without: they would take twice the time, and call nothing that is not called where it is checked.
"""

import gc
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Self, get_args, runtime_checkable
from zlib import crc32

import pytest
from beartype import BeartypeConf, beartype
from jaxtyping import config as shape_checks

from shapes_on_demand import install, switch

# Tests have the same terminal everywhere: none, 80 columns wide, without colours. All else of a machine stays
# what it is (language, time zone, umask, HOME, TMPDIR, limits, ignored signals): nothing may depend on it.
TERMINAL = "LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE PY_COLORS GITHUB_ACTIONS"
for variable in TERMINAL.split():
    os.environ.pop(variable, None)
os.environ |= {"COLUMNS": "80", "TERM": "xterm"}

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # tests import ONNX Runtime before the package does

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command does: a busy machine is no reason to be slow

# Small tensors only wait for each other in several threads; the test run itself uses all cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

CHECKED = [
    "dragoman.nn",
    "dragoman.models",
    "dragoman.learning",
    "dragoman.decode",
    "dragoman.data.batch",
    "dragoman.data.packed",
]
CHECKED_IN = {
    "nn": 1,
    "models": 1,
    "data": 1,
    "structure": 1,
    "learning": 1,
    "battery": 8,
    "decode": 24,
}
"""Which tests check shapes: of each folder every, or every so many-th."""


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """beartype, helped over two hints that it cannot check: Self outside a class, and plain protocols."""
    for name, hint in list(getattr(function, "__annotations__", {}).items()):
        if hint is Self:
            function.__annotations__[name] = Any
        _make_protocols_checkable(hint)
    return beartype(conf=BeartypeConf(is_pep484_tower=True))(function)  # an int passes for a float


def _make_protocols_checkable(hint: object) -> None:
    if getattr(hint, "_is_protocol", False):
        runtime_checkable(hint)  # type: ignore[type-var]
    for part in get_args(hint):
        _make_protocols_checkable(part)


too_early = [name for name in sys.modules if name.startswith(tuple(CHECKED))]
assert not too_early, f"imported before their shapes could be checked: {', '.join(too_early)}"
# jaxtyping takes the checker by a name that can be imported.
shape_checker = ModuleType("dragoman_shape_checker")
shape_checker.check = check  # type: ignore[attr-defined]
sys.modules[shape_checker.__name__] = shape_checker
install(CHECKED, "dragoman_shape_checker.check")


ESTIMATES = {"test_estimate.py", "test_plan_rows.py"}
"""The tests of estimates: with as many updates as the package tries."""
TRIED: dict[str, int] = {}

LONGEST = (
    *(
        "kernels/test_kernels.py",
        "training/test_distributed.py",
        "data/test_cache.py",
        "docs/test_tutorials.py",
    ),
    *("training/test_contest.py", "structure/test_wheel.py", "structure/test_faults.py"),
    *("durable/test_kills.py", "durable/test_faults.py", "learn/test_copy_and_reverse.py"),
    *("battery/test_runs.py", "studio/test_read.py", "studio/test_browser.py", "serve/test_crowd.py"),
)
"""Files that take longest, which are begun first."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", default="1/1", help="run a part of the tests: 2/3 is the second third")
    parser.addoption("--whole", default="", help="of these folders and files of tests/, with commas, run all")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The longest files first, then those with most tests: none is left for one worker at the end."""
    number, parts = map(int, config.getoption("--share").split("/"))
    whole = tuple(f"tests/{place}" for place in config.getoption("--whole").split(",") if place)
    items[:] = [
        item
        for item in items
        if crc32(item.nodeid.encode()) % parts == number - 1 or item.nodeid.startswith(whole)
    ]
    sizes = Counter(item.path for item in items)
    tests = Path(__file__).parent
    order = {tests / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: (order.get(item.path, len(order)), -sizes[item.path]))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Always the same tests: of the folders with very many, one in eight."""
    place = item.path.relative_to(Path(__file__).parent).parts[0]
    share = CHECKED_IN.get(place, 0)
    on = bool(share) and crc32(item.nodeid.encode()) % share == 0 and not item.get_closest_marker("slow")
    shape_checks.update("jaxtyping_disable", not on)
    switch(on)
    time_few_updates(item)


def time_few_updates(item: pytest.Item) -> None:
    """Every run begins with an estimate, for which updates are tried. Two will do where nobody reads it."""
    if estimate := sys.modules.get("dragoman.training.estimate"):
        tried = TRIED.setdefault("cpu", estimate._UPDATES["cpu"])
        estimate._UPDATES["cpu"] = tried if item.path.name in ESTIMATES else 2


_OPEN_FILES = Path("/proc/self/fd")
_MORE_FILES = 60
_files_left = 40
"""Files that were open after the last collection."""


def _open_files() -> int:
    try:
        return len([*_OPEN_FILES.iterdir()])
    except FileNotFoundError:  # not on Linux
        return 0
    except OSError:  # not one more file may be opened
        return sys.maxsize


def pytest_runtest_logfinish() -> None:
    """Exceptions that tests have caught hold mapped files until the collector runs, which is seldom in a
    process this large. Where only 256 files may be open, they would not last."""
    global _files_left
    if _open_files() > _files_left + _MORE_FILES:
        gc.collect()
        _files_left = min(_open_files(), 2 * _MORE_FILES)

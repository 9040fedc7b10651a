"""Which tests execute which line: a pytest plugin that records it, and the map read back.

    python benchmarks/mutations.py map tests/nn tests/models

One recording for each name. The map is a cache: it is kept outside the repository, and a stale one costs
faults that are called untested, never wrong ones.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

import pytest

from mutation_marks import MAPPED, Marks, beginnings

SETUP = "|setup"
"""Marks the context of a fixture: it may serve tests other than the one that it is set up for."""


class Recorder:
    """The plugin: a context for every test, and for its fixtures; how long each test takes."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder = folder
        self.marks = Marks(folder, source)
        self.marks.put_in()
        self.executed: dict[str, dict[str, str]] = {}
        self.seconds: dict[str, float] = defaultdict(float)
        self.written = monotonic()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        yield from self._recorded(item, SETUP)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        yield from self._recorded(item, "")

    def _recorded(self, item: pytest.Item, phase: str) -> Iterator[None]:
        self.marks.take()
        begin = _cpu_seconds()
        try:
            return (yield)
        finally:
            self.executed[item.nodeid + phase] = self.marks.take()
            self.seconds[item.nodeid] += _cpu_seconds() - begin

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.seconds[report.nodeid] = float("inf")  # says nothing about a fault: it fails without one

    def pytest_runtest_logfinish(self) -> None:
        if monotonic() > self.written + 20:
            self.pytest_sessionfinish()  # a recording that is broken off has what it had

    def pytest_sessionfinish(self) -> None:
        (self.folder / "lines.json").write_text(json.dumps(self.executed))
        (self.folder / "seconds.json").write_text(json.dumps(self.seconds))
        self.written = monotonic()


def _cpu_seconds() -> float:
    """Of this process and those that it has waited for: not the time of the clock, which a busy machine
    stretches."""
    return sum(os.times()[:4])


@dataclass
class CoverageMap:
    """For every file (relative to the package) the tests that execute something of it, with a number of which
    each line has a bit; each test's seconds."""

    source: Path
    executed: dict[str, dict[str, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def tests_of(self, file: str, lines: range) -> set[str]:
        wanted = sum(1 << line for line in beginnings(self.source / file, lines))
        return {test for test, bits in self.executed.get(file, {}).items() if bits & wanted}

    def tests_of_file(self, file: str) -> set[str]:
        return set(self.executed.get(file, {}))


def record_here(cache: Path, tests: str, repository: Path, source: Path) -> int:
    """Run these tests (paths, or names of tests, with commas between) in this process, recorded."""
    folder = cache / "maps" / re.sub(r"\W+", "-", tests)[:100].strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    os.chdir(repository)
    site = str(repository / "benchmarks" / "mutation_site")
    os.environ["PYTHONPATH"] = os.pathsep.join([site, str(folder), str(source.parent)])
    (folder / MAPPED).write_text(json.dumps(str(source)))
    return int(
        pytest.main([*tests.split(","), "-n0", "-p", "no:cacheprovider"], plugins=[Recorder(folder, source)])
    )


def read_maps(cache: Path, source: Path) -> CoverageMap:
    """All recordings together; of a test that was recorded twice the later one. Tests that fail without any
    fault are left out."""
    times = {file.parent: file.stat().st_mtime for file in (cache / "maps").glob("*/seconds.json")}
    joint = CoverageMap(source)
    for folder in sorted(times, key=lambda folder: -times[folder]):
        seconds = json.loads((folder / "seconds.json").read_text())
        new = {
            test: took for test, took in seconds.items() if took != float("inf") and test not in joint.seconds
        }
        _take_in(joint, folder, new)
        joint.seconds |= new
    return joint


def _take_in(joint: CoverageMap, folder: Path, tests: Collection[str]) -> None:
    by_file: dict[str, set[str]] = defaultdict(set)
    for test in tests:
        by_file[test.partition("::")[0]].add(test)
    for context, files in json.loads((folder / "lines.json").read_text()).items():
        name = context.removesuffix(SETUP)
        if name not in tests:
            continue
        found = by_file[name.partition("::")[0]] if context.endswith(SETUP) else {name}
        for file, bits in files.items():
            executed = joint.executed.setdefault(file, {})
            for test in found:
                executed[test] = executed.get(test, 0) | int(bits, 16)

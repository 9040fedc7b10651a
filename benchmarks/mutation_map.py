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
from itertools import chain
from pathlib import Path
from time import process_time

import pytest

from mutation_marks import MAPPED, Marks, heads

SETUP = "|setup"
"""Marks the context of a fixture: it may serve tests other than the one that it is set up for."""


class Recorder:
    """The plugin: a context for every test, and for its fixtures; how long each test takes."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder = folder
        self.marks = Marks(folder, source)
        self.marks.put_in()
        self.executed: dict[str, dict[str, list[int]]] = {}
        self.seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        yield from self._recorded(item, SETUP)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        yield from self._recorded(item, "")

    def _recorded(self, item: pytest.Item, phase: str) -> Iterator[None]:
        self.marks.take()
        begin = process_time()
        try:
            return (yield)
        finally:
            self.executed[item.nodeid + phase] = self.marks.take()
            self.seconds[item.nodeid] += process_time() - begin

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.seconds[report.nodeid] = max(self.seconds[report.nodeid], report.duration)
        if report.failed:
            self.seconds[report.nodeid] = float("inf")  # says nothing about a fault: it fails without one

    def pytest_runtest_logfinish(self) -> None:
        if len(self.seconds) % 200 == 0:
            self.pytest_sessionfinish()  # a recording that is broken off has what it had

    def pytest_sessionfinish(self) -> None:
        (self.folder / "lines.json").write_text(json.dumps(self.executed))
        (self.folder / "seconds.json").write_text(json.dumps(self.seconds))


@dataclass
class CoverageMap:
    """For every file (relative to the package) and line the tests that execute it; each test's seconds."""

    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def tests_of(self, file: str, lines: range) -> set[str]:
        found = self.lines.get(file, {})
        return set().union(*(found.get(line, ()) for line in lines))

    def tests_of_file(self, file: str) -> set[str]:
        return set().union(*self.lines.get(file, {}).values())


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
    joint = CoverageMap()
    for folder in sorted(times, key=lambda folder: -times[folder]):
        seconds = json.loads((folder / "seconds.json").read_text())
        new = {
            test: took for test, took in seconds.items() if took != float("inf") and test not in joint.seconds
        }
        _take_in(joint, folder, source, new)
        joint.seconds |= new
    return joint


def _take_in(joint: CoverageMap, folder: Path, source: Path, tests: Collection[str]) -> None:
    by_file: dict[str, set[str]] = defaultdict(set)
    for test in tests:
        by_file[test.partition("::")[0]].add(test)
    spans: dict[str, dict[int, range]] = {}
    for context, files in json.loads((folder / "lines.json").read_text()).items():
        name = context.removesuffix(SETUP)
        if name not in tests:
            continue
        found = by_file[name.partition("::")[0]] if context.endswith(SETUP) else {name}
        for file, executed in files.items():
            if file not in spans:
                spans[file] = heads(source / file) if (source / file).exists() else {}
            lines = joint.lines.setdefault(file, {})
            for line in chain.from_iterable(spans[file].get(line, (line,)) for line in executed):
                lines.setdefault(line, set()).update(found)

"""Which tests execute which line: a pytest plugin that records it with `coverage`, and the map read back.

    COVERAGE=$(mktemp -d); pip install --target $COVERAGE coverage
    PYTHONPATH=$COVERAGE python benchmarks/mutations.py map nn

One recording a room. What a test starts as a process of its own is recorded too. The map is a cache: it is
kept outside the repository, and a stale one costs faults that are called untested, never wrong ones.
"""

import json
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from uuid import uuid4

import pytest

SETUP = "|setup"
"""Marks the context of a fixture: it may serve tests other than the one that it is set up for."""
CONTEXT_VARIABLE = "MUTATION_MAP_CONTEXT"


class Lines:
    """Executed lines by context. Kept in memory until `save`: tests fork, and forks would share a file."""

    def __init__(self, folder: Path, source: Path, context: str | None = None) -> None:
        from coverage import Coverage  # type: ignore[import-not-found]  # needed here alone: no dependency

        self.folder, self.source = folder, source
        self.coverage = Coverage(
            data_file=None, source=[str(source)], context=context, config_file=False, messages=False
        )
        self.coverage.set_option("run:disable_warnings", ["no-data-collected", "module-not-imported"])
        self.coverage.start()

    def switch(self, context: str) -> None:
        self.coverage.switch_context(context)

    def save(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        found: dict[str, dict[str, list[int]]] = {}
        for file in data.measured_files():
            contexts = found.setdefault(str(Path(file).relative_to(self.source)), {})
            for line, names in data.contexts_by_lineno(file).items():
                for name in names:
                    contexts.setdefault(name, []).append(line)
        (self.folder / f"lines-{os.getpid()}-{uuid4().hex}.json").write_text(json.dumps(found))


class Recorder:
    """The plugin: a context for every test, and for its fixtures; how long each test takes."""

    def __init__(self, cache: Path, source: Path) -> None:
        self.cache = cache
        self.lines = Lines(cache, source)
        self.seconds: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        yield from self._recorded(item, SETUP)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        yield from self._recorded(item, "")

    def _recorded(self, item: pytest.Item, phase: str) -> Iterator[None]:
        self.lines.switch(item.nodeid + phase)
        os.environ[CONTEXT_VARIABLE] = item.nodeid + phase
        begin = process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] += process_time() - begin

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.seconds[report.nodeid] = max(self.seconds[report.nodeid], report.duration)
            if report.failed:
                self.seconds[report.nodeid] = float("inf")  # says nothing about a fault: it fails without one

    def pytest_sessionfinish(self) -> None:
        self.lines.save()
        (self.cache / "seconds.json").write_text(json.dumps(self.seconds))


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
    for old in folder.iterdir():
        old.unlink()
    os.chdir(repository)
    site = str(repository / "benchmarks" / "mutation_site")
    os.environ["PYTHONPATH"] = os.pathsep.join([site, *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.update({"MUTATION_MAP_CACHE": str(folder), "MUTATION_MAP_SOURCE": str(source)})
    return int(
        pytest.main([*tests.split(","), "-n0", "-p", "no:cacheprovider"], plugins=[Recorder(folder, source)])
    )


def read_maps(cache: Path) -> CoverageMap:
    """All recordings together; of a test that was recorded twice the later one. Tests that fail without any
    fault are left out."""
    times = {file.parent: file.stat().st_mtime for file in (cache / "maps").glob("*/seconds.json")}
    joint = CoverageMap()
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
    for part in folder.glob("lines-*.json"):
        for file, contexts in json.loads(part.read_text()).items():
            lines = joint.lines.setdefault(file, {})
            for context, executed in contexts.items():
                name = context.removesuffix(SETUP)
                if name in tests:
                    found = by_file[name.partition("::")[0]] if context.endswith(SETUP) else {name}
                    for line in executed:
                        lines.setdefault(line, set()).update(found)

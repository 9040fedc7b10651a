"""A child process for every fault: it has torch and pytest already, and imports `dragoman` with the fault."""

import json
import os
import re
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from mutation_faults import Fault
from mutation_import import FAULT, NotReplaced, put_in, replace_function
from mutation_map import CoverageMap

PRELOADED = (
    "numpy",
    "torch",
    "yaml",
    "rich.console",
    "sacrebleu",
    "safetensors.torch",
    "tokenizers",
    "typer",
)
PRELOADED += ("beartype", "jaxtyping", "hypothesis", "fastapi.testclient", "uvicorn", "xml.etree.ElementTree")
FIRST_TESTS, FIRST_SECONDS = 40, 4.0
"""The first attempt; what survives it meets all the tests that its seconds allow."""
MEMORY = 12 << 30
NOT_REPLACED = 71
"""The status of a child that could not change its function."""
SLACK_S = 12
"""For imports and a busy machine."""


def in_child(action: Callable[[], int], seconds: float, log: Path | None = None) -> int:
    """The status of `action` in a forked process: negative where a signal ended it, -9 past the limit."""
    child = os.fork()
    if child == 0:
        status = 70
        try:
            os.setsid()
            if log is not None:
                with log.open("w") as file:
                    os.dup2(file.fileno(), 1)
                    os.dup2(file.fileno(), 2)
            status = action()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _end_group(child)
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    _end_group(child)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def _end_group(leader: int) -> None:
    """What the child has started, too."""
    with suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


class Only:
    """A pytest plugin: these tests in this order."""

    def __init__(self, tests: list[str]) -> None:
        self.places = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item], config: pytest.Config) -> None:
        others = [item for item in items if item.nodeid not in self.places]
        items[:] = sorted(
            (item for item in items if item.nodeid in self.places), key=lambda item: self.places[item.nodeid]
        )
        config.hook.pytest_deselected(items=others)


class Loop:
    """A pytest plugin: instead of the collected tests once, some of them in a fork for every fault."""

    def __init__(self, each: Callable[["Attempt"], None]) -> None:
        self.each = each

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Interrupted("a file of tests cannot be imported")
        items = {item.nodeid: item for item in session.items}

        def run(tests: list[str]) -> int:
            chosen = [items[test] for test in tests if test in items]
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
                    print("\nFAILED", item.nodeid)
                    return 1
            return 0

        self.each(run)
        return True


Attempt = Callable[[list[str]], int]
"""Runs tests in this process up to the first that fails: 0 where none does."""


class Runner:
    def __init__(
        self, cache: Path, repository: Path, package: Path, known: CoverageMap, seconds: float, control: bool
    ) -> None:
        self.package = package
        self.scratch = cache / f"scratch-{os.getpid()}"
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.known, self.seconds, self.control = known, seconds, control
        os.environ["GOMP_SPINCOUNT"] = "1000"
        site = repository / "benchmarks" / "mutation_site"
        paths = (site, self.scratch, package.parent)  # what processes of tests get at least
        os.environ["PYTHONPATH"] = os.pathsep.join(map(str, paths))
        os.chdir(repository)
        for name in PRELOADED:
            with suppress(ImportError):
                import_module(name)
        assert not any(name.startswith("dragoman") for name in sys.modules)

    def collected(self, tests: list[str], each: Callable[[Attempt], None]) -> int:
        """Collect these files and call `each` with a way to run tests of them, all in a child."""
        options = ["-n0", "-s", "-p", "no:cacheprovider", f"--basetemp={self.scratch / 'base'}"]
        return in_child(lambda: int(pytest.main([*tests, *options], plugins=[Loop(each)])), seconds=36_000)

    def outcome(self, fault: Fault, attempt: Attempt | None = None) -> dict[str, Any]:
        """What became of it, as a row of results. With `attempt`, by changing the function where it is."""
        text = (self.package / fault.file).read_bytes()
        text = text if self.control else fault.applied(text)
        began = time.monotonic()
        tests, parts = self.tests_for(fault), self.parts_for(fault)
        outcome, by = "survived", "no test executes it"
        for part in parts:
            if part and outcome == "survived":
                outcome, by = self._run(fault, text, part, attempt)
        return {
            "key": fault.key,
            "file": fault.file,
            "place": fault.place,
            "operator": fault.operator,
            "line": fault.line,
            "change": fault.change,
            "outcome": outcome,
            "by": by or f"{sum(map(len, parts))} of {len(tests)} tests",
            "seconds": round(time.monotonic() - began, 1),
        }

    def _run(self, fault: Fault, text: bytes, tests: list[str], attempt: Attempt | None) -> tuple[str, str]:
        log, faulty = self.scratch / "log.txt", self.scratch / "faulty.py"
        faulty.write_bytes(text)
        (self.scratch / FAULT).write_text(
            json.dumps({"file": str(self.package / fault.file), "text": str(faulty)})
        )
        file = self.package / fault.file
        expected = sum(self.known.seconds[test] for test in tests)

        def action() -> int:
            limit = int(SLACK_S + 2 * expected)
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            put_in(file, text)
            if attempt is None:
                return self._import_and_run(tests)
            try:
                replace_function(file, text, fault.owner or "")
            except NotReplaced:
                return NOT_REPLACED
            return attempt(tests)

        status = in_child(action, 15 * SLACK_S + 20 * expected, log)  # of the clock: a machine may be busy
        shutil.rmtree(self.scratch / "base", ignore_errors=True)
        if status == NOT_REPLACED:
            raise NotReplaced(fault.owner)
        if status in (0, 5):
            return "survived", ""
        return "found", _found_by(log.read_text(errors="replace")) if status > 0 else f"signal {-status}"

    def _import_and_run(self, tests: list[str]) -> int:
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        options = ["-x", "-n0", "-p", "no:cacheprovider", "--tb=short", f"--basetemp={self.scratch / 'base'}"]
        return int(pytest.main([*files, *options], plugins=[Only(tests)]))

    def parts_for(self, fault: Fault) -> tuple[list[str], list[str]]:
        """The tests of the first attempt, and those of the second."""
        tests = self.tests_for(fault)
        first = self._within(tests[:FIRST_TESTS], FIRST_SECONDS)
        return first, self._within([test for test in tests if test not in set(first)], self.seconds)

    def tests_for(self, fault: Fault) -> list[str]:
        """Those that execute it: those named like its file first, few of each function, quick ones first."""
        found = self._executing(fault)
        stem = fault.file.rpartition("/")[2].removesuffix(".py").strip("_")
        turns: Counter[str] = Counter()
        ranks: dict[str, tuple[int, bool, bool, float]] = {}
        for test in sorted(found, key=lambda test: (self.known.seconds[test], test)):
            function = test.partition("[")[0]
            turns[function] += 1
            name = test.partition("::")[0]
            ranks[test] = (
                turns[function] // 4,
                stem not in name,
                not name.startswith(f"tests/{fault.room}/"),
                self.known.seconds[test],
            )
        return sorted(ranks, key=lambda test: ranks[test])

    def _executing(self, fault: Fault) -> set[str]:
        if fault.owner is not None:
            return self.known.tests_of(fault.file, fault.lines)
        name = re.match(r"_?[A-Z][A-Z_0-9]*\b", fault.line)
        if name and not fault.place:  # a constant: where the file names it
            text = (self.package / fault.file).read_text().splitlines()
            lines = [number for number, line in enumerate(text, 1) if re.search(rf"\b{name[0]}\b", line)]
            found = set().union(*(self.known.tests_of(fault.file, range(at, at + 1)) for at in lines))
            if found:
                return found
        found = self.known.tests_of(fault.file, fault.scope) or self.known.tests_of_file(fault.file)
        return found | self._naming(fault.place.rpartition(".")[2])

    def _naming(self, name: str) -> set[str]:
        """Tests in files that name a class: generated methods have no lines that could be recorded."""
        if not name[:1].isupper():
            return set()
        files = {test.partition("::")[0] for test in self.known.seconds}
        naming = {file for file in files if re.search(rf"\b{name}\b", Path(file).read_text(encoding="utf-8"))}
        return {test for test in self.known.seconds if test.partition("::")[0] in naming}

    def _within(self, tests: list[str], seconds: float) -> list[str]:
        """The first of them that fit into the time, file by file."""
        taken: list[str] = []
        for test in tests:
            if self.known.seconds[test] <= seconds:
                seconds -= self.known.seconds[test]
                taken.append(test)
        files = list(dict.fromkeys(test.partition("::")[0] for test in taken))
        return sorted(taken, key=lambda test: files.index(test.partition("::")[0]))


def _found_by(log: str) -> str:
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", log, re.MULTILINE)
    return failed[0] if failed else "a crash"

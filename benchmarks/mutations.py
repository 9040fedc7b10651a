"""Faults made one at a time: which of them does the suite notice?

    python benchmarks/mutations.py map tests/nn tests/models …
    python benchmarks/mutations.py run nn models … --count 50 --seed 1
    python benchmarks/mutations.py table > benchmarks/results/mutations.md

`map` records once which tests execute which line. `run` draws faults, always the same of a seed. For each one
it runs the tests that execute its line, in a fork of a process that has imported torch and collected the
tests; only there the function gets its faulty body. What an import executes (constants, defaults) is imported
with the fault by a fork that has not seen dragoman yet. No file of the repository is changed. A test that
fails, a crash and a run past its limit count as found. `table` joins the results with what was judged by
reading (mutations_judged.yaml).
"""

import argparse
import json
import os
import sys
import time
from contextlib import suppress
from itertools import chain
from pathlib import Path
from tempfile import gettempdir
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # forks of a process with several threads may wait for ever

from mutation_faults import Fault, draw, faults_of
from mutation_import import NotReplaced
from mutation_map import read_maps, record_here
from mutation_marks import ROOMS
from mutation_run import Attempt, Runner, in_child
from mutation_table import judge, read_results, table

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "src" / "dragoman"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", type=Path, default=Path(gettempdir()) / "dragoman-mutations")
    commands = parser.add_subparsers(dest="command", required=True)
    mapping = commands.add_parser("map", help="record which tests execute which line")
    mapping.add_argument(
        "tests",
        nargs="+",
        help="folders or files; one recording each, joined by commas: together",
    )
    mapping.add_argument(
        "--minutes", type=float, default=60, help="a recording may take; the rest is left out"
    )
    running = commands.add_parser("run", help="make faults and run the tests that execute their lines")
    running.add_argument("rooms", nargs="+", choices=ROOMS)
    running.add_argument("--count", type=int, default=50, help="faults a room")
    running.add_argument("--seed", type=int, default=1)
    running.add_argument("--seconds", type=float, default=120, help="of tests that a fault may cost")
    running.add_argument("--minutes", type=float, default=600, help="begin no fault after so many")
    running.add_argument(
        "--again", action="store_true", help="those once more that survived and are not judged"
    )
    running.add_argument(
        "--new-tests",
        action="store_true",
        help="as --again; what is found is counted as found by later tests",
    )
    running.add_argument("--control", action="store_true", help="the unchanged text: nothing may be found")
    telling = commands.add_parser("table", help="the results as Markdown")
    telling.add_argument("--count", type=int, default=50)
    telling.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.command == "map":
        for tests in options.tests:
            record(options.cache, tests, 60 * options.minutes)
    elif options.command == "run":
        run(options)
    else:
        rooms = [room for room in ROOMS if (options.cache / f"results-{room}-{options.seed}.jsonl").exists()]
        command = f"python benchmarks/mutations.py run {' '.join(rooms)} --count {options.count}"
        drawn = {room: draw_from(room, options) for room in rooms}
        print(table(options.cache, drawn, options.seed, f"{command} --seed {options.seed}"), end="")


def record(cache: Path, tests: str, seconds: float) -> None:
    """One recording in a process of its own: `dragoman` must not have been imported before it begins."""
    status = in_child(lambda: record_here(cache, tests, REPOSITORY, PACKAGE), seconds)
    if status != 0:
        print(
            f"{tests}: some tests fail without any fault and are left out (status {status})", file=sys.stderr
        )


def run(options: argparse.Namespace) -> None:
    """First the faults inside functions, after one collection; then those that need an import."""
    end = time.monotonic() + 60 * options.minutes
    known = read_maps(options.cache, PACKAGE)
    runner = Runner(options.cache, REPOSITORY, PACKAGE, known, options.seconds, options.control)
    rooms = [Room(options, name) for name in options.rooms]

    def run_all(attempt: Attempt | None) -> None:
        for room in rooms:
            for fault in room.wanted():
                if time.monotonic() < end and (attempt is None or fault.owner is not None):
                    with suppress(NotReplaced):
                        room.tell(fault, runner.outcome(fault, attempt))

    inside = [fault for room in rooms for fault in room.wanted() if fault.owner is not None]
    tests = chain.from_iterable(chain(*runner.parts_for(fault)) for fault in inside)
    files = sorted({test.partition("::")[0] for test in tests})
    if files and time.monotonic() < end:
        runner.collected(files, run_all)
    run_all(None)


class Room:
    """The faults that are drawn of a room, and its file of results."""

    def __init__(self, options: argparse.Namespace, name: str) -> None:
        self.drawn, self.new_tests = draw_from(name, options), options.new_tests
        kind = "control" if options.control else "results"
        self.results = options.cache / f"{kind}-{name}-{options.seed}.jsonl"
        if options.again or options.new_tests:
            rows = read_results(self.results).values()
            kept = [row for row in rows if row["outcome"] == "found" or judge(row)]
            self.results.write_text("".join(json.dumps(row) + "\n" for row in kept))

    def wanted(self) -> list[Fault]:
        before = read_results(self.results)
        return [fault for fault in self.drawn if fault.key not in before]

    def tell(self, fault: Fault, outcome: dict[str, Any]) -> None:
        with self.results.open("a") as file:
            file.write(json.dumps({**outcome, "new_tests": self.new_tests}) + "\n")
        told = f"{outcome['seconds']:.0f} s {outcome['outcome']:8} {outcome['by']}"
        print(f"{told}  {fault.file} {fault.place}: {fault.line} | {fault.change}", flush=True)


def draw_from(room: str, options: argparse.Namespace) -> list[Fault]:
    return draw(PACKAGE, faults_of(PACKAGE, room), options.count, options.seed)


if __name__ == "__main__":
    main()

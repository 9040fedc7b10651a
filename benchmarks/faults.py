"""What becomes of damaged files, killed commands, full disks, bad inputs and hostile files?

    python benchmarks/faults.py --quick                    some 60 cases; nothing is written down
    python benchmarks/faults.py --work DIR --jobs 2        10,000 damages, 300 kills … into results/faults.md
    python benchmarks/faults.py --work DIR --only kills    one part; DIR keeps what is done, and it goes on

It makes tiny runs of five families and everything that is made of them, and does the faults to copies. Every
case has a kind and a number, and the same seed makes the same case. How a case can end:

    refused     one sentence says what is wrong, and nothing else has changed
    harmless    the content is the same, or the command went on to the bytes of an undisturbed one
    silent      other content was taken without a word
    traceback   the command or the process broke
    hang        it took longer than its limit
    left        files stayed that nothing removes
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import fault_commands  # noqa: F401 (imports what the forks need)
from common import write_table
from fault_common import Found
from fault_content import KINDS
from fault_disk import run_disks
from fault_hostile import run_hostile
from fault_inputs import run_inputs
from fault_kills import run_kills
from fault_patients import further_subjects, run_damages
from fault_subjects import COMMANDS, MADE, make_subjects

PARTS = ("damage", "kills", "disk", "inputs", "hostile")
DAMAGES, KILLS, DISKS = 10_000, 300, 4
_SLOW = {"corpus half translated": 0.3, "glossaries of a server": 0.5}
"""Kinds with fewer cases than the others."""
_QUICK_SUBJECTS = ("train transformer", "export CTranslate2", "export Hugging Face", "back-translate")
_QUICK_PLACES = ("runs/t", "runs/t/data", "ct2", "hf", "tokenizer")
_QUICK_KILLS = ("prepare", "import")
OUTCOMES = ("refused", "harmless", "silent", "traceback", "hang")

NOTES = """
«refused»: one sentence says what is wrong, and nothing else has changed. «harmless»: the content is the same,
or the command went on to the bytes of an undisturbed one. «silent»: other content was taken without a word.
«left behind»: files stayed that the next command did not remove. Damages are a flipped bit, another byte, a
zeroed page, a cut or longer file, exchanged blocks and files, edited JSON, and a pipe, directory or dangling
link in place of the file. Rows of «verify» are of `dragoman verify` on every third of these damages: «silent»
is one that it missed. Kills come before a file operation, inside a write and at random moments, half of them
with all pages lost that were not forced to disk. A run's logs have no hash and are not damaged.
"""

Mine = Callable[[str, str, int], bool]


def plan(quick: bool) -> tuple[dict[str, int], dict[str, int], int, int]:
    """Cases of each kind of file, of each command, places of a disk fault, and of every how manieth input."""
    if quick:
        return (
            {kind.name: 10 for kind in KINDS if kind.place in _QUICK_PLACES},
            dict.fromkeys(_QUICK_KILLS, 1),
            0,
            300,
        )
    shares = {kind.name: _SLOW.get(kind.name, 1.0) for kind in KINDS}
    unit = DAMAGES / sum(shares.values())
    damages = {name: -(-int(share * unit) // 1) + 1 for name, share in shares.items()}
    kills = {command.name: -(-KILLS // len(COMMANDS)) for command in COMMANDS}
    return damages, kills, DISKS, 1


def cases(part: str, made: Path, work: Path, quick: bool, seed: int, mine: Mine) -> Iterator[Found]:
    damages, kills, disks, every = plan(quick)
    if part == "damage":
        return run_damages(made, work, damages, seed, mine)
    if part == "kills":
        return run_kills(made, work, kills, seed, mine)
    if part == "disk":
        return run_disks(made, work, disks, seed, mine)
    if part == "inputs":
        return run_inputs(made, work, every, seed, mine)
    return run_hostile(made, work, every, mine)


class Journal:
    """The findings so far, one a line; several processes may write to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.path.touch()

    def read(self) -> list[Found]:
        return [Found(**json.loads(line)) for line in self.path.read_text().splitlines()]

    def add(self, found: Found) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(found.__dict__) + "\n")


def run_part(part: str, made: Path, work: Path, options: argparse.Namespace, journal: Journal) -> None:
    """All cases of a part that are not done, in several processes."""
    done = {(found.part, found.kind, found.number) for found in journal.read()}
    children = []
    for job in range(options.jobs):
        child = os.fork()
        if child:
            children.append(child)
            continue
        status = 1
        try:
            own = work / f"job-{os.getpid()}"
            own.mkdir()

            def mine(part: str, kind: str, number: int, job: int = job) -> bool:
                other = options.kinds and kind not in options.kinds.split(";")
                if other or time.monotonic() > options.end:
                    return False
                turn, rest = divmod(number - options.seed, options.every)
                return not rest and turn % options.jobs == job and (part, kind, number) not in done

            for found in cases(part, made, own, options.quick, options.seed, mine):
                journal.add(found)
                if found.bad:
                    print(
                        f"{found.outcome}: {found.part}, {found.kind} {found.number}: {found.what}",
                        flush=True,
                    )
            shutil.rmtree(own)
            status = 0
        except BaseException as error:
            print(f"{part}: {error!r}", file=sys.stderr, flush=True)
            raise
        finally:
            os._exit(status)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    if any(statuses):
        raise SystemExit(f"{part}: a process of the benchmark itself has failed")


def rows_of(results: list[Found]) -> list[list[str]]:
    kinds = list(dict.fromkeys((found.part, found.kind) for found in sorted(results, key=_order)))
    rows = []
    for part, kind in kinds:
        own = [found for found in results if (found.part, found.kind) == (part, kind)]
        counts = Counter(found.outcome for found in own)
        left = sum(found.left for found in own)
        numbers = [len(own), *(counts[outcome] for outcome in OUTCOMES), left]
        rows.append([part, kind, *(f"{number:,}" for number in numbers)])
    totals = Counter(found.outcome for found in results)
    numbers = [len(results), *(totals[outcome] for outcome in OUTCOMES), sum(found.left for found in results)]
    return [*rows, ["all", "", *(f"{number:,}" for number in numbers)]]


def _order(found: Found) -> int:
    return (*PARTS[:1], "verify", *PARTS[1:]).index(found.part)


def make(directory: Path, quick: bool) -> Path:
    """The subjects, once. In a fork: the process that forks the cases must not have computed anything."""
    made = directory / "made"
    if made.exists():
        return made
    child = os.fork()
    if not child:
        status = 1
        try:
            building = directory / "making"
            make_subjects(building, _QUICK_SUBJECTS if quick else MADE)
            further_subjects(building)
            building.rename(made)
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(child, 0)[1]:
        raise SystemExit("the runs to do faults to could not be made")
    return made


def run(options: argparse.Namespace, work: Path) -> list[Found]:
    began = time.monotonic()
    made = make(work, options.quick)
    print(f"subjects made after {time.monotonic() - began:.0f} s", flush=True)
    journal = Journal(work / "results.jsonl")
    for part in [options.only] if options.only else PARTS:
        run_part(part, made, work, options, journal)
        print(f"{part} done after {time.monotonic() - began:.0f} s", flush=True)
    return journal.read()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="some 60 cases")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--kinds", default="", help="these kinds of a part alone, with ; between")
    parser.add_argument("--every", type=int, default=1, help="a sample: every how manieth case")
    parser.add_argument("--minutes", type=float, default=6000, help="begin no case after so many")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="a directory that keeps what is done")
    options = parser.parse_args()
    options.end = time.monotonic() + 60 * options.minutes
    if options.work is None:
        directory = Path(tempfile.mkdtemp())  # no TemporaryDirectory: the first fork to end would remove it
        try:
            results = run(options, directory)
        finally:
            shutil.rmtree(directory)
    else:
        options.work.mkdir(parents=True, exist_ok=True)
        results = run(options, options.work.resolve())
    bad = [found for found in results if found.bad]
    notes = f"`python benchmarks/faults.py`, seed {options.seed}. {NOTES}"
    header = ["part", "kind", "cases", *OUTCOMES, "left behind"]
    write_table("faults", "Faults made from outside", header, rows_of(results), notes, keep=not options.quick)
    for found in bad[:100]:
        left = ", left behind" * found.left
        print(f"- {found.outcome}{left}: {found.part}, {found.kind}, case {found.number}: {found.what}")
        print(f"  {(found.said.strip() or ' ').splitlines()[-1]}")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()

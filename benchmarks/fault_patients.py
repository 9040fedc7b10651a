"""Damaged files: every kind of damage in every kind of file, loaded in this process and compared."""

import asyncio
import json
import os
import select
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fault_content
from dragoman.cluster import storage
from dragoman.errors import UserError
from dragoman.runs import corpus_job as corpus
from dragoman.runs import journal
from dragoman.serve.dictionaries import Given
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.limits import Limits
from dragoman.training.verify import verify_path
from fault_common import Found, limit_memory
from fault_content import KINDS, Kind
from fault_damage import Chance, damage
from fault_subjects import CHUNK, VARIES

SECONDS_A_CASE = 20.0
_CASES_A_PROCESS = 200
_LEARNT = ("shortlist.txt", "nowhere")
"""What is written where it is missing; «nowhere» is where a dangling link leads."""
_RECORDS = (*VARIES, "metrics.jsonl")
"""Of a run, what is written down for people and has no hash."""


class Patient:
    """One copy of a kind, damaged and mended again, case after case."""

    def __init__(self, kind: Kind, made: Path, work: Path) -> None:
        self.kind, self.directory = kind, work / "subject"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(made / kind.place, self.directory, symlinks=True)
        if kind.changes:
            (work / "reader").symlink_to(made / "runs" / "t")
        files = sorted(path for path in self.directory.rglob("*") if path.is_file())
        self.original = {path: path.read_bytes() for path in files}
        self.entries = set(self.directory.rglob("*"))
        others = tuple(self.directory / name for name in kind.without)
        own = (path for path in files if not set(path.parents) & set(others))
        self.files = [path for path in own if path.name not in _RECORDS and path.name != "mono.en"]
        self.expected = kind.content(self.directory)
        self.mend()

    def mend(self) -> None:
        for path in set(self.directory.rglob("*")) - self.entries:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        for path, data in self.original.items():
            if not path.is_symlink() and path.is_dir():
                path.rmdir()
            elif path.is_symlink() or not path.is_file():
                path.unlink(missing_ok=True)
            elif path.stat().st_size == len(data) and path.read_bytes() == data:
                continue
            path.write_bytes(data)

    def try_case(self, number: int, seed: int) -> Iterator[Found]:
        """Damage, load, verify, mend."""
        chance = Chance(f"{seed} {self.kind.name} {number}")
        what = damage(self.directory, self.files, chance)
        before = set(self.directory.rglob("*"))
        outcome, said = self._load()
        new = {
            path
            for path in set(self.directory.rglob("*")) - before - self.entries
            if path.name not in _LEARNT
        }
        left = bool(new) and not self.kind.changes
        yield Found("damage", self.kind.name, number, outcome, left, what, said)
        if self.kind.verified and number % 3 == 0:
            told, said = self._verify()
            missed = told == "harmless" and outcome != "harmless"
            yield Found("verify", self.kind.name, number, "silent" if missed else told, False, what, said)
        self.mend()

    def _load(self) -> tuple[str, str]:
        try:
            same = self.kind.content(self.directory) == self.expected
        except UserError as error:
            return "refused", str(error)
        except BaseException:
            return "traceback", traceback.format_exc()[-1500:]
        gone = self.kind.may_be_gone and not all(path.exists() for path in self.files)
        return ("harmless", "") if same or gone else ("silent", "")

    def _verify(self) -> tuple[str, str]:
        try:
            faults = [fault for report in verify_path(self.directory).everything() for fault in report.faults]
        except UserError as error:
            return "refused", str(error)
        except BaseException:
            return "traceback", traceback.format_exc()[-1500:]
        return ("refused", faults[0].what) if faults else ("harmless", "")


def further_subjects(made: Path) -> None:
    """A tokenizer alone, a corpus half translated, and the glossaries of a server."""
    (made / "tokenizer").mkdir()
    shutil.copyfile(made / "runs/t/tokenizer.json", made / "tokenizer" / "tokenizer.json")
    glossaries = made / "glossaries"
    glossaries.mkdir()
    kept = Glossaries(Limits(), glossaries / "glossaries.json")
    terms = "".join(f"term {n}\tWort {n}\n" for n in range(9))
    for number in range(3):
        asyncio.run(kept.create(f"g{number}", [Given(("en", "de"), terms, "tsv")]))
    half = made / "half"
    half.mkdir()
    shutil.copyfile(made / "mono.en", half / "mono.en")
    (made / "reader").symlink_to(made / "runs" / "t")
    corpus.LINES_AT_ONCE = CHUNK
    write_journal, calls = journal._write_journal, 0

    def stop_after_three(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        write_journal(*arguments)

    journal._write_journal = stop_after_three
    try:
        fault_content.of_corpus(half)
    except KeyboardInterrupt:
        pass
    finally:
        journal._write_journal = write_journal
        (made / "reader").unlink()


def run_damages(
    made: Path, work: Path, counts: dict[str, int], seed: int, mine: Callable[[str, str, int], bool]
) -> Iterator[Found]:
    """So many cases of each kind; `mine` says which are to be tried. Each kind is loaded in a process of its
    own, which is ended where a case hangs."""
    for kind in KINDS:
        count = counts.get(kind.name, 0)
        for start in range(0, count, _CASES_A_PROCESS):
            portion = range(start, min(start + _CASES_A_PROCESS, count))
            numbers = [n for n in portion if mine("damage", kind.name, n)]
            while numbers:
                reached = yield from _in_a_process(kind, made, work, numbers, seed)
                numbers = numbers[reached:]


def _in_a_process(kind: Kind, made: Path, work: Path, numbers: list[int], seed: int) -> Any:
    """The findings of the cases until one hangs or ends the process; how many there were."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _serve(kind, made, work / f"damage-{os.getpid()}", numbers, seed, writer)
    os.close(writer)
    reached, waiting, buffer = 0, True, b""
    while waiting:
        ready, _, _ = select.select([reader], [], [], SECONDS_A_CASE + 40 * (reached == 0))
        chunk = os.read(reader, 1 << 16) if ready else b""
        if not chunk:
            waiting = False
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            if line == b"next":
                reached += 1
            else:
                yield Found(**json.loads(line))
    timed_out = not ready
    if timed_out:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(reader)
    shutil.rmtree(work / f"damage-{child}", ignore_errors=True)
    if reached < len(numbers):
        outcome = "hang" if timed_out else "traceback"
        said = f"the process ended with {os.waitstatus_to_exitcode(status)}"
        yield Found("damage", kind.name, numbers[reached], outcome, False, "see its number", said)
        reached += 1
    return reached


def _serve(kind: Kind, made: Path, work: Path, numbers: list[int], seed: int, writer: int) -> None:
    status = 1
    try:
        os.setsid()
        corpus.LINES_AT_ONCE = CHUNK
        storage._PAUSE = 0
        patient = Patient(kind, made, work)
        limit_memory(4 << 30)
        for number in numbers:
            for found in patient.try_case(number, seed):
                os.write(writer, json.dumps(found.__dict__).encode() + b"\n")
            os.write(writer, b"next\n")
        status = 0
    except BaseException:
        traceback.print_exc()
        time.sleep(0.1)
    finally:
        os._exit(status)

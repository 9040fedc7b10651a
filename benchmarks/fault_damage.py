"""Damaged files: every kind of damage in every kind of file, loaded in this process and compared."""

import json
import os
import random
import select
import shutil
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fault_content
from dragoman.decode import corpus
from dragoman.errors import UserError
from dragoman.serve.glossaries import Dictionary, Glossaries
from dragoman.serve.limits import Limits
from dragoman.train.verify import verify
from fault_content import KINDS, Kind
from fault_limits import limit_memory
from fault_subjects import CHUNK, VARIES

SECONDS_A_CASE = 20.0
_PAGE = 4096
_RECORDS = (*VARIES, "metrics.jsonl")
"""Of a run, what is written down for people and has no hash."""

Chance = random.Random


def _flip_bit(data: bytearray, chance: Chance) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _change_byte(data: bytearray, chance: Chance) -> None:
    place = chance.randrange(len(data))
    data[place] = (data[place] + chance.randrange(1, 256)) % 256


def _zero_page(data: bytearray, chance: Chance) -> None:
    start = chance.randrange(0, len(data), _PAGE)
    data[start : start + _PAGE] = bytes(len(data[start : start + _PAGE]))


def _cut(data: bytearray, chance: Chance) -> None:
    del data[chance.randrange(len(data)) :]


def _append(data: bytearray, chance: Chance) -> None:
    data += chance.choice((b"\0", b"\n", b" ", data[:64], chance.randbytes(chance.randrange(1, 5000))))


def _swap_blocks(data: bytearray, chance: Chance) -> None:
    blocks = len(data) // 64
    if blocks < 2:
        return _flip_bit(data, chance)
    a, b = (64 * number for number in chance.sample(range(blocks), 2))
    data[a : a + 64], data[b : b + 64] = data[b : b + 64], data[a : a + 64]
    return None


def _edit_json(data: bytearray, chance: Chance) -> None:
    """Another value in one place; a file that is no JSON loses a byte instead."""
    try:
        content = json.loads(bytes(data))
    except ValueError:
        del data[chance.randrange(len(data))]
        return
    places: list[tuple[Any, Any]] = []
    waiting = [content]
    while waiting:
        node = waiting.pop()
        inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, value in inner:
            places.append((node, key))
            waiting.append(value)
    if places:
        node, key = chance.choice(places)
        if isinstance(node, dict) and chance.random() < 0.2:
            del node[key]
        else:
            node[key] = _other(node[key], chance)
    data[:] = json.dumps(content, indent=chance.choice((None, 1, 2)), ensure_ascii=False).encode()


def _other(value: Any, chance: Chance) -> Any:
    others: tuple[Any, ...] = (None, [], {}, "", "x", -1, 0, 1e308, 10**12, True, [value], str(value))
    if isinstance(value, bool):
        others = (not value, *others)
    elif isinstance(value, int | float):
        others = (value + 1, value - 1, value * 2, *others)
    elif isinstance(value, str) and value:
        place = chance.randrange(len(value))
        others = (value[:place] + chr(ord(value[place]) ^ 1) + value[place + 1 :], value[::-1], *others)
    return chance.choice(others)


IN_BYTES: tuple[Callable[[bytearray, Chance], None], ...] = (
    _flip_bit, _flip_bit, _flip_bit, _change_byte, _zero_page, _cut, _append, _swap_blocks, _edit_json, _edit_json
)  # fmt: skip
IN_PLACE = (
    "swapped with another",
    "deleted",
    "emptied",
    "pipe",
    "directory",
    "dangling link",
    "another in its place",
)


def damage(directory: Path, files: Sequence[Path], chance: Chance) -> str:
    """Do one damage below `directory`; what was done."""
    path = chance.choice(files)
    name = str(path.relative_to(directory))
    size = path.stat().st_size
    if size and chance.random() < 0.85:
        how = chance.choice(IN_BYTES)
        data = bytearray(path.read_bytes())
        how(data, chance)
        path.write_bytes(data)
        return f"{name}: {how.__name__.strip('_')}"
    what = chance.choice(IN_PLACE)
    other = chance.choice([each for each in files if each != path] or files)
    if what == "swapped with another":
        here, there = path.read_bytes(), other.read_bytes()
        path.write_bytes(there)
        other.write_bytes(here)
        return f"{name}: swapped with {other.relative_to(directory)}"
    content = other.read_bytes()
    path.unlink()
    if what == "emptied":
        path.touch()
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "directory":
        path.mkdir()
    elif what == "dangling link":
        path.symlink_to("nowhere")
    elif what == "another in its place":
        path.write_bytes(content)
    return f"{name}: {what}"


@dataclass(frozen=True)
class Found:
    """How a case ended: refused, harmless, silent, traceback or hang; and whether something was left."""

    part: str
    kind: str
    number: int
    outcome: str
    left: bool
    what: str
    said: str = ""

    @property
    def bad(self) -> bool:
        return self.outcome not in ("refused", "harmless") or self.left


class Patient:
    """One copy of a kind, damaged and mended again, case after case."""

    def __init__(self, kind: Kind, made: Path, work: Path) -> None:
        self.kind, self.directory = kind, work / "subject"
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(made / kind.place, self.directory, symlinks=True)
        for name in kind.without:
            shutil.rmtree(self.directory / name)
        if kind.changes:
            (work / "reader").symlink_to(made / "runs" / "t")
        files = sorted(path for path in self.directory.rglob("*") if path.is_file())
        self.original = {path: path.read_bytes() for path in files}
        self.entries = set(self.directory.rglob("*"))
        self.files = [path for path in files if path.name not in _RECORDS and path.name != "mono.en"]
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
        left = not self.kind.changes and bool(set(self.directory.rglob("*")) - before)
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
            faults = [fault for report in verify(self.directory).everything() for fault in report.faults]
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
    for number in range(3):
        kept.create(f"g{number}", {("en", "de"): Dictionary({f"term {n}": f"Wort {n}" for n in range(9)})})
    half = made / "half"
    half.mkdir()
    shutil.copyfile(made / "mono.en", half / "mono.en")
    (made / "reader").symlink_to(made / "runs" / "t")
    corpus.CHUNK = CHUNK
    write_journal, calls = corpus._write_journal, 0

    def stop_after_three(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        write_journal(*arguments)

    corpus._write_journal = stop_after_three
    try:
        fault_content.of_corpus(half)
    except KeyboardInterrupt:
        pass
    finally:
        corpus._write_journal = write_journal
        (made / "reader").unlink()


def run_damages(
    made: Path, work: Path, counts: dict[str, int], seed: int, mine: Callable[[str, str, int], bool]
) -> Iterator[Found]:
    """So many cases of each kind; `mine` says which are to be tried. Each kind is loaded in a process of its
    own, which is ended where a case hangs."""
    for kind in KINDS:
        numbers = [n for n in range(counts.get(kind.name, 0)) if mine("damage", kind.name, n)]
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
        corpus.CHUNK = CHUNK
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

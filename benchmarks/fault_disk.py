"""Disks that are full, read-only or broken from some write on: by refused calls, and on a small real disk."""

import errno
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from fault_commands import Ended, run_command
from fault_common import Found
from fault_kills import Undisturbed, again, judge, undisturbed
from fault_operations import NEEDS_SPACE, Operations
from fault_subjects import COMMANDS, Command, small_chunks, workspace

WAYS = ("full", "read-only", "one error", "small disk")
_NAMES = {
    "full": "disk full",
    "read-only": "disk read-only",
    "one error": "input/output error",
    "small disk": "small tmpfs",
}


def _prepare(operations: Operations, way: str, place: int) -> None:
    small_chunks(operations)
    if way == "full":
        operations.refuse_from(place, errno.ENOSPC, NEEDS_SPACE)
    elif way == "read-only":
        operations.refuse_from(place, errno.EROFS)
    else:
        operations.refuse_one(place, errno.EIO)


def _judge_first(ended: Ended) -> str | None:
    """A command that could not write says so in one sentence; None where it did."""
    if ended.fault:
        return ended.fault
    return None if ended.status in (0, 1, 2) else "traceback"


def try_refused(
    command: Command, number: int, way: str, place: int, made: Path, work: Path, whole: Undisturbed
) -> Found:
    directory = workspace(made, command, work / f"disk-{number}")
    ended = run_command(command.arguments, directory, prepare=partial(_prepare, way=way, place=place))
    what = f"from operation {place} of {whole.operations} on"
    found = _found(command, number, way, directory, whole, ended, what)
    shutil.rmtree(directory)
    return found


def _found(
    command: Command, number: int, way: str, directory: Path, whole: Undisturbed, ended: Ended, what: str
) -> Found:
    fault = _judge_first(ended)
    if fault:
        return Found(
            "disk", _NAMES[way], number, fault, False, f"{command.name}: {what}", ended.output[-1500:]
        )
    outcome, left, said = judge(command, directory, whole, again(command, directory))
    if outcome == "harmless" and ended.status:
        outcome = "refused"
    return Found("disk", _NAMES[way], number, outcome, left, f"{command.name}: {what}", said)


def _mount(directory: Path, *options: str) -> bool:
    command = ["mount", "-t", "tmpfs", *options, "tmpfs", str(directory)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def try_small_disk(
    command: Command, number: int, share: float, made: Path, work: Path, whole: Undisturbed
) -> Found | None:
    """None where this system does not let us mount a disk."""
    directory = work / f"disk-{number}"
    directory.mkdir()
    sizes = _sizes(command, made, whole, work)
    size = int(sizes[0] + share * (sizes[1] - sizes[0]))
    if not _mount(directory, "-o", f"size={size}"):
        return None
    try:  # what is printed goes to files beside it, which have room
        workspace(made, command, directory)
        ended = run_command(command.arguments, directory, prepare=small_chunks)
        _mount(directory, "-o", f"remount,size={size + (64 << 20)}")
        return _found(command, number, "small disk", directory, whole, ended, f"{size:,} bytes")
    finally:
        subprocess.run(["umount", str(directory)], check=False)
        directory.rmdir()


def _sizes(command: Command, made: Path, whole: Undisturbed, work: Path) -> tuple[int, int]:
    """Bytes that the inputs take on a disk, and a little more than all files in the end."""
    directory = workspace(made, command, work / "measured")
    pages = sum(-(-path.stat().st_size // 4096) * 4096 + 4096 for path in directory.rglob("*"))
    shutil.rmtree(directory)
    return pages + 16384, pages + 16384 + 12_288 * max(4, len(whole.files))


def run_disks(
    made: Path, work: Path, each: int, seed: int, mine: Callable[[str, str, int], bool]
) -> Iterator[Found]:
    """`each` places a command and way. `mine` says which cases are to be tried."""
    for order, command in enumerate(COMMANDS):
        cases = [(way, order * each + index) for way in WAYS for index in range(each)]
        cases = [(way, number) for way, number in cases if mine("disk", _NAMES[way], number)]
        if not cases:
            continue
        whole = undisturbed(command, made, work)
        for way, number in cases:
            chance = random.Random(f"{seed} {command.name} {way} {number}")
            index = number - order * each
            if way == "small disk":
                found = try_small_disk(command, number, (index + chance.random()) / each, made, work, whole)
                if found is not None:
                    yield found
                continue
            place = 1 + int((index + chance.random()) / each * whole.operations)
            yield try_refused(command, number, way, place, made, work, whole)

"""kill -9 in every command that writes: before a file operation, inside a write, at any moment, with and
without the pages that were not yet forced to disk. Then the command is given again."""

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dragoman.runs.directory import Run
from fault_commands import Ended, run_command
from fault_common import Found
from fault_operations import Operations
from fault_subjects import COMMANDS, Command, digest, small_chunks, workspace

WAYS = ("before an operation", "half a write, pages lost", "random moment", "before an operation, pages lost")


@dataclass(frozen=True)
class Undisturbed:
    """What a command leaves when nothing happens to it."""

    files: dict[str, str]
    operations: int
    seconds: float


def undisturbed(command: Command, made: Path, work: Path) -> Undisturbed:
    directory = work / "reference"
    shutil.rmtree(directory, ignore_errors=True)
    workspace(made, command, directory)
    ended = run_command(command.arguments, directory, prepare=small_chunks)
    if ended.status != command.status:
        raise SystemExit(f"{command.name}: exit status {ended.status}\n{ended.output}")
    found = Undisturbed(digest(directory, command.varies), ended.operations, ended.seconds)
    shutil.rmtree(directory)
    return found


def again(command: Command, directory: Path) -> Ended:
    """The same command, or `resume` where there is a run to go on with."""
    goes_on = command.resume and Run.exists(directory / command.run)
    arguments = command.resume if goes_on else command.arguments
    return run_command(arguments, directory, prepare=small_chunks)


def judge(command: Command, directory: Path, whole: Undisturbed, ended: Ended) -> tuple[str, bool, str]:
    """After the second command: the outcome, whether something was left, and what was said."""
    if ended.fault:
        return ended.fault, False, ended.output[-1500:]
    found = digest(directory, command.varies)
    left = sorted(found.keys() - whole.files.keys())
    wrong = sorted(n for n, value in whole.files.items() if found.get(n) != value and value != "varies")
    wrong = [name for name in wrong if not name.endswith("temporary")]
    left = [name for name in left if not name.endswith(".damaged")]
    if wrong:
        return "silent", bool(left), f"differs: {', '.join(wrong[:5])}; {ended.output[-300:]}"
    return "harmless", bool(left), f"left: {', '.join(left[:5])}" if left else ""


def kill_cases(
    command: Command, count: int, seed: int, whole: Undisturbed
) -> list[tuple[int, str, int, float]]:
    """(number, way, operation, seconds); operations at even distances, and others by chance."""
    cases = []
    for number in range(count):
        chance = random.Random(f"{seed} {command.name} {number}")
        way = WAYS[number % len(WAYS)]
        if number % len(WAYS) == 0:
            place = 1 + int((number + 0.5) / count * whole.operations)
        else:
            place = chance.randint(1, max(1, whole.operations))
        cases.append((number, way, place, chance.random() * whole.seconds))
    return cases


def try_kill(
    command: Command, case: tuple[int, str, int, float], made: Path, work: Path, whole: Undisturbed
) -> Found:
    number, way, place, seconds = case
    directory = workspace(made, command, work / f"kill-{number}")
    kill = partial(_prepare, way=way, place=place)
    timed = way == "random moment"
    ended = run_command(
        command.arguments,
        directory,
        prepare=small_chunks if timed else kill,
        kill_after=seconds if timed else None,
    )
    what = f"{way}, operation {place} of {whole.operations}" if not timed else f"{way}, {seconds:.2f} s"
    if not ended.killed and ended.fault:
        outcome, left, said = ended.fault, False, ended.output[-1500:]
    else:
        outcome, left, said = judge(command, directory, whole, again(command, directory))
    shutil.rmtree(directory)
    return Found("kills", command.name, number, outcome, left, what, said)


def _prepare(operations: Operations, way: str, place: int) -> None:
    small_chunks(operations)
    operations.kill_at(place, half_a_write="half" in way, lose_pages="lost" in way)


def run_kills(
    made: Path, work: Path, counts: dict[str, int], seed: int, mine: Callable[[str, str, int], bool]
) -> Iterator[Found]:
    """`mine` says which cases are to be tried."""
    for command in COMMANDS:
        count = counts.get(command.name, 0)
        if not any(mine("kills", command.name, number) for number in range(count)):
            continue
        whole = undisturbed(command, made, work)
        for case in kill_cases(command, count, seed, whole):
            if mine("kills", command.name, case[0]):
                yield try_kill(command, case, made, work, whole)

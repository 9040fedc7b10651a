"""The benchmark of faults sees what it is there to see, and some 60 faults end as they should."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fault_damage import IN_BYTES, damage
from fault_operations import Operations

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faults.py"


@pytest.mark.slow
def test_no_fault_is_silent_breaks_or_leaves_anything_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick"],
        env={"PATH": "", "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    left = [path.name for path in tmp_path.iterdir()]
    assert not [name for name in left if not name.startswith("torchinductor_")]  # an empty folder of torch


# --- damages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", IN_BYTES, ids=lambda how: how.__name__)
@pytest.mark.parametrize("content", [b'{"a": [1, "b", {"c": null}]}', random.Random(1).randbytes(9000)])
def test_every_damage_changes_the_bytes(how: Callable[..., None], content: bytes) -> None:
    for seed in range(20):
        data = bytearray(content)
        how(data, random.Random(seed))
        assert bytes(data) != content


def test_a_damage_can_be_done_again(tmp_path: Path) -> None:
    def result(name: str, seed: int) -> tuple[str, list[tuple[str, bytes]]]:
        directory = tmp_path / f"{name}-{seed}"
        directory.mkdir()
        for number in range(3):
            (directory / f"{number}").write_bytes(bytes([number]) * 500)
        what = damage(directory, sorted(directory.iterdir()), random.Random(seed))
        return what, [(p.name, p.read_bytes()) for p in sorted(directory.iterdir()) if p.is_file()]

    found = [result("first", seed) for seed in range(60)]
    assert found == [result("second", seed) for seed in range(60)]
    assert len({what for what, _ in found}) > 20


# --- file operations ---------------------------------------------------------------------------------


def write_three_files(directory: Path) -> None:
    """By a file, by the module os, and by a rename; the first is forced to disk, the others are not."""
    with (directory / "a").open("wb") as file:
        file.write(b"first")
        file.flush()
        os.fsync(file.fileno())
    descriptor = os.open(directory / "b", os.O_WRONLY | os.O_CREAT)
    os.write(descriptor, b"second")
    os.close(descriptor)
    (directory / "c.new").write_text("third")
    (directory / "c.new").rename(directory / "c")


def in_a_fork(directory: Path, prepare: Callable[[Operations], None]) -> int:
    """How a process ends that writes the three files; the number of operations if it ends by itself."""
    child = os.fork()
    if not child:
        status = 99
        try:
            operations = Operations(directory)
            prepare(operations)
            operations.install()
            write_three_files(directory)
            status = operations.count
        except OSError as error:
            status = 100 + (error.errno or 0)
        finally:
            os._exit(status)
    _, code = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(code)


def names(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


WHOLE = {"a": b"first", "b": b"second", "c": b"third"}
OPERATIONS = 8


def test_operations_are_counted(tmp_path: Path) -> None:
    assert in_a_fork(tmp_path, lambda _operations: None) == OPERATIONS
    assert names(tmp_path) == WHOLE


def test_the_process_dies_before_every_operation(tmp_path: Path) -> None:
    seen = []
    for number in range(1, OPERATIONS + 2):
        directory = tmp_path / f"{number}"
        directory.mkdir()
        status = in_a_fork(directory, lambda operations, number=number: operations.kill_at(number))
        assert status == (-signal.SIGKILL if number <= OPERATIONS else OPERATIONS)
        seen.append(names(directory))
    assert seen[0] == {}
    assert seen[-1] == WHOLE
    assert {"a": b"first", "b": b"second", "c.new": b"third"} in seen


def test_a_write_can_be_cut_in_half(tmp_path: Path) -> None:
    assert in_a_fork(tmp_path, lambda operations: operations.kill_at(5, half_a_write=True)) == -signal.SIGKILL
    assert names(tmp_path) == {"a": b"first", "b": b"sec"}


def test_what_was_not_forced_to_disk_is_lost(tmp_path: Path) -> None:
    def kill(operations: Operations) -> None:
        operations.kill_at(OPERATIONS, lose_pages=True)

    assert in_a_fork(tmp_path, kill) == -signal.SIGKILL
    assert names(tmp_path) == {"a": b"first", "b": b"", "c.new": b""}


def test_operations_can_be_refused(tmp_path: Path) -> None:
    assert in_a_fork(tmp_path, lambda operations: operations.refuse_from(4, 28)) == 128
    assert names(tmp_path) == {"a": b"first"}

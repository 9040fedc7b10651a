"""Checkpoints against crashes at any moment and against full disks."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from checkpoint.saved import assert_is, entries, save
from dragoman import checkpoint
from dragoman.errors import UserError
from dragoman.files import replace_file

# --- crashes -----------------------------------------------------------------------------------------


class Crash(BaseException):
    """The process is gone: nothing catches this."""


FILE_OPERATIONS = ("open", "write", "fsync", "rename", "replace", "mkdir")


def fail_at(
    patch: pytest.MonkeyPatch, number: int, fail: Callable[[str, tuple[Any, ...]], None]
) -> Callable[[], int]:
    """Let file operation `number` (from 1) of the process fail; returns how many there were."""
    count = 0

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any, **named: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                fail(name, args)
            return real(*args, **named)

        return operation

    for name in FILE_OPERATIONS:
        patch.setattr(os, name, wrap(name, getattr(os, name)))
    return lambda: count


def operations_of_a_save(root: Path) -> int:
    save(root, 1)
    with pytest.MonkeyPatch.context() as patch:
        count = fail_at(patch, 0, lambda _name, _args: None)
        save(root, 2)
        return count()


REAL_WRITE = os.write


@pytest.mark.parametrize("half", [False, True], ids=["whole", "half a write"])
def test_a_crash_at_every_file_operation_leaves_a_whole_checkpoint(tmp_path: Path, half: bool) -> None:
    def crash(name: str, args: tuple[Any, ...]) -> None:
        if half and name == "write":
            REAL_WRITE(args[0], args[1][: len(args[1]) // 2])
        raise Crash

    total = operations_of_a_save(tmp_path / "count")
    assert total > 20
    ended_in = []
    for number in range(1, total + 1):
        root = tmp_path / f"{number}"
        save(root, 1)
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, number, crash)
            with pytest.raises(Crash):
                save(root, 2)
        warnings: list[str] = []
        found = checkpoint.newest(root, warnings.append)
        assert not warnings  # a half-written one never has the name of a checkpoint
        assert_is(found, int(found.name))
        ended_in.append(found.name)
        save(root, 3)  # and the next save cleans up
        assert not [name for name in entries(root) if name.startswith(".")]
        assert_is(checkpoint.newest(root), 3)
    assert ended_in[0] == "0000001"
    assert ended_in[-1] == "0000002"


def test_a_crash_while_a_damaged_one_is_replaced_leaves_the_one_before(tmp_path: Path) -> None:
    for number in range(1, 40):
        root = tmp_path / f"{number}"
        save(root, 1)
        save(root, 2)
        (root / "0000002" / "state.json").write_text("damaged")

        def crash(_name: str, _args: tuple[Any, ...]) -> None:
            raise Crash

        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, number, crash)
            try:
                save(root, 2)
            except Crash:
                pass
            else:
                assert number > 20
                break
        found = checkpoint.newest(root, lambda _text: None)
        assert_is(found, int(found.name))


def test_an_error_at_every_file_operation_is_one_sentence(tmp_path: Path) -> None:
    def input_output_error(_name: str, _args: tuple[Any, ...]) -> None:
        raise OSError(errno.EIO, "Input/output error")

    total = operations_of_a_save(tmp_path / "count")
    for number in range(1, total + 1):
        root = tmp_path / f"{number}"
        save(root, 1)
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, number, input_output_error)
            with pytest.raises(UserError, match="Input/output error"):
                save(root, 2)
        found = checkpoint.newest(root)
        assert_is(found, int(found.name))
        assert not [name for name in entries(root) if name.startswith(".")]


def test_small_files_are_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "best.json"
    replace_file(path, b"old")
    number = 0
    for number in range(1, 20):
        with pytest.MonkeyPatch.context() as patch:

            def crash(_name: str, _args: tuple[Any, ...]) -> None:
                raise Crash

            fail_at(patch, number, crash)
            try:
                replace_file(path, b"new one")
            except Crash:
                assert path.read_bytes() in (b"old", b"new one")
                replace_file(path, b"old")
            else:
                break
    assert number > 5
    assert path.read_bytes() == b"new one"


# --- full disk ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sixteenths", range(0, 40))
def test_a_full_disk_leaves_the_older_one_and_says_how_much_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sixteenths: int
) -> None:
    save(tmp_path, 1)
    size = sum(p.stat().st_size for p in (tmp_path / "0000001").iterdir())
    left = size * sixteenths // 40

    def write_until_full(descriptor: int, data: memoryview) -> int:
        nonlocal left
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = REAL_WRITE(descriptor, data[:left])
        left -= taken
        return taken

    monkeypatch.setattr(os, "write", write_until_full)
    with pytest.raises(UserError, match=r"disk is full: a checkpoint needs [\d,]+ bytes and [\d,]+ are free"):
        save(tmp_path, 2)
    monkeypatch.undo()
    assert entries(tmp_path) == ["0000001"]
    assert_is(checkpoint.newest(tmp_path), 1)


def test_too_little_space_is_seen_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=5000))
    monkeypatch.setattr(os, "mkdir", None)
    with pytest.raises(UserError, match=r"needs [\d,]+ bytes and 5,000 are free"):
        save(tmp_path, 2)
    assert_is(checkpoint.newest(tmp_path), 1)

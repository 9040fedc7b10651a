"""Files that are read only if they are files, and written as a whole or not at all."""

import errno
import fcntl
import itertools
import os
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import UserError
from dragoman.files import (
    explained,
    new_directory,
    open_regular,
    open_to_append,
    read_regular,
    remove_all_unfinished,
    remove_unfinished,
    replace_file,
    replacing,
    scratch_directory,
    sync_directory,
    write_new,
)

# --- reading -----------------------------------------------------------------------------------------


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    for name in ("file", "link"):
        assert read_regular(tmp_path / name, 5) == b"12345"
    with open_regular(path) as file:
        assert file.read() == b"12345"
    with pytest.raises(UserError, match=r"file: too large: 5 bytes, and 4 are allowed here"):
        read_regular(path, 4)


@pytest.mark.parametrize("kind", ["directory", "named pipe", "socket", "device"])
def test_what_is_not_a_file_is_refused_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may have about 100 bytes
    path = Path("/dev/null") if kind == "device" else Path("thing")
    if kind == "directory":
        path.mkdir()
    elif kind == "named pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    for read in (open_regular, lambda path: read_regular(path, 10)):
        with pytest.raises(UserError, match=f"{path}: this is a {kind}, not a file"):
            read(path)


def test_a_pipe_put_there_after_the_first_look_is_refused_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"x")
    os.mkfifo(pipe)
    real = os.open
    monkeypatch.setattr(os, "open", lambda _path, *options: real(pipe, *options))
    closed: list[None] = []
    monkeypatch.setattr(os, "close", lambda descriptor, close=os.close: closed.append(close(descriptor)))
    with pytest.raises(UserError, match="this is a named pipe"):
        open_regular(file)
    assert len(closed) == 1


def test_a_missing_file_is_the_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "none")


@pytest.mark.parametrize("mode", ["metrics", "none yet"])
def test_appending_opens_only_files(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "file"
    if mode == "metrics":
        path.write_bytes(b"a\n")
    with open_to_append(path) as file:
        file.write(b"b\n")
    assert path.read_bytes().endswith(b"b\n")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match="pipe: this is a named pipe, not a file"):
        open_to_append(tmp_path / "pipe")


# --- replacing ---------------------------------------------------------------------------------------


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_new_file_has_what_the_umask_leaves(tmp_path: Path, umask: Callable[[int], int]) -> None:
    for mask, expected in ((0o022, 0o644), (0o002, 0o664), (0o077, 0o600)):
        umask(mask)
        name = tmp_path / f"{mask:o}"
        replace_file(name, b"x")
        write_new(tmp_path / f"new{mask:o}", [b"x"])
        assert mode_of(name) == mode_of(tmp_path / f"new{mask:o}") == expected


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path, umask: Callable[[int], int]) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    for mode in (0o600, 0o664, 0o755):
        path.chmod(mode)
        replace_file(path, b"new")
        assert mode_of(path) == mode
    umask(0)
    replace_file(path, b"secret", mode=0o600)
    assert mode_of(path) == 0o600


def test_it_is_never_readable_for_more_people_than_the_old_file(
    tmp_path: Path, umask: Callable[[int], int]
) -> None:
    umask(0)
    path = tmp_path / "file"
    path.touch(0o600)
    with replacing(path):
        assert {mode_of(entry) for entry in tmp_path.iterdir()} == {0o600}


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "link").symlink_to("below/file")
    for data in (b"one", b"two"):
        replace_file(tmp_path / "link", data)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "below" / "file").read_bytes() == data
    assert [path.name for path in (tmp_path / "below").iterdir()] == ["file"]


def test_what_is_not_a_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(UserError, match="not a file"):
            replace_file(path, b"x")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("name", ["x" * 255, "ü" * 127, "🙂" * 63, "a\nb", "-", "ü" * 100 + ".unfinished"])
def test_names_of_any_length(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with replacing(path) as file:
        file.write(b"new")
        hidden = next(entry for entry in tmp_path.iterdir())
        assert len(os.fsencode(hidden.name)) <= 255
    assert path.read_bytes() == b"new"
    path.unlink()
    with new_directory(path):
        pass
    with new_directory(path, replace_existing=len(os.fsencode(name)) < 240) as directory:
        (directory / "a").touch()
    assert [entry.name for entry in path.iterdir()] == ["a"]
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_in_the_middle_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    with pytest.raises(ZeroDivisionError), new_directory(tmp_path / "made") as directory:
        (directory / "a").touch()
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


# --- errors of the system ----------------------------------------------------------------------------


def test_a_missing_directory_is_named_by_the_target(tmp_path: Path) -> None:
    path = tmp_path / "none" / "file"
    with pytest.raises(FileNotFoundError) as caught:
        replace_file(path, b"x")
    assert caught.value.filename == str(path)
    told = r"none/file: cannot be written \(No such file or directory\)$"
    with pytest.raises(UserError, match=told), explained(path):
        replace_file(path, b"x")


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_every_call_that_fails_names_the_target_and_leaves_nothing(tmp_path: Path, number: int) -> None:
    def write_both() -> None:
        replace_file(tmp_path / "file", b"new")
        with new_directory(tmp_path / "above" / "made") as directory:
            write_new(directory / "a", [b"1", b"2"])

    place = 0
    for place in itertools.count(1):
        shutil.rmtree(tmp_path / "above", ignore_errors=True)
        (tmp_path / "file").write_bytes(b"old")
        failed, error = failing(place, number, write_both)
        if not failed:
            break
        assert error is None or error.filename in (
            *(str(tmp_path / name) for name in ("", "file", "above", "above/made", "above/made/a")),
        )
        assert (tmp_path / "file").read_bytes() in (b"old", b"new")
        assert {path.name for path in tmp_path.rglob("*")} <= {"file", "above", "made", "a"}
    assert place > 15


def failing(place: int, number: int, act: Callable[[], object]) -> tuple[bool, OSError | None]:
    """Let call number `place` that changes something on the disk fail."""
    count = 0

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal count
            reads = name == "open" and not args[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)
            count += not reads
            if count == place and not reads:
                count += 1
                path = args[0] if isinstance(args[0], str | Path) else None
                raise OSError(number, os.strerror(number), *([str(path)] if path else []))
            return real(*args, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "write", "fsync", "rename", "replace", "mkdir", "fchmod"):
            patch.setattr(os, name, wrapped(name, getattr(os, name)))
        try:
            act()
        except OSError as error:
            return True, error
    return count >= place, None


def test_a_file_system_without_locks_or_syncs_of_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_lock(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    def no_sync(descriptor: int, real: Callable[[int], None] = os.fsync) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(fcntl, "flock", no_lock)
    monkeypatch.setattr(os, "fsync", no_sync)
    stranger = tmp_path / ".file.0123abcd.unfinished"  # of a process that may be alive
    stranger.touch()
    replace_file(tmp_path / "file", b"x")
    with new_directory(tmp_path / "made"):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {"file", "made", stranger.name}


def test_a_disk_that_fails_is_not_taken_for_one_that_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        sync_directory(tmp_path)


# --- directories -------------------------------------------------------------------------------------


def test_only_an_empty_directory_is_replaced(tmp_path: Path) -> None:
    for name in ("full", "empty"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    for name in ("full", "file"):
        with pytest.raises(FileExistsError), new_directory(tmp_path / name):
            raise AssertionError("refused before anything is done")
    with new_directory(tmp_path / "empty") as directory:
        (directory / "a").touch()
    assert [path.name for path in (tmp_path / "empty").iterdir()] == ["a"]


def test_the_current_directory_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    told = pytest.raises(UserError, match="this is the current directory; choose another")
    with told, explained(Path()), new_directory(Path()):
        pass


def test_another_process_was_first(tmp_path: Path) -> None:
    path = tmp_path / "made"
    with pytest.raises(FileExistsError, match="another process has just written it"), new_directory(path):
        path.mkdir()
        (path / "theirs").touch()
    with new_directory(path, keep_existing=True) as directory:
        (directory / "ours").touch()
    assert [entry.name for entry in path.iterdir()] == ["theirs"]
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_while_a_directory_is_replaced_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "made"
    path.mkdir()
    (path / "old").touch()
    real = os.rename

    def fail_to_move_in(source: Path, target: Path) -> None:
        if source.name.endswith(".unfinished"):
            raise OSError(errno.EIO, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "rename", fail_to_move_in)
    with pytest.raises(OSError, match="Input/output error"), new_directory(path, replace_existing=True):
        pass
    assert [entry.name for entry in path.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_scratch_directory_is_private_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: Callable[[int], int]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    umask(0)
    left = tmp_path / f".dragoman-{os.getuid()}.0123abcd.unfinished"  # by a process that was killed
    left.mkdir()
    (left / "file").touch()
    with scratch_directory() as directory:
        assert list(tmp_path.iterdir()) == [directory]
        assert mode_of(directory) == 0o700
        (directory / "file").touch()
    assert not list(tmp_path.iterdir())


# --- leftovers ---------------------------------------------------------------------------------------


def leave(path: Path, kind: str) -> None:
    """As a process does that is killed in the middle."""
    if kind == "file":
        path.write_bytes(b"half")
    else:
        path.mkdir()
        (path / "file").write_bytes(b"half")


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_leftovers_of_the_dead_are_removed_and_nothing_else(tmp_path: Path, kind: str) -> None:
    leave(tmp_path / ".out.0123abcd.unfinished", kind)
    others = [".out.txt.0123abcd.unfinished", ".out.0123abcd.unfinished.txt", ".out.unfinished", "out"]
    for name in others:
        leave(tmp_path / name, kind)
    remove_unfinished(tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == set(others)
    remove_all_unfinished(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(others[1:])


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_another_process_writes_is_left_alone(tmp_path: Path, kind: str) -> None:
    """The lock belongs to the open file, so a second one of this process stands for another process."""
    path = tmp_path / "out"
    with replacing(path) if kind == "file" else new_directory(path):
        before = list(tmp_path.iterdir())
        remove_unfinished(path)
        remove_all_unfinished(tmp_path)
        assert list(tmp_path.iterdir()) == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("moment", ["before the lock", "with the lock held", "before it is opened"])
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_who_writes_notices_that_a_cleaner_was_quicker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, moment: str
) -> None:
    """Between making a hidden entry and locking it, another process may find it unlocked."""
    real_lock, real_mkdir = fcntl.flock, os.mkdir
    disturbed = []

    def lock(descriptor: int, operation: int) -> None:
        if not disturbed and moment != "before it is opened":
            disturbed.append(entry := next(tmp_path.iterdir()))
            other = os.open(entry, os.O_RDONLY)
            if moment == "with the lock held":
                real_lock(other, fcntl.LOCK_EX)
            try:
                real_lock(descriptor, operation)
            finally:
                shutil.rmtree(entry) if kind == "directory" else entry.unlink()
                os.close(other)
        else:
            real_lock(descriptor, operation)

    def mkdir(path: Path, mode: int = 0o777) -> None:
        real_mkdir(path, mode)
        if not disturbed and moment == "before it is opened":
            disturbed.append(path)
            path.rmdir()

    monkeypatch.setattr(fcntl, "flock", lock)
    monkeypatch.setattr(os, "mkdir", mkdir)
    path = tmp_path / "out"
    if kind == "file":
        replace_file(path, b"new")
        assert path.read_bytes() == b"new"
    else:
        with new_directory(path) as directory:
            (directory / "a").touch()
        assert (path / "a").exists()
    assert list(tmp_path.iterdir()) == [path]
    assert disturbed or (kind, moment) == ("file", "before it is opened")


def test_a_directory_that_was_being_replaced_comes_back(tmp_path: Path) -> None:
    aside, path = tmp_path / ".made.replaced", tmp_path / "made"
    for new_is_there in (False, True):
        shutil.rmtree(path, ignore_errors=True)
        aside.mkdir()
        (aside / "old").touch()
        if new_is_there:
            path.mkdir()
            (path / "new").touch()
        remove_all_unfinished(tmp_path)
        assert [entry.name for entry in path.iterdir()] == ["new" if new_is_there else "old"]
        assert list(tmp_path.iterdir()) == [path]

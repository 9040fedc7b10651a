"""The cache of prepared data: killed, damaged, shared and on a full disk."""

import errno
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from data.damage import KINDS, make_earlier, make_store, read_all, write_corpus
from data.killed import killed_before
from dragoman.data import fingerprint as fingerprint_module
from dragoman.data.fingerprint import found_or_made
from dragoman.data.prepared import verify_prepared
from dragoman.data.verified_files import DamagedStore
from dragoman.errors import UserError
from dragoman.files import new_directory


def entries(root: Path) -> list[str]:
    """Of the cache, and of the directory of shards."""
    found = [*(root / "cache").iterdir(), *((root / "disk").iterdir() if (root / "disk").is_dir() else ())]
    return sorted(path.name for path in found)


@pytest.fixture(autouse=True, scope="module")
def quick_disk() -> Iterator[None]:
    """What is killed here are processes, not machines: nothing has to be forced to disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], dict[str, Any]]]:
    """Of each kind, what there is when all has gone well."""
    found = {}
    for kind in KINDS:
        root = tmp_path_factory.mktemp(kind)
        directory = make_store(kind, root)
        found[kind] = entries(root), contents(kind, directory, root)
    return found


def contents(kind: str, directory: Path, root: Path) -> dict[str, Any]:
    """Without the place where it lies."""
    found = read_all(kind, directory)
    return {name: str(value).replace(str(root), "") for name, value in found.items()}


Expected = dict[str, tuple[list[str], dict[str, Any]]]


# --- killed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "stride"), [("pairs", 29), ("shards", 37), ("text", 13), ("labelled", 5)])
def test_killed_at_many_file_operations(kind: str, stride: int, tmp_path: Path, expected: Expected) -> None:
    """Nothing is half there, and the next command leaves nothing else. A stride of 1 takes minutes."""
    names, whole = expected[kind]
    number = 0
    while True:
        root = tmp_path / str(number)
        write_corpus(root)
        if not killed_before(number, lambda root=root: make_store(kind, root), root):
            break
        for path in (root / "cache").glob("[0-9a-f]*"):  # what has its name is whole
            assert not verify_prepared(path)
        directory = make_store(kind, root)
        assert [name for name in entries(root) if name.startswith(".")] == []
        assert len(entries(root)) == len(names)
        assert contents(kind, directory, root) == whole
        shutil.rmtree(root)
        number += stride
    assert number > 50


@pytest.mark.parametrize("kind", KINDS)
def test_leftovers_are_removed_even_if_the_data_are_there(kind: str, tmp_path: Path) -> None:
    """Whether the process was killed before or after it had locked them; and those of earlier versions."""
    make_store(kind, tmp_path)
    before = entries(tmp_path)
    for directory in {"labelled": ["cache"], "shards": ["cache", "disk"]}.get(kind, ["cache"]):
        (tmp_path / directory / ".name.0123abcd.unfinished").mkdir()
        (tmp_path / directory / ".name.0123abcd.unfinished" / "train.src.ids").write_bytes(b"x")
        (tmp_path / directory / ".unfinished-locked").mkdir()
        (tmp_path / directory / ".unfinished-locked" / "lock").write_bytes(b"")
        for name in (".unfinished-old", ".damaged-old"):
            (tmp_path / directory / name).mkdir()
            os.utime(tmp_path / directory / name, (1, 1))
    make_store(kind, tmp_path)
    assert entries(tmp_path) == before


def test_what_a_living_process_writes_stays(tmp_path: Path) -> None:
    with new_directory(tmp_path / "cache" / "other"):
        make_store("text", tmp_path)
        found = entries(tmp_path)
    assert sum(name.startswith(".other.") for name in found) == 1


# --- damaged -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_cache_is_prepared_anew(
    kind: str, tmp_path: Path, expected: Expected, caplog: pytest.LogCaptureFixture
) -> None:
    directory = make_store(kind, tmp_path)
    whole = contents(kind, directory, tmp_path)
    assert whole == expected[kind][1]
    for path in sorted(directory.iterdir())[:: 1 if kind == "labelled" else 5]:
        data = path.read_bytes()
        if not data:
            continue
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        caplog.clear()
        assert contents(kind, make_store(kind, tmp_path), tmp_path) == whole
        (told,) = caplog.messages
        assert told.startswith(str(path))
        assert told.endswith("; the data are prepared anew")
        assert len(entries(tmp_path)) == len(expected[kind][0])
    caplog.clear()
    make_earlier(directory)
    assert contents(kind, make_store(kind, tmp_path), tmp_path) == whole
    assert len(caplog.messages) == 1
    assert "prepared by an earlier version" in caplog.messages[0]
    assert verify_prepared(directory) == []
    caplog.clear()
    make_store(kind, tmp_path)
    assert not caplog.messages


def test_a_cache_that_cannot_be_read_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = make_store("text", tmp_path)

    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", fail)
        with pytest.raises(UserError, match=r"cannot be read \(Input/output error\)"):
            make_store("text", tmp_path)
    assert verify_prepared(directory) == []


def test_a_damaged_cache_that_cannot_be_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = make_store("text", tmp_path)
    (directory / "train.lines").unlink()

    def fail(_: Path) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(fingerprint_module, "discard", fail)
    with pytest.raises(UserError, match=r"damaged, and it cannot be removed \(Read-only file system\)"):
        make_store("text", tmp_path)


def test_what_another_process_takes_away_is_made_again(tmp_path: Path) -> None:
    """It has seen the damaged directory of before, and does not know that this is a new one."""
    made: list[int] = []

    def make(fail: int) -> Callable[[], int]:
        def act() -> int:
            made.append(1)
            if len(made) <= fail:
                raise DamagedStore("gone")
            return len(made)

        return act

    assert found_or_made(tmp_path / "x", lambda _: 0, make(2)) == 3
    made.clear()
    with pytest.raises(DamagedStore, match="gone"):
        found_or_made(tmp_path / "x", lambda _: 0, make(9))
    assert len(made) == 3


# --- shared ------------------------------------------------------------------------------------------------


def _make(kind: str, root: str) -> str:
    return str(make_store(kind, Path(root)))


def test_preparing_at_the_same_time(tmp_path: Path, expected: Expected) -> None:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        for kind in ("shards", "labelled"):
            root = tmp_path / kind
            write_corpus(root)
            made = pool.starmap_async(_make, [(kind, str(root))] * 4).get(timeout=300)
            assert len(set(made)) == 1
            assert len(entries(root)) == len(expected[kind][0])
            assert contents(kind, Path(made[0]), root) == expected[kind][1]


# --- full --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_at_every_write_is_one_sentence(kind: str, tmp_path: Path, expected: Expected) -> None:
    """A disk that is full from some write on: nothing is left of what was begun."""
    real = os.write
    number, root = 0, tmp_path
    for number in range(200):
        root = tmp_path / str(number)
        write_corpus(root)
        left = number

        def write(descriptor: int, data: Any) -> int:
            nonlocal left
            if not left:
                raise OSError(errno.ENOSPC, "No space left on device")
            left -= 1
            return real(descriptor, data)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "write", write)
            try:
                make_store(kind, root)
            except UserError as error:
                assert "cannot write the" in str(error)
                assert "No space left on device" in str(error)
                assert entries(root) == []
            else:
                break
    assert number > 3
    assert contents(kind, make_store(kind, root), root) == expected[kind][1]


FULL_DISK = """
import subprocess, sys
from pathlib import Path
from data.damage import make_store
from dragoman.errors import UserError
root = Path(sys.argv[1])
make_store("shards", root)
told = set()
for size in (16, 32, 48, 64, 96, 128, 160, 200, 1000):
    for name in ("cache", "disk"):
        subprocess.run(["rm", "-rf", root / name], check=True)
        (root / name).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", root / "cache"], check=True)
    try:
        make_store("shards", root)
        told.add("made")
    except UserError as error:
        assert "No space left on device" in str(error) or "bytes" in str(error), error
        told.add("full")
        assert not list((root / "cache").iterdir()), size
        assert not list((root / "disk").glob(".*")), size
    subprocess.run(["umount", "-l", root / "cache"], check=True)
print(sorted(told))
"""


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    """A small file system in a mount namespace of its own, where the system allows one."""
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    mount = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", tmp_path]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this system does not let us mount")
    tests = str(Path(__file__).parents[1])
    done = subprocess.run(
        ["unshare", "-rm", sys.executable, "-c", FULL_DISK, tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": tests},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['full', 'made']"

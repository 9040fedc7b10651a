"""Files that are read only if they are files, and written as a whole or not at all."""

import os
import socket
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.files import open_regular, read_regular

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

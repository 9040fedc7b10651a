"""What can be known on Linux about Windows and macOS: nothing here has been run on them."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman import system, unfinished
from dragoman.errors import UserError
from dragoman.files import (
    hash_file,
    new_directory,
    open_to_append,
    remove_all_unfinished,
    replace_file,
    replacing,
    scratch_directory,
    try_lock,
)
from elsewhere import PREAMBLE, like_windows
from toy import toy_pairs, write_pairs

SOURCE = Path(dragoman.__file__).parent
ONLY_ON_UNIX = {
    "os": "fork forkpty getuid geteuid getgid pread pwrite fchmod fchown chown sched_getaffinity killpg "
    "setsid nice getloadavg mkfifo statvfs posix_fadvise sendfile sync fdatasync wait "
    "O_NONBLOCK O_NOCTTY O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_SYNC",
    "signal": "SIGKILL SIGHUP SIGUSR1 SIGUSR2 SIGALRM SIGCHLD SIGQUIT SIGPIPE alarm setitimer pause sigwait",
    "select": "poll epoll kqueue POLLIN",
    "time": "tzset",
}
UNIX_MODULES = {"fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "curses"}
RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(10))}


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tmp_path.is_dir()  # made before: pytest wants to know the number of its user
    monkeypatch.setenv("LOGNAME", "somebody")
    like_windows(monkeypatch)


def only_on_unix(text: str) -> list[str]:
    """Names that Windows does not have, and imports of modules that it does not have. Imports inside of
    functions are for who has asked for the platform before."""
    tree = ast.parse(text)
    found = [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ONLY_ON_UNIX.get(ast.unparse(node.value), "").split()
    ]
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found += [name for name in names if name in UNIX_MODULES]
    return found


def test_nothing_is_used_that_windows_lacks() -> None:
    assert only_on_unix("import fcntl\nos.fork()\nos.kill(1, signal.SIGKILL)") == [
        "os.fork",
        "signal.SIGKILL",
        "fcntl",
    ]
    found = {
        str(path.relative_to(SOURCE)): only_on_unix(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")
    }
    assert {name: names for name, names in found.items() if names} == {}


@pytest.mark.usefixtures("windows")
def test_files_and_directories_are_replaced_as_windows_lets_them(tmp_path: Path) -> None:
    path, directory = tmp_path / "file", tmp_path / "made"
    for data in (b"old\n", b"new\r\n"):
        replace_file(path, data)
        assert path.read_bytes() == data
    directory.mkdir()
    with new_directory(directory) as work:
        (work / "a").write_bytes(b"1")
    with new_directory(directory, replace_existing=True) as work:
        (work / "b").write_bytes(b"2")
    with new_directory(directory, keep_existing=True) as work:
        (work / "c").write_bytes(b"3")
    with pytest.raises(FileExistsError), new_directory(directory):
        pass
    with scratch_directory(tmp_path) as work:
        (work / "d").write_bytes(b"4")
    assert sorted(str(entry.relative_to(tmp_path)) for entry in tmp_path.rglob("*")) == [
        "file",
        "made",
        "made/b",
    ]


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("kind", ["file", "directory"])
def test_only_what_the_dead_have_left_is_removed(tmp_path: Path, kind: str) -> None:
    with replacing(tmp_path / "out") if kind == "file" else new_directory(tmp_path / "out"):
        before = sorted(tmp_path.iterdir())
        entry = next(path for path in before if path.name.endswith(".unfinished"))
        assert unfinished.is_locked(entry)
        remove_all_unfinished(tmp_path)
        assert sorted(tmp_path.iterdir()) == before
    dead = tmp_path / ".out.0123abcd.unfinished"
    dead.mkdir() if kind == "directory" else dead.touch()
    (tmp_path / ".gone.0123abcd.unfinished.lock").touch()  # killed between two deletions
    assert not unfinished.is_locked(dead)
    remove_all_unfinished(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("windows")
def test_a_lock_holds_against_others_and_its_file_can_be_read_by_its_holder(
    tmp_path: Path,
) -> None:
    path = tmp_path / "part"
    with open_to_append(path, readable=True) as file, open_to_append(path) as other:
        assert try_lock(file.fileno()) is True
        assert try_lock(other.fileno()) is False
        file.write(b"line\n")
        file.flush()
        assert system.read_at(file.fileno(), 10, 1) == b"ine\n"
    assert len(hash_file(path)) == 64


@pytest.mark.usefixtures("windows")
def test_what_stands_for_what_windows_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert system.user() == "somebody"
    assert system.usable_cores() == (os.cpu_count() or 1)
    assert [number.name for number in system.stop_signals()] == ["SIGINT", "SIGTERM"]
    monkeypatch.delattr("select.poll")
    reading, writing = os.pipe()
    assert not system.has_input(reading)
    os.write(writing, b"x")
    assert system.has_input(reading)
    os.close(reading)
    os.close(writing)


PROGRAM = """
import contextlib, io, json, threading, urllib.request
from pathlib import Path
from dragoman import system
system.WINDOWS = True
from dragoman.cli.main import app
from dragoman.serve import run as serving

def dragoman(*arguments):
    said = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with contextlib.redirect_stdout(said):
        app([str(each) for each in arguments], standalone_mode=False)
    said.flush()
    return said.buffer.getvalue().decode()

src, tgt, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
run = folder / "run"
small = ["model.num_layers=1", "model.model_dim=16", "model.num_heads=2", "train.batch_tokens=200",
         "tokenizer.vocab_size=300", "train.device=cpu", "train.validate_sentences=2", "data.valid_size=8"]
every = ["train.max_updates=2", "train.validate_every=2", "train.save_every=2", "train.log_every=1"]
dragoman("corpus", src, tgt)
dragoman("train", src, tgt, "--out", run, "-q", *small, *every)
dragoman("verify", run)
told = {"translate": dragoman("translate", run, "ab c", "--device", "cpu")}
dragoman("translate", run, "--input", src, "--out", folder / "out.txt", "--device", "cpu")
told["lines"] = (folder / "out.txt").read_bytes().count(bytes([10]))
begun = serving.Server.__init__

def remember(server, *arguments):
    begun(server, *arguments)
    told["server"] = server

def ready(address):
    def ask():
        body = json.dumps({"q": "ab c", "source": "en", "target": "de"}).encode()
        asked = urllib.request.Request(address + "translate", body, {"Content-Type": "application/json"})
        try:
            told["answer"] = json.load(urllib.request.urlopen(asked, timeout=60))["translatedText"]
        finally:
            told.pop("server").stop()
    threading.Thread(target=ask, daemon=True).start()

serving.Server.__init__ = remember
until = serving.until_stopped
serving.until_stopped = lambda gate, limits, host, port, _: until(gate, limits, host, port, ready)
dragoman("serve", run, "--port", "0", "--device", "cpu")
names = [str(path.relative_to(folder)) for path in folder.rglob("*")]
print(json.dumps({**told, "names": names}))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What the main commands did in a process without `fcntl` and `fork`."""
    import json

    folder = tmp_path_factory.mktemp("elsewhere")
    src, tgt = write_pairs(tmp_path_factory.mktemp("data"), toy_pairs(60))
    environment = {**os.environ, "LOGNAME": "somebody", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE + PROGRAM, src, tgt, str(folder)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_main_commands_run_without_fcntl_and_fork(told: dict[str, object]) -> None:
    assert told["lines"] == 60
    assert isinstance(told["answer"], str) and told["translate"]  # of a model that knows nothing yet


def test_what_they_write_has_names_that_windows_and_macos_take(told: dict[str, object]) -> None:
    names = told["names"]
    assert isinstance(names, list) and len(names) > 20
    for name in names:
        for part in Path(name).parts:
            assert not re.search(r'[<>:"\\|?*\x00-\x1f]', part) and part[-1] not in " .", name
            assert part.split(".")[0].lower() not in RESERVED, name
            assert not name.endswith(".unfinished.lock")
    assert len({name.casefold() for name in names}) == len(names)


@pytest.mark.parametrize("text", [r"C:\data\train.en", "C:/data/train.en", r"\\server\share\train.en"])
def test_paths_with_drive_letters_are_not_taken_for_fields_or_addresses(text: str) -> None:
    from dragoman.training.draft import split_arguments

    assert split_arguments([text, "train.max_updates=2"]) == ([text], ["train.max_updates=2"])


def test_apples_gpu_is_taken_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from dragoman.nn.loss import widest
    from dragoman.runs.opening import pick_device

    assert widest(torch.device("mps")) == torch.float32 and widest(torch.device("cpu")) == torch.float64
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert pick_device("auto") == torch.device("cpu")
    with pytest.raises(UserError, match=r"device: 'mps' cannot be used here \("):
        pick_device("mps")
    with pytest.raises(UserError, match="use auto, cpu, cuda, cuda:1 and so on, or mps"):
        pick_device("apple")

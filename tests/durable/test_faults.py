"""Files that cannot be read, disks that are full or read-only, too little memory: one sentence each."""

import errno
import os
import re
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from typer.testing import CliRunner, Result

from children import Ended, command, run
from dragoman import checkpoint
from dragoman.cli.main import app, main
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.learning.validation import DecoderValidator
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Outcome, Run
from dragoman.runs.opening import open_predictor
from dragoman.training import loop
from dragoman.training.api import resume
from dragoman.training.display import NoDisplay
from dragoman.training.session import closing_lines, train_run
from toy import toy_pairs

MakeConfig = Callable[..., RunConfig]
LINES = "".join(f"{source}\n" for source, _ in toy_pairs(3, seed=3))
PAIRS = "".join(f"{source}\t{target}\n" for source, target in toy_pairs(3, seed=3))


@pytest.fixture
def copy(trained: Run, tmp_path: Path) -> Path:
    (tmp_path / "lines.txt").write_text(LINES, "utf-8")
    (tmp_path / "pairs.tsv").write_text(PAIRS, "utf-8")
    return shutil.copytree(trained.directory, tmp_path / "run")


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def assert_one_sentence(result: Result, *words: str) -> None:
    assert isinstance(result.exception, UserError), (result.exception, result.output)
    assert_sentence(str(result.exception), *words)


def assert_sentence(text: str, *words: str) -> None:
    assert "\n" not in text and not re.search(r"\.[0-9a-f]{8}\.unfinished", text), text
    assert all(word in text for word in words), text


@contextmanager
def refused(concerned: Callable[[str], bool], number: int, names: tuple[str, ...]) -> Iterator[list[str]]:
    """Inside, calls of `os` about some paths fail. They are listed."""
    failed: list[str] = []

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            writes = name != "open" or args[1] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR) or "read" in names
            path = os.fspath(args[0]) if not isinstance(args[0], int) else ""
            if writes and concerned(path):
                failed.append(path)
                raise OSError(number, os.strerror(number), path)
            return real(*args, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            if name != "read":
                patch.setattr(os, name, wrapped(name, getattr(os, name)))
        yield failed


# --- what cannot be read is not damaged --------------------------------------------------------------


@pytest.mark.parametrize(
    "number, file",
    [
        (errno.EACCES, "manifest.json"),
        (errno.EIO, "model.safetensors"),
        (errno.ESTALE, "state.json"),
        (errno.ETIMEDOUT, "optim.safetensors"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_stays_where_it_is(copy: Path, number: int, file: str) -> None:
    before = sorted(path.name for path in (copy / "checkpoints").iterdir())
    unreadable = f"0000004/{file}"
    with refused(lambda path: path.endswith(unreadable), number, ("open", "read")) as failed:
        for arguments in (["resume", copy, "train.max_updates=6", "-q"], ["translate", copy, "a"]):
            result = invoke(*arguments)
            assert_one_sentence(result, unreadable, "cannot be read", os.strerror(number))
    assert failed
    assert sorted(path.name for path in (copy / "checkpoints").iterdir()) == before
    assert resume(copy, ["train.max_updates=5"], quiet=True).last == "0000005"


def test_a_best_checkpoint_that_cannot_be_read_is_not_forgotten(copy: Path) -> None:
    best = Run.open(copy).best
    assert best is not None
    shutil.rmtree(copy / "checkpoints" / "0000004") if best["name"] != "0000004" else None
    with refused(lambda path: path.endswith(f"{best['name']}/state.json"), errno.EIO, ("open", "read")):
        assert_one_sentence(invoke("resume", copy, "-q"), best["name"], "cannot be read")
    assert Run.open(copy).best == best


def test_nothing_is_removed_while_an_older_checkpoint_cannot_be_read(copy: Path) -> None:
    names = checkpoint.names(copy / "checkpoints")
    with refused(lambda path: path.endswith("0000003/state.json"), errno.EIO, ("open", "read")):
        resume(copy, ["train.max_updates=5", "train.keep=3"], quiet=True)
    assert set(names) <= set(checkpoint.names(copy / "checkpoints"))


@pytest.mark.parametrize("name", ["manifest.json", "config.yaml", "best.json", "tokenizer.json"])
def test_a_file_of_a_run_that_cannot_be_read_is_named(copy: Path, name: str) -> None:
    with refused(lambda path: path == str(copy / name), errno.EACCES, ("open", "read")):
        assert_one_sentence(invoke("translate", copy, "a"), f"run/{name}: cannot be read (Permission denied)")


def test_paths_in_commands_that_are_suggested_can_be_pasted(trained: Run, tmp_path: Path) -> None:
    odd = Run.open(shutil.copytree(trained.directory, tmp_path / "my run; rm $HOME"))
    quoted = f"'{odd.directory}'"
    stopped = Outcome("stopped by Ctrl-C", 3, 130)
    lines = closing_lines(odd, stopped, 1.0) + closing_lines(odd, Outcome("done", 4), 1.0)
    assert [f"continue with:  dragoman resume {quoted}", f"translate with:  dragoman translate {quoted}"] == [
        line for line in lines if "dragoman " in line
    ]
    with pytest.raises(UserError) as caught:
        open_predictor(odd)
    assert f"dragoman finetune {quoted} FILES" in str(caught.value)


# --- what is not a file ------------------------------------------------------------------------------

FILES = [
    "manifest.json",
    "config.yaml",
    "tokenizer.json",
    "best.json",
    "metrics.jsonl",
    "timing.jsonl",
    "log.txt",
]
FILES += [f"checkpoints/0000004/{name}" for name in ("manifest.json", "model.safetensors", "state.json")]


@pytest.mark.parametrize("kind", ["named pipe", "device", "directory"])
def test_nothing_waits_for_what_is_not_a_file(copy: Path, tmp_path: Path, kind: str) -> None:
    """A process of its own: it would be ended if it waited."""
    for name in FILES:
        path, aside = copy / name, tmp_path / "aside"
        path.rename(aside)
        if kind == "directory":
            path.mkdir()
        elif kind == "device":
            path.symlink_to("/dev/zero")
        else:
            os.mkfifo(path)
        ended = run(command("resume", copy, "-q"), tmp_path / "output")
        damaged = "checkpoints" in name
        if damaged:
            (copy / "checkpoints" / "0000004.damaged").rename(tmp_path / "moved")
            shutil.rmtree(tmp_path / "moved")
        assert ended.status == (0 if damaged else 2), (name, ended)
        assert damaged or (ended.text.count("\n") == 1 and path.name in ended.text), ended
        if not damaged:
            path.rmdir() if kind == "directory" else path.unlink()
            aside.rename(path)


# --- read-only and full ------------------------------------------------------------------------------

WRITES = ("open", "mkdir", "rename", "replace", "unlink", "rmdir", "link")
COMMANDS = {
    "resume": ["train.max_updates=6", "-q"],
    "average": ["--last", "2"],
    "evaluate": ["{folder}/pairs.tsv", "--bootstrap", "0"],
    "export": [],
    "translate": ["--input", "{folder}/lines.txt", "--out", "{folder}/run/out"],
    "embed": ["{folder}/lines.txt", "--out", "{folder}/run/out.npy"],
    "back-translate": ["{folder}/lines.txt", "--out", "{folder}/run/out"],
    "distill": ["--out", "{folder}/run/student", "--no-train", "-q", "--beam", "1"],
}


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_run_that_may_not_be_written_to(copy: Path, name: str, number: int) -> None:
    before = contents(copy)
    options = [option.format(folder=copy.parent) for option in COMMANDS[name]]
    with refused(lambda path: path.startswith(str(copy)), number, WRITES) as failed:
        result = invoke(name, copy, *options)
    assert failed
    assert_one_sentence(result, str(copy), os.strerror(number))
    assert contents(copy) == before


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_reading_commands_work_on_a_run_that_may_not_be_written_to(copy: Path) -> None:
    with refused(lambda path: path.startswith(str(copy)), errno.EROFS, WRITES):
        for arguments in (
            ["translate", copy, "a b"],
            ["export", copy, "--out", copy.parent / "out", "--shortlist"],
        ):
            result = invoke(*arguments)
            assert result.exit_code == 0, result.exception


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "resume"])
def test_a_disk_that_is_full_at_every_write(copy: Path, name: str) -> None:
    """Each call in turn finds no space, until the command is through."""
    options = [option.format(folder=copy.parent) for option in COMMANDS[name]]
    pristine = shutil.copytree(copy, copy.parent / "pristine")
    for place in range(0, 400, 13 if name in ("distill", "export", "average") else 4):
        outcome, reached = with_full_disk(place, copy, name, *options)
        if not reached:
            assert outcome.exit_code == 0, outcome.exception
            return
        if outcome.exception is not None:
            assert_one_sentence(outcome)
            told = str(outcome.exception)
            assert "No space left on device" in told or "the disk is full" in told, told
        hidden = [path.name for path in copy.rglob(".*") if path.name not in (".lock", ".prepared")]
        assert hidden == []
        shutil.rmtree(copy)
        shutil.copytree(pristine, copy)
    raise AssertionError("the command never came through")


def with_full_disk(place: int, *arguments: object) -> tuple[Result, bool]:
    count = 0

    def wrapped(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            nonlocal count
            writes = name != "open" or args[1] & os.O_CREAT
            count += bool(writes)
            if writes and count == place + 1:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args, **named)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("open", "write", "fsync", "mkdir", "rename", "replace"):
            patch.setattr(os, name, wrapped(name, getattr(os, name)))
        result = invoke(arguments[1], arguments[0], *arguments[2:])
    return result, count > place


def test_too_little_space_is_told_before_training(
    tmp_path: Path, make_config: MakeConfig, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Run.create(tmp_path / "run", make_config(), prepared)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=5000))
    monkeypatch.setattr(loop, "learn", None)
    with pytest.raises(UserError, match=r"disk is full: a checkpoint needs [\d,]+ bytes and 5,000 are free"):
        train_run(made, NoDisplay())
    assert made.last is None


def test_space_for_few_checkpoints_is_a_warning(
    tmp_path: Path, make_config: MakeConfig, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Run.create(tmp_path / "run", make_config(), prepared)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=200_000))
    train_run(made, NoDisplay())
    log = (made.directory / "log.txt").read_text("utf-8")
    assert "make room, or lower train.keep" in log and "200,000 bytes are free" in log


# --- memory ------------------------------------------------------------------------------------------


def too_much(*_: object, **__: object) -> None:
    torch.empty(1 << 60, dtype=torch.uint8)  # a CPU's allocator says so with a plain RuntimeError


def python_too_much(*_: object, **__: object) -> None:
    raise MemoryError


@pytest.mark.parametrize("fail", [too_much, python_too_much])
def test_too_little_memory_for_an_update(
    tmp_path: Path,
    make_config: MakeConfig,
    prepared: Prepared,
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[..., None],
) -> None:
    made = Run.create(tmp_path / "run", make_config(), prepared)
    with monkeypatch.context() as patch, pytest.raises(UserError) as caught:
        patch.setattr(loop, "learn", fail)
        train_run(made, NoDisplay())
    assert_sentence(str(caught.value), "out of memory on cpu with a batch of", "train.batch_tokens below 120")
    with monkeypatch.context() as patch, pytest.raises(UserError) as caught:
        patch.setattr(DecoderValidator, "run", fail)
        train_run(made, NoDisplay())
    assert_sentence(
        str(caught.value), "out of memory on cpu", "train.batch_tokens", "the last checkpoint is 0000001"
    )


def test_another_runtime_error_is_a_bug(
    tmp_path: Path, make_config: MakeConfig, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("shape mismatch")

    monkeypatch.setattr(loop, "learn", fail)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        train_run(Run.create(tmp_path / "run", make_config(), prepared), NoDisplay())


def test_a_limit_of_memory(tmp_path: Path, plain: dict[str, Any]) -> None:
    """The address space may grow by 32 MB, and the model has 100 MB."""
    large = plain | {"model": plain["model"] | {"model_dim": 512, "num_layers": 6, "ff_dim": 1024}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(large), "utf-8")

    def act() -> None:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
        limit = pages * resource.getpagesize() + (32 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        command("train", tmp_path / "recipe.yaml", "--out", tmp_path / "run", "-q")()

    if not Path("/proc/self/statm").exists():
        pytest.skip("this system does not tell how much memory a process has")
    ended: Ended = run(act, tmp_path / "output")
    assert ended.status == 2, ended.text
    assert ended.text.startswith("dragoman: ") and ended.text.count("\n") == 1
    assert "out of memory" in ended.text and "train.batch_tokens" in ended.text


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("std::bad_alloc"), OSError(errno.ENOMEM, "no memory")]
)
def test_every_command_says_that_memory_is_short(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    said = main_with(error, monkeypatch, capsys)
    assert said.startswith("dragoman: out of memory: lower train.batch_tokens")


def test_every_command_says_what_the_system_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = PermissionError(errno.EACCES, "Permission denied", "some/file")
    assert main_with(error, monkeypatch, capsys) == "dragoman: some/file: Permission denied\n"
    assert main_with(OSError("odd"), monkeypatch, capsys) == "dragoman: odd\n"


def main_with(error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    def fail() -> None:
        raise error

    monkeypatch.setattr("dragoman.cli.main.app", fail)
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    return capsys.readouterr().err

"""Several processes on one directory, stopped processes, and clocks that are set back."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from checkpoint.saved import assert_is, save
from children import begin, command, end, run
from dragoman import checkpoint, files
from dragoman.cli.main import app
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.api import open_or_create
from dragoman.training.display import NoDisplay
from dragoman.training.plan import Plan
from dragoman.training.session import train_run
from killing import assert_same_checkpoint

MakeConfig = Callable[..., RunConfig]
PROCESSES = 3


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the processes has its directory complete before any of them gives it its name."""
    barrier = multiprocessing.get_context("fork").Barrier(PROCESSES)
    complete, met = files.sync_tree, []

    def wait(directory: Path) -> None:
        complete(directory)
        if directory.name.startswith((".out.", ".run.")) and not met:
            met.append(barrier.wait(100))

    monkeypatch.setattr(files, "sync_tree", wait)


def together(tmp_path: Path, *arguments: object) -> tuple[list[int], list[str]]:
    outputs = [tmp_path / f"output{number}" for number in range(PROCESSES)]
    children = [begin(command(*arguments), output) for output in outputs]
    ended = [end(child, output) for child, output in zip(children, outputs, strict=True)]
    return sorted(one.status for one in ended), sorted(one.text for one in ended)


def hidden(directory: Path) -> list[str]:
    return [
        path.name for path in directory.iterdir() if path.name.startswith(".") and path.name != ".prepared"
    ]


@pytest.mark.usefixtures("meet")
def test_of_several_trainings_into_one_directory_one_wins(tmp_path: Path, plain: dict[str, Any]) -> None:
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    statuses, texts = together(tmp_path, "train", tmp_path / "recipe.yaml", "--out", tmp_path / "run", "-q")
    assert statuses == [0, 2, 2], texts
    told = "another process has just written it; choose another directory with --out"
    assert texts == ["", *[f"dragoman: {tmp_path}/run: {told}\n"] * 2]
    assert Run.open(tmp_path / "run").last == "0000004"
    assert hidden(tmp_path) == []


@pytest.mark.usefixtures("meet")
@pytest.mark.parametrize("engine", ["ctranslate2", "huggingface"])
def test_of_several_exports_into_one_directory_one_wins(tmp_path: Path, trained: Run, engine: str) -> None:
    statuses, texts = together(
        tmp_path, "export", trained.directory, "--to", engine, "--out", tmp_path / "out"
    )
    assert statuses == [0, 2, 2], texts
    assert sum("another process has just written it" in text for text in texts) == 2
    assert not any("Traceback" in text for text in texts)
    assert hidden(tmp_path) == []


def test_a_run_is_trained_by_one_process(tmp_path: Path, trained: Run) -> None:
    opened = Run.open(shutil.copytree(trained.directory, tmp_path / "run"))
    with opened.locked():
        for name, *options in (("resume",), ("average", "--last", "2")):
            result = CliRunner().invoke(app, [name, str(opened.directory), *options])
            assert isinstance(result.exception, UserError), result.output
            assert "another process is training this run" in str(result.exception)
        result = CliRunner().invoke(app, ["export", str(opened.directory), "--out", str(tmp_path / "out")])
        assert result.exit_code == 0, result.output


def test_a_reader_whose_checkpoint_is_removed_takes_a_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a training that goes on removes old checkpoints."""
    save(tmp_path, 1)
    real = checkpoint.verify_checkpoint

    def verify(path: Path) -> Any:
        if path.name == "0000001":
            save(tmp_path, 2)
            files.discard(path)
        return real(path)

    monkeypatch.setattr(checkpoint, "verify_checkpoint", verify)
    assert_is(checkpoint.newest(tmp_path, pytest.fail), 2)


def test_another_run_that_appears_in_the_meantime_is_not_trained(
    tmp_path: Path, make_config: MakeConfig, prepared: Prepared
) -> None:
    Run.create(tmp_path / "run", make_config("train.clip=7.0"), prepared)
    plan = Plan(make_config(), tmp_path / "run", prepared, None)
    with pytest.raises(UserError, match="another process has just made another run here"):
        open_or_create(plan)


def train_anew(directory: Path, config: RunConfig, prepared: Prepared) -> Run:
    made = Run.create(directory, config, prepared)
    train_run(made, NoDisplay())
    return made


def test_a_process_that_is_stopped_and_goes_on(
    tmp_path: Path, trained: Run, make_config: MakeConfig, prepared: Prepared
) -> None:
    def act() -> None:
        made = Run.create(tmp_path / "run", make_config(), prepared)
        os.kill(os.getpid(), signal.SIGSTOP)
        train_run(made, NoDisplay())

    child = begin(act, tmp_path / "output")
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    with pytest.raises(UserError, match="this exists already"):
        Run.create(tmp_path / "run", make_config(), prepared)
    os.kill(child, signal.SIGCONT)
    assert end(child, tmp_path / "output").status == 0
    assert_same_checkpoint(Run.open(tmp_path / "run"), trained, "0000004")


def test_a_stopped_process_is_not_a_dead_one(tmp_path: Path) -> None:
    path = tmp_path / "file"

    def act() -> None:
        with files.replacing(path) as file:
            file.write(b"slow")
            os.kill(os.getpid(), signal.SIGSTOP)

    child = begin(act, tmp_path / "output")
    os.waitpid(child, os.WUNTRACED)
    files.replace_file(path, b"quick")
    os.kill(child, signal.SIGCONT)
    assert end(child, tmp_path / "output").status == 0
    assert path.read_bytes() == b"slow"
    assert hidden(tmp_path) == []


def test_a_clock_that_is_set_back(
    tmp_path: Path, trained: Run, make_config: MakeConfig, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, asked = time.time, []

    def back() -> float:
        asked.append(1)
        return real() - 400 * 86_400 * len(asked)

    monkeypatch.setattr(time, "time", back)
    monkeypatch.setattr(time, "strftime", lambda *_: f"{2000 - len(asked)}-01-01 00:00:00")
    left = tmp_path / ".run.0123abcd.unfinished"
    left.mkdir()
    os.utime(left, (real() + 1e8, real() + 1e8))
    made = train_anew(tmp_path / "run", make_config(), prepared)
    for path in made.checkpoints.iterdir():
        os.utime(path, (1e9 - int(path.name), 1e9 - int(path.name)))
    train_run(Run.open(made.directory), NoDisplay())
    assert_same_checkpoint(made, trained, "0000004")
    assert hidden(tmp_path) == []


SEVERAL_COMMANDS = """
import shlex, sys
from dragoman.cli.main import app
for line in sys.argv[1:]:
    app(shlex.split(line), standalone_mode=False)
"""


def test_no_command_leaves_anything_among_the_temporary_files(tmp_path: Path, plain: dict[str, Any]) -> None:
    """In a new Python, since torch makes a folder when a part of it is loaded."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(plain), "utf-8")
    (tmp_path / "lines.txt").write_text("a b\nc\n", "utf-8")
    lines = ["train recipe.yaml --out run -q", "embed run lines.txt"]
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL_COMMANDS, *lines],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_command_that_is_told_to_end_removes_what_it_has_begun(tmp_path: Path, trained: Run) -> None:
    def ask_to_end(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def act() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        pytest.MonkeyPatch().setattr(files, "sync_tree", ask_to_end)
        command("export", trained.directory, "--out", tmp_path / "out")()

    assert run(act, tmp_path.parent / "output").status == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_a_killed_evaluation_leaves_nothing_that_the_next_does_not_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def act() -> None:
        with files.scratch_directory() as directory:
            (directory / "file").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    assert run(act, tmp_path.parent / "output").status == -9
    assert len(hidden(tmp_path)) == 1
    with files.scratch_directory():
        assert len(hidden(tmp_path)) == 1
    assert hidden(tmp_path) == []

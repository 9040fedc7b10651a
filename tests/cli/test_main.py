"""The command as a person meets it: exit statuses, one-line errors, help."""

import importlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman.cli import main as command
from dragoman.errors import UserError
from dragoman.extras import install_command
from dragoman.files import beside
from dragoman.training import api
from dragoman.training.budget import Clock

COMMANDS = ["demo", "train", "resume", "translate", "score", "evaluate", "compare", "corpus", "tokenize"]


def run_dragoman(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        encoding="utf-8",
    )


def main_that_raises(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def app() -> None:
        raise error

    monkeypatch.setattr(command, "app", app)
    command.main()


def test_no_arguments_is_help() -> None:
    done = run_dragoman()
    assert "Look inside:" in done.stdout + done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    done = run_dragoman(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"dragoman {name}" in done.stdout or f"{name} [OPTIONS]" in done.stdout


def test_version() -> None:
    assert run_dragoman("--version").stdout == f"dragoman {dragoman.__version__}\n"


def test_a_users_mistake_is_one_line_and_status_2(tmp_path: Path) -> None:
    done = run_dragoman("translate", "runs/none", "hello", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("dragoman: runs/none") and done.stderr.count("\n") == 1


def test_a_wrong_option_is_status_2() -> None:
    done = run_dragoman("train", "--no-such-option")
    assert done.returncode == 2 and done.stdout == ""
    assert (
        done.stderr
        == "dragoman: train: there is no option --no-such-option; the help lists all options:  -h\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("train", "a.tsv", "--preset", "x"),
            "there is no option --preset; set the field:  model.preset=lstm",
        ),
        (("train", "a.tsv", "--test", "b.tsv"), "dragoman evaluate RUN TEST_FILES"),
        (("train", "a.tsv", "--minutse", "2"), "did you mean --minutes?"),
        (
            ("train", "a.tsv", "--minutes", "1.5h"),
            "train --minutes: expected a number of minutes, such as 90 or 0.5",
        ),
        (("train", "a.tsv", "--minutes", "0"), "minutes: expected a number above 0, found 0"),
        (("train", "a.tsv", "lr=0.1"), "lr: unknown field; the field is optim.rate"),
        (("serve", "run", "--port", "80000"), "serve --port: expected at most 65535"),
        (
            ("translate",),
            'translate: RUN is missing; for example:  dragoman translate runs/en-de "Good morning."',
        ),
        (("explain", "run", "a", "--figure", "x"), "explain --figure: 'x' is not one of 'alignment'"),
    ],
)
def test_a_usual_mistake_tells_what_to_type(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text("a\tb\n")
    with pytest.raises(UserError) as error:
        command.app(arguments, standalone_mode=False)
    assert sentence in str(error.value)


def test_a_mistyped_command_is_status_2() -> None:
    done = run_dragoman("trian")
    assert done.returncode == 2 and "train" in done.stderr


def test_user_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main_that_raises(monkeypatch, UserError("a.en:3: empty"))
    assert end.value.code == 2
    assert capsys.readouterr() == ("", "dragoman: a.en:3: empty\n")


def test_a_name_that_is_no_text_is_printed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="utf-8"))
    monkeypatch.setattr(command, "app", lambda: print(os.fsdecode(b"a \xff"), flush=True))
    command.main()
    assert printed.getvalue() == b"a \xff\n"


def test_interrupt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main_that_raises(monkeypatch, KeyboardInterrupt())
    assert end.value.code == 130 and capsys.readouterr().err == ""


@pytest.mark.parametrize("module, extra", [("torch", "train"), ("torch.nn", "train"), ("jaxtyping", "train")])
def test_a_missing_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str, extra: str
) -> None:
    with pytest.raises(SystemExit) as end:
        main_that_raises(monkeypatch, ModuleNotFoundError(f"No module named '{module}'", name=module))
    assert end.value.code == 2
    assert install_command(extra) in capsys.readouterr().err


def test_a_missing_module_of_our_own_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModuleNotFoundError):
        main_that_raises(
            monkeypatch, ModuleNotFoundError("No module named 'dragoman.nn.lost'", name="dragoman.nn.lost")
        )


def test_an_unexpected_error_keeps_its_traceback() -> None:
    program = (
        "from dragoman.cli import main as command\n"
        "@command.app.command()\n"
        "def fail() -> None: raise ZeroDivisionError('a bug')\n"
        "import sys; sys.argv = ['dragoman', 'fail']; command.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback (most recent call last)" in done.stderr and "ZeroDivisionError: a bug" in done.stderr


@pytest.mark.parametrize("name", ["train", "resume", "translate", "score", "evaluate", "demo"])
def test_without_torch_the_message_says_what_to_install(name: str, tmp_path: Path) -> None:
    """An installation without the extra `train`, as `pip install dragoman` makes it."""
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from dragoman.cli.main import main\n"
        "sys.argv[0] = 'dragoman'; main()"
    )
    for file in ("a.en", "a.de"):
        (tmp_path / file).write_text("x\ny\n")
    arguments = {"demo": [], "train": ["a.en", "a.de"], "score": ["runs/x", "a.en", "a.de"]}.get(
        name, ["runs/x"]
    )
    done = subprocess.run(
        [sys.executable, "-c", program, name, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2, done.stderr
    needs, extra = ("the demo", "demo") if name == "demo" else ("this command", "train")
    command = install_command(extra)
    assert done.stderr == f"dragoman: {needs} needs the package 'torch': install it with  {command}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "a.en"]


@pytest.mark.parametrize(
    "command", ["corpus a.en a.de", "filter a.en a.de -o b", "align-corpus a.en a.de -o c"]
)
def test_what_works_without_torch(command: str, tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = sys.modules['jaxtyping'] = None\n"
        "from dragoman.cli.main import main\nmain()"
    )
    for file in ("a.en", "a.de"):
        (tmp_path / file).write_text("".join(f"word {n}\n" for n in range(20)))
    called = [sys.executable, "-c", program, *command.split()]
    done = subprocess.run(called, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_is_no_error() -> None:
    """`dragoman … | head`: no traceback, no «Exception ignored»."""
    program = (
        "from dragoman.cli import main as command\n"
        "@command.app.command()\n"
        "def talk() -> None:\n"
        "    for _ in range(100000): print('line')\n"
        "import sys; sys.argv = ['dragoman', 'talk']; command.main()"
    )
    talker = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert talker.stdout is not None and talker.stderr is not None
    talker.stdout.read(5)
    talker.stdout.close()
    assert talker.stderr.read() == b""
    assert talker.wait() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a shell that closes streams")
@pytest.mark.parametrize(
    ("closed", "status", "told"),
    [
        (">/dev/full", 2, "dragoman: No space left on device\n"),
        ("<&-", 0, ""),
        (">&-", 2, "dragoman: Bad file descriptor\n"),
        ("<&- >&- 2>&-", 2, ""),
    ],
)
def test_a_closed_stream_is_never_a_file_that_is_written(
    closed: str, status: int, told: str, tmp_path: Path
) -> None:
    """The next file would have its number, and what a library prints would be written into it. What cannot
    be printed is told."""
    program = (
        "from dragoman.cli import main as command\n"
        "@command.app.command()\n"
        "def talk() -> None:\n"
        "    with open('kept', 'w') as kept:\n"
        "        kept.write(f'{kept.fileno() > 2} {command.sys.stdin.read()!r}')\n"
        "    command.typer.echo('said')\n"
        "import sys; sys.argv = ['dragoman', 'talk']; command.main()"
    )
    given = "" if "<" in closed else "</dev/null"
    shell = ["sh", "-c", f'exec "$0" -c "$1" {given} {closed}', sys.executable, program]
    done = subprocess.run(shell, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (status, told)
    assert (tmp_path / "kept").read_text() == "True ''"


def test_a_neighbour_of_a_directory_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert beside(Path("runs/a"), "-student") == Path("runs/a-student")
    assert beside(Path(), "-student") == tmp_path.with_name(f"{tmp_path.name}-student")
    monkeypatch.chdir("/")
    with pytest.raises(UserError, match="root of all directories"):
        beside(Path(), "-student")


@pytest.mark.parametrize(
    ("arguments", "called"), [(["train", "a.tsv"], "plan_and_train"), (["resume", "run"], "resume")]
)
def test_the_time_of_a_command_begins_before_its_heavy_imports(
    arguments: list[str], called: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ages: list[float] = []

    def note(*given: Any, clock: Clock | None = None, **_: Any) -> None:
        ages.extend(each.seconds() for each in (*given, clock) if isinstance(each, Clock))
        raise UserError("seen")

    monkeypatch.setattr(api, called, note)
    module = importlib.import_module(f"dragoman.cli.{arguments[0]}")
    monkeypatch.setattr(module, "BEGAN", module.BEGAN - 1e6)
    monkeypatch.setattr(sys, "argv", ["dragoman", *arguments])
    with pytest.raises(SystemExit):
        command.main()
    assert len(ages) == 1 and ages[0] > 1e6

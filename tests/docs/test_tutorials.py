"""Each tutorial is followed from its own text: the files it links to are put into an empty directory, and its
shell commands run there one after the other.

Trainings are cut short by a comment of the page, `in tests, train with: field=value …`, which holds until the
next one. A block after the comment `not run in tests` is left out; one after `in one shell` goes to bash as a
whole.
Commands of dragoman run in this process: loading torch for each would take most of the time.
"""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
TUTORIALS = sorted((DOCS / "start").glob("*.md"))
PART = re.compile(
    r"^<!-- (?P<comment>.*?) -->$|^```(?P<language>\w+)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
TRAINING = ("train", "resume", "finetune", "pretrain", "distill")


@dataclass(frozen=True)
class Block:
    commands: str
    settings: tuple[str, ...]
    one_shell: bool


def blocks(text: str) -> list[Block]:
    found, settings, comment = [], (), ""
    for part in PART.finditer(text):
        if part["comment"] is not None:
            comment = part["comment"]
            name, _, value = comment.partition(": ")
            settings = tuple(value.split()) if name == "in tests, train with" else settings
            continue
        if part["language"] == "sh" and not comment.startswith("not run in tests"):
            found.append(Block(part["code"], settings, comment == "in one shell"))
        comment = ""
    return found


def follow(block: Block) -> None:
    if block.one_shell:
        _run_shell(block.commands)
        return
    for line in block.commands.replace("\\\n", " ").splitlines():
        if not line.strip().startswith("dragoman "):
            _run_shell(line)
            continue
        arguments = shlex.split(line, comments=True)[1:]
        if arguments[0] in TRAINING:
            arguments = _short(arguments, block.settings)
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, f"{line}\n{done.output}\n{done.exception!r}"


def _short(arguments: list[str], settings: tuple[str, ...]) -> list[str]:
    """In place of minutes and of numbers of updates, those of the test."""
    if arguments[0] == "resume":
        return [*arguments[:2], "train.max_updates=3"]
    kept = [one for one in arguments if not one.startswith("train.max_updates=")]
    if "--minutes" in kept:
        at = kept.index("--minutes")
        del kept[at : at + 2]
    return [*kept, *settings]


def _run_shell(commands: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = "set -e -o pipefail\n" + re.sub(r"\b5000\b", str(port), commands)
    done = subprocess.run(
        ["bash", "-c", script], env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, f"{commands}\n{done.stdout}\n{done.stderr}"


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("curl") is None, reason="no bash or no curl")
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_can_be_followed(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text("utf-8")
    for name in re.findall(r"\]\(\.\./samples/([^)]+)\)", text):
        shutil.copy(DOCS / "samples" / name, tmp_path)
    found = blocks(text)
    assert len(found) >= 3
    for block in found:
        follow(block)


def test_comments_choose_what_runs() -> None:
    text = "<!-- in tests, train with: a=1 b=2 -->\n```sh\nx\n```\n"
    text += "<!-- not run in tests: y -->\n```sh\ny\n```\n```sh\nz\n```\n"
    assert blocks(text) == [Block("x\n", ("a=1", "b=2"), False), Block("z\n", ("a=1", "b=2"), False)]
    short = _short(["train", "a", "--minutes", "2", "train.max_updates=600"], ("train.max_updates=2",))
    assert short == ["train", "a", "train.max_updates=2"]


def test_the_samples_are_what_their_script_makes() -> None:
    sys.path.insert(0, str(DOCS / "samples"))
    from make_samples import files  # type: ignore[import-not-found]

    there = {
        path.name: path.read_text("utf-8") for path in (DOCS / "samples").iterdir() if path.suffix != ".py"
    }
    there.pop("__pycache__", None)
    assert there == files()


def test_a_sample_of_each_rule() -> None:
    sys.path.insert(0, str(DOCS / "samples"))
    from make_samples import inflected, spelt  # type: ignore[import-not-found]

    assert [inflected("ev", form) for form in ("N;PL;LOC", "N;SG;DAT", "N;SG;POSS1")] == [
        "evlerde",
        "eve",
        "evim",
    ]
    assert inflected("otobüs", "N;SG;ABL") == "otobüsten" and inflected("oda", "N;SG;DAT") == "odaya"
    assert inflected("göz", "N;SG;POSS1") == "gözüm" and inflected("yol", "N;SG;POSS1") == "yolum"
    assert [spelt(n) for n in (0, 15, 40, 99, 100, 2059, 3475)] == [
        *("zero", "fifteen", "forty", "ninety-nine", "one hundred"),
        *("two thousand and fifty-nine", "three thousand four hundred and seventy-five"),
    ]

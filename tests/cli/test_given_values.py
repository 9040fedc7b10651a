"""No command writes over what it reads, and no number is NaN."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.help import check_values, refuse_overwriting
from dragoman.cli.main import app
from dragoman.errors import UserError

LINES = "".join(f"line {number}\n" for number in range(30))


@pytest.mark.parametrize("spelt", ["a.en", "./a.en", "link.en", "@a.en", "hard.en"])
def test_an_output_that_is_read_as_well(spelt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_text(LINES)
    Path("link.en").symlink_to("a.en")
    os.link("a.en", "hard.en")
    for read in ({"input": Path(spelt)}, {"files": [spelt, "b.de"]}, {"prefix": spelt}):
        with pytest.raises(UserError, match=r"--out a\.en: this file is read as well"):
            check_values("translate", {"output": Path("a.en"), **read})
    check_values("translate", {"output": Path("other"), "files": [spelt]})
    check_values("translate", {"output": None, "files": [spelt]})


def test_what_is_no_file_may_be_named_twice(tmp_path: Path) -> None:
    """A directory of runs, a device, and a text that cannot be a name."""
    check_values("export", {"out": tmp_path, "run": tmp_path})
    check_values("translate", {"output": Path("/dev/null"), "input": Path("/dev/null")})
    (tmp_path / "a").touch()
    refuse_overwriting([tmp_path / "a"], ["x" * 9000, "a\0b", ""])


def test_numbers_that_are_none() -> None:
    with pytest.raises(UserError, match=r"^chat --top-p: expected a number, found nan$"):
        check_values("chat", {"top_p": float("nan")})
    check_values("adapt", {"tolerance": float("inf"), "share": 0.5})


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "run", "-i", "a.en", "-o", "a.en"],
        ["filter", "a.en", "a.de", "-o", "a"],
        ["predict", "run", "a.en", "-o", "a.en"],
        ["generate", "run", "-i", "a.en", "--output", "a.en"],
        ["align-corpus", "a.en", "a.de", "-o", "a.de"],
        ["embed", "run", "a.en", "-o", "a.en"],
        ["back-translate", "run", "a.en", "-o", "a.en"],
    ],
    ids=lambda command: command[0],
)
def test_no_command_writes_over_what_it_reads(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de"):
        Path(name).write_text(LINES)
    found = CliRunner().invoke(app, command)
    assert isinstance(found.exception, UserError) and "read as well" in str(found.exception)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.en": LINES, "a.de": LINES}

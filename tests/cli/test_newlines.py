"""Newlines of outputs: kept, escaped so that nothing is lost, or spaces."""

from pathlib import Path

import pytest

from dragoman.cli.output import Newlines
from dragoman.cli.translate import _write_texts
from dragoman.text.segment import escaped

CODE = "def f(x):\n    return '\\n' + x\0"


@pytest.mark.parametrize(
    ("newlines", "alone", "written"),
    [
        ("auto", True, CODE),
        ("auto", False, CODE.replace("\n", " ").replace("\0", " ")),
        ("space", True, CODE.replace("\n", " ").replace("\0", " ")),
        ("keep", False, CODE),
        ("escape", True, "def f(x):\\n    return '\\\\n' + x "),
    ],
)
def test_how_outputs_are_written(newlines: str, alone: bool, written: str, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    _write_texts(lambda texts: [CODE for _ in texts], ["a"], out, Newlines(newlines).writer(alone))
    assert out.read_bytes() == f"{written}\n".encode()


@pytest.mark.parametrize("text", [CODE[:-1], "\\", "\\\\n\n\\n", "a\\\nb"])
def test_nothing_is_lost_by_escaping(text: str) -> None:
    assert "\n" not in escaped(text)
    back = escaped(text).encode().decode("unicode_escape")
    assert back == text

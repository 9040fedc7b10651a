"""Where somebody types: a prompt on a terminal, none in a pipe."""

import os
import pty
import subprocess
import sys

import pytest

from dragoman.cli import predict, texts
from dragoman.data.labelled.config import TaskConfig

ECHO = "from dragoman.cli.texts import input_lines\nfor line in input_lines(None, None): print(f'<{line}>')"


def typed(lines: list[bytes], redirected: bool) -> tuple[str, bytes]:
    """What a terminal shows while somebody types a line at each prompt, and what went to a redirected
    standard output. The last line is Ctrl-D."""
    master, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", ECHO],
        stdin=terminal,
        stdout=subprocess.PIPE if redirected else terminal,
        stderr=terminal,
        env=os.environ | {"TERM": "dumb"},
    )
    os.close(terminal)
    waiting = [*lines, b"\x04"]
    seen, asked = b"", 0
    try:
        while block := os.read(master, 4096):
            seen += block
            while waiting and seen.count(b"> ") > asked:
                asked += 1
                os.write(master, waiting.pop(0))
    except OSError:  # Linux: nobody holds the terminal any more
        pass
    written = child.stdout.read() if child.stdout is not None else b""
    child.wait()
    os.close(master)
    assert child.returncode == 0, seen
    return seen.decode(), written


def test_a_terminal_has_a_prompt() -> None:
    seen, _ = typed([b"guten Tag\n", b"\n", "ja, süß\n".encode()], redirected=False)
    assert "Type a sentence and press Enter. Ctrl-D ends." in seen
    assert "> " in seen and "<guten Tag>" in seen and "<ja, süß>" in seen and "<>" not in seen


def test_the_prompt_is_no_part_of_the_output() -> None:
    seen, written = typed([b"one\n", b"\n", b"two\n"], redirected=True)
    assert "Type a sentence" in seen and "> " in seen
    assert written == b"<one>\n<two>\n"


def test_a_pipe_has_none() -> None:
    done = subprocess.run([sys.executable, "-c", ECHO], input=b"one\n\n", capture_output=True)
    assert (done.stdout, done.stderr) == (b"<one>\n<>\n", b"")


def test_a_mistyped_line_can_be_typed_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(texts, "_prompted_lines", lambda *_: iter(["only one text", "one\ttwo"]))
    examples = list(predict._from_stdin(TaskConfig(kind="pair", labels=("a", "b"))))
    assert [example.texts for example in examples] == [("one", "two")]
    assert "expected two texts, tabs between them" in capsys.readouterr().err

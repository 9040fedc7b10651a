"""`dragoman tokenize` on a small saved tokenizer."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from dragoman.cli.tokenize import draw, tokenize, visible
from dragoman.errors import UserError
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

app = typer.Typer()
app.command()(tokenize)

CLASSIC = " ".join(["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train([CLASSIC], TokenizerConfig(vocab_size=275, word_mark="end"))


@pytest.fixture
def run(tokenizer: Tokenizer, tmp_path: Path) -> Path:
    tokenizer.save(tmp_path / "tokenizer.json")
    return tmp_path


def output(*arguments: object, stdin: str | bytes | None = None) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    if result.exception:
        raise result.exception
    return result.stdout


def test_pieces_and_ids(run: Path, tokenizer: Tokenizer):
    ids = " ".join(map(str, tokenizer.encode("lowest low")))
    assert output(run, "lowest low") == f"low est▁ low ▁\t{ids}\n"
    assert output(run / "tokenizer.json", "lowest low") == f"low est▁ low ▁\t{ids}\n"


def test_steps(run: Path, tokenizer: Tokenizer):
    assert output(run, "lowest", "--steps").splitlines() == [
        "0\t\tl o w e s t ▁",
        "1\te + s\tl o w es t ▁",
        "2\tes + t\tl o w est ▁",
        "3\test + ▁\tl o w est▁",
        "4\tl + o\tlo w est▁",
        "5\tlo + w\tlow est▁",
        f"low est▁\t{' '.join(map(str, tokenizer.encode('lowest')))}",
    ]


def test_json_lines(run: Path, tokenizer: Tokenizer):
    *lines, end = output(run, "low", "ö\u2028", "--json", "--steps").split("\n")
    first, second = map(json.loads, lines)
    assert end == ""
    assert first == {
        "text": "low",
        "pieces": ["low", "▁"],
        "ids": tokenizer.encode("low"),
        "steps": tokenizer.merge_steps("low"),
    }
    assert second["pieces"] == ["<0xC3>", "<0xB6>", "<0xE2>", "<0x80>", "<0xA8>", "▁"]
    assert "steps" not in json.loads(output(run, "low", "--json"))


def test_standard_input_line_by_line(run: Path):
    text = "lowest\n\nlow\u2028low\nlow"
    lines = output(run, stdin=text).split("\n")
    assert [line.split("\t")[0] for line in lines] == [
        "low est▁", "", "low <0xE2> <0x80> <0xA8> low ▁", "low ▁", "",
    ]  # fmt: skip


def test_the_two_sides_of_a_run(tokenizer: Tokenizer, tmp_path: Path):
    tokenizer.save(tmp_path / "tokenizer.src.json")
    Tokenizer.train([], TokenizerConfig(kind="byte")).save(tmp_path / "tokenizer.tgt.json")
    assert output(tmp_path, "low").startswith("low ▁\t")
    assert output(tmp_path, "low", "--side", "src") == output(tmp_path, "low")
    assert output(tmp_path, "low", "--side", "tgt") == "<0x6C> <0x6F> <0x77>\t111 114 122\n"


def test_tables_for_a_terminal(tokenizer: Tokenizer):
    file = io.StringIO()
    draw(
        Console(file=file, width=80, force_terminal=True, color_system=None),
        tokenizer,
        "lowest [b]\t",
        steps=True,
    )
    shown = file.getvalue()
    assert "es + t" in shown and "start" in shown
    assert "low est▁" in " ".join(shown.split())
    assert "<0x5B>" in shown  # a bracket is no markup
    file = io.StringIO()
    draw(Console(file=file, width=80), tokenizer, "", steps=False)
    assert "0 pieces" in file.getvalue()


def test_what_cannot_be_seen_is_escaped():
    assert visible("a\tb\u2028\x00") == "a\\tb\\u2028\\x00"
    assert visible("▁größe") == "▁größe"


def test_mistakes_are_told(run: Path, tmp_path: Path):
    with pytest.raises(UserError, match="nowhere: there is no such file"):
        output(tmp_path / "nowhere", "text")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"empty: not a run.*tokenizer\.json nor tokenizer\.src\.json"):
        output(tmp_path / "empty", "text")
    with pytest.raises(UserError, match="at most 2000 can be shown"):
        output(run, "x" * 2001, "--steps")
    with pytest.raises(UserError, match="standard input:2: not valid UTF-8"):
        output(run, stdin=b"fine\n\xff\n")


def test_the_module_imports_nothing_heavy():
    heavy = "{'torch', 'numpy', 'tokenizers'}"
    code = f"import sys, dragoman.cli.tokenize; print(len({heavy} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"

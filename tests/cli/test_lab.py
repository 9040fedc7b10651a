"""`dragoman lab`, as it is typed."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.lab import print_list
from dragoman.cli.main import app
from dragoman.errors import UserError


def typed(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["lab", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_list_is_by_lecture() -> None:
    text = typed()
    assert text.index("1. Sequence to sequence") < text.index("bottleneck") < text.index("5. Attention")
    assert "· softmax-scale" in text


def test_one_experiment_says_its_verdict_and_where_its_page_is(tmp_path: Path) -> None:
    text = typed("softmax-scale", "--quick", "-o", str(tmp_path))
    assert "holds: softmax 0.8808" in text
    assert (tmp_path / "softmax-scale" / "softmax-scale.html").is_file() and (
        tmp_path / "book.html"
    ).is_file()


def test_a_model_of_ones_own_is_drawn(tmp_path: Path) -> None:
    text = typed("transformer-picture", "model.num_layers=2", "model.model_dim=128", "-o", str(tmp_path))
    assert "holds here for another configuration" in text


def test_a_matrix_is_made_of_ones_own_text(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("a rose is a rose\n")
    text = typed("transition-matrix", "--data", str(tmp_path), "-o", str(tmp_path / "lab"))
    assert "rose" in text and "holds: 3 words" in text


def test_mistakes_are_told_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, sentence in (
        (("nothing",), "there is no experiment 'nothing'"),
        (("masks", "quick"), "there is no experiment 'quick'"),
        (("masks", "--data", str(tmp_path / "none")), "there is no such folder"),
        (("transformer-picture", "model.kind=rnn"), "this picture is of a transformer"),
        (("transition-matrix", "--data", str(tmp_path)), "text.txt: there is no such file"),
        (("masks", "no_such=1"), "no_such: unknown field"),
        (("masks", "train.max_updates=x"), "train.max_updates: expected a whole number"),
        (("bottleneck", "--device", "gpu9"), "device: 'gpu9' is not known"),
    ):
        with pytest.raises(UserError, match=sentence):
            typed(*arguments, "-o", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="this is a file; give the name of a folder"):
        typed("masks", "-o", str(tmp_path / "file"))
    monkeypatch.setattr("dragoman.cli.lab.find_spec", lambda _name: None)
    with pytest.raises(UserError, match="the lab needs the package 'torch'"):
        typed("masks", "-o", str(tmp_path))


def test_claims_are_wrapped_in_a_terminal_and_a_line_each_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    piped: list[str] = []
    print_list(piped.append)
    assert max(len(line.strip().splitlines()) for line in piped) == 1
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    shown: list[str] = []
    print_list(shown.append)
    assert all(len(line) <= 80 for text in shown for line in text.splitlines())
    assert [" ".join(text.split()) for text in shown] == [" ".join(text.split()) for text in piped]

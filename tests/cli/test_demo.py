"""`dragoman demo` from end to end with a model too small to learn."""

import re
from pathlib import Path

import pytest
import typer

import tiny_demo
from dragoman.cli import demo as command
from dragoman.data import demo_dates
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "recipe", tiny_demo.recipe)
    monkeypatch.setattr(demo_dates, "draw_dates", tiny_demo.generate)
    monkeypatch.chdir(tmp_path)


def test_the_whole_demo_and_once_more(tiny: None, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001
    command.demo(out=Path("runs/demo"), quick=True, seed=5)
    first = capsys.readouterr().out
    assert re.search(r"held-out dates +│ +30 │", first)
    assert re.search(r"held-out ways of writing +│ +30 │", first)
    assert "sábado, 9 de mayo de 2026  →" in first
    assert ' translate runs/demo "9 mai 2026"' in first
    assert sorted(path.name for path in Path("runs/demo.data").iterdir()) == [
        "test_dates.tsv",
        "test_ways.tsv",
        "train.tsv",
        "valid.tsv",
    ]
    command.demo(out=Path("runs/demo"), quick=True, seed=5)
    again = capsys.readouterr().out
    assert "update 4/4" in first and "update 4/4" not in again  # it is trained already
    assert _table(first) == _table(again)


def test_another_seed_is_another_run(tiny: None) -> None:  # noqa: ARG001
    command.demo(out=Path("runs/demo"), quick=True, seed=5)
    pairs = Path("runs/demo.data/train.tsv").read_bytes()
    with pytest.raises(UserError, match=r"runs/demo: there is a run with another seed.*--out"):
        command.demo(out=Path("runs/demo"), quick=True, seed=6)
    assert Path("runs/demo.data/train.tsv").read_bytes() == pairs


def test_interrupted_training_ends_the_demo(
    tiny: None,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from dragoman.runs.directory import Outcome
    from dragoman.training.loop import Loop

    monkeypatch.setattr(Loop, "fit", lambda _loop, _stop: Outcome("stopped by Ctrl-C", 2, 130))
    with pytest.raises(typer.Exit) as end:
        command.demo(out=Path("runs/demo"), quick=True, seed=5)
    assert end.value.exit_code == 130
    assert "dragoman resume runs/demo" in capsys.readouterr().out


@pytest.mark.parametrize("quick", [True, False])
def test_the_recipe_is_valid(quick: bool) -> None:
    files = {name: Path(f"{name}.tsv") for name in ("train", "valid")}
    config = resolve_config(command.recipe(files, 7, quick))
    assert config.seed == 7
    assert config.train.max_updates is not None
    assert config.train.max_updates % config.train.validate_every == 0


def test_the_languages_are_counted_right() -> None:
    languages = {locale.partition("_")[0] for locale in demo_dates.LOCALES}
    assert f"in {len(languages)} languages" in (command.demo.__doc__ or "")


def _table(output: str) -> list[str]:
    return [line for line in output.splitlines() if "held-out" in line or "  →  " in line]

"""`dragoman studio`: what it refuses before it listens, and what it says when it does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.cli import demo as demo_command
from dragoman.cli.studio import studio
from dragoman.errors import UserError
from dragoman.studio.workshop import Workshop


class Opened:
    def __init__(self, runs: list[Path], which: str, device: str, text: str) -> None:
        self.runs = {run.name: (which, device, text) for run in runs}
        self.unreadable = {"c": "c: this is not a run directory"}


def test_a_place_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="this is not a run directory"):
        studio([tmp_path])


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.cli.studio.find_spec", lambda name: None if name == "fastapi" else name)
    with pytest.raises(UserError, match=r"the studio needs the package 'fastapi'.*\[studio\]"):
        studio([tmp_path])


def test_it_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []

    def serve(subjects: Opened, port: int, ready: Callable[[str], None], _workshop: None) -> None:
        assert subjects.runs == {"a": ("last", "cpu", "x"), "b": ("last", "cpu", "x")}
        ready(f"http://127.0.0.1:{port}/")

    monkeypatch.setattr("dragoman.studio.subjects.Subjects", Opened)
    monkeypatch.setattr("dragoman.studio.app.serve", serve)
    monkeypatch.setattr("webbrowser.open", opened.append)
    runs = [tmp_path / "a", tmp_path / "b"]
    studio(runs, text="x", port=7, browser=True, checkpoint="last", device="cpu")
    told = capsys.readouterr().err
    assert "dragoman: c is left out: c: this is not a run directory\n" in told
    assert "http://127.0.0.1:7/  a, b; only this machine can reach it" in told
    assert opened == ["http://127.0.0.1:7/"]


def test_the_demo_offers_it(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    demo_command.show_next(Console(soft_wrap=True), Path("runs/demo"), {"test_dates": Path("t.tsv")})
    assert f"studio runs/demo --text '{demo_command.SHOWN[0]}' --browser" in capsys.readouterr().out


def test_a_lesson_begins_at_its_first_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve(_subjects: Opened, port: int, ready: Callable[[str], None], _workshop: object) -> None:
        ready(f"http://127.0.0.1:{port}/")

    monkeypatch.setattr("dragoman.studio.subjects.Subjects", Opened)
    monkeypatch.setattr("dragoman.studio.app.serve", serve)
    studio([Path("a")], lesson="attention", port=7)
    assert "http://127.0.0.1:7/#attention?lesson=attention&mode=links  a;" in capsys.readouterr().err
    with pytest.raises(UserError, match="did you mean attention"):
        studio([Path("a")], lesson="atention")


def test_training_needs_no_run_and_has_a_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens: list[str] = []

    def serve(_subjects: object, port: int, ready: Callable[[str], None], workshop: Workshop) -> None:
        tokens.append(workshop.token)
        ready(f"http://127.0.0.1:{port}/")

    monkeypatch.setattr("dragoman.studio.app.serve", serve)
    studio(train=True, port=7)
    assert f"http://127.0.0.1:7/#train?token={tokens[0]}  " in capsys.readouterr().err
    assert len(tokens[0]) >= 32
    with pytest.raises(UserError, match="name a run directory, or add --train"):
        studio()

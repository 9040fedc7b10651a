"""What is written down and shown: the same numbers in files, in a pipe and on a terminal."""

import builtins
import io
import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dragoman.errors import UserError
from dragoman.runs.records import Sample, read_records, read_samples
from dragoman.training.display import (
    NoDisplay,
    Plain,
    Terminal,
    UpdateStatus,
    duration,
    make_display,
    validation_line,
)
from dragoman.training.log import Log, open_tensorboard

STATUS = UpdateStatus(
    1200, 5000, 3, loss=2.5, perplexity=9.25, rate=1.5e-4, tokens_per_second=15_230, seconds_left=125.4
)
METRICS = {"loss": 2.25, "perplexity": 9.4877, "accuracy": 0.512, "forced_loss": 2.2, "free_loss": 3.1}
METRICS |= {"bleu": 31.24, "chrf": 55.5, "exact": 12.5}
SAMPLE = Sample("a house", "ein Haus", "das [bold]Haus[/bold]")


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter(datetime(2026, 5, 9, 12, 0, second) for second in (1, 2, 2, 3))
    display = Plain(lambda: next(clock))
    display.table("Plan", [("model", "tiny"), ("batch", "4,096")])
    display.stage("encode", 10, 100)
    display.stage("encode", 20, 100)
    display.tick(1200, 5000)
    display.status(STATUS)
    display.validation(1200, METRICS, True, [SAMPLE])
    assert capsys.readouterr().out.splitlines() == [
        "Plan",
        "  model  tiny",
        "  batch  4,096",
        "2026-05-09 12:00:01  splitting the text into pieces …",
        "2026-05-09 12:00:02  update 1200/5000  epoch 3  loss 2.500  ppl 9.25  lr 1.50e-04  15.2k tok/s"
        "  left 2:05",
        "2026-05-09 12:00:03  valid at 1200  loss 2.250  ppl 9.49  acc 51.2%  forced 2.200 free 3.100"
        "  BLEU 31.2  chrF 55.5  exact 12.5  (best)",
        "    source     a house",
        "    reference  ein Haus",
        "    output     das [bold]Haus[/bold]",
        "    (ppl: perplexity; acc: correct next tokens; forced, free: loss after the reference, after own"
        " output; exact: % of outputs that are right)",
        "    (train.samples=0 leaves the samples out)",
    ]


def test_a_loss_is_not_told_twice() -> None:
    line = validation_line(7, {**METRICS, "forced_loss": 2.2501}, better=False)
    assert line == "valid at 7  loss 2.250  ppl 9.49  acc 51.2%  free 3.100  BLEU 31.2  chrF 55.5  exact 12.5"


def test_bleu_of_single_words_is_not_told() -> None:
    """It is 0 however right they are, for it counts sequences of four words."""
    right = {"loss": 0.05, "bleu": 0.0, "chrf": 100.0, "exact": 100.0}
    assert validation_line(7, right, better=False) == "valid at 7  loss 0.050  chrF 100.0  exact 100.0"
    wrong = {"loss": 3.0, "bleu": 0.0, "chrf": 9.0, "exact": 0.0}
    assert "BLEU 0.0" in validation_line(7, wrong, better=False)


def test_the_loss_is_that_of_validations_and_the_objective_stands_beside_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Plain().status(replace(STATUS, objective=2.75))
    assert "loss 2.500  ppl 9.25  objective 2.750  lr" in capsys.readouterr().out
    Plain().status(replace(STATUS, objective=2.50004))
    assert "objective" not in capsys.readouterr().out


def test_a_narrow_terminal_breaks_between_numbers() -> None:
    screen = io.StringIO()
    Terminal(Console(file=screen, width=61)).validation(1200, METRICS, False, [])
    lines = screen.getvalue().splitlines()[:3]
    assert all(len(line) <= 61 for line in lines)
    assert [line.strip() for line in lines][:2] == [
        "valid at 1200  loss 2.250  ppl 9.49  acc 51.2%",
        "forced 2.200 free 3.100  BLEU 31.2  chrF 55.5  exact 12.5",
    ]


def test_a_pipe_is_not_flooded(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers of updates come every five seconds, and the last in any case."""
    seconds = [0, 0, 1, 4, 5, 5, 6, 6]
    clock = iter(datetime(2026, 5, 9, 12, 0, second) for second in seconds)
    display = Plain(lambda: next(clock))
    for update in (10, 20, 30, 40, 50):
        display.status(replace(STATUS, update=update, total=50))
    shown = re.findall(r"12:00:(\d\d)  update (\d+)", capsys.readouterr().out)
    assert shown == [("00", "10"), ("05", "40"), ("06", "50")]


def test_a_terminal_shows_bar_numbers_and_samples() -> None:
    screen = io.StringIO()
    display = Terminal(Console(file=screen, force_terminal=True, width=100, highlight=False))
    display.stage("encode", 10, 100)
    display.table("Plan", [("model", "tiny")])
    display.status(STATUS)
    display.tick(1200, 5000)
    display.validation(1200, METRICS, False, [SAMPLE])
    assert display._live is not None
    display._live.refresh()
    display.line("[not markup]")
    display.close()
    display.close()
    shown = screen.getvalue()
    for text in ("splitting", "tiny", "update 1,200/5,000", "2.500", "15.2k tok/s", "left 2:05", "BLEU 31.2"):
        assert text in shown
    assert "das [bold]Haus[/bold]" in shown
    assert "[not markup]" in shown
    assert shown.endswith("\x1b[?25h") or "\x1b[?25h" in shown  # the cursor is back


def test_which_display(monkeypatch: pytest.MonkeyPatch) -> None:
    assert type(make_display(quiet=True)) is NoDisplay
    assert type(make_display(quiet=False)) is Plain
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert type(make_display(quiet=False)) is Terminal


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (200_000, "2.3 days")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def make_log(directory: Path) -> Log:
    return Log(directory, NoDisplay())


def test_metrics_have_no_times_and_floats_are_exact(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.train({"update": 1, "loss": 0.1 + 0.2, "norm": float("nan")}, STATUS)
    log.valid(1, METRICS, True, [SAMPLE], seconds=1.5)
    length = log.sync_metrics()
    log.close()
    assert (tmp_path / "metrics.jsonl").stat().st_size == length
    first, second = read_records(tmp_path / "metrics.jsonl")
    assert first == {"kind": "train", "update": 1, "loss": 0.1 + 0.2, "norm": None}
    assert second == {"kind": "valid", "update": 1, **METRICS}
    timing = [json.loads(line) for line in (tmp_path / "timing.jsonl").read_text().splitlines()]
    assert [entry["kind"] for entry in timing] == ["train", "valid"]
    assert "valid at 1 " in (tmp_path / "log.txt").read_text()


def test_a_half_written_line_of_times_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "timing.jsonl").write_text('{"kind": "train", "elapsed": 7.5}\n{"kind": "tra')
    clock = iter([100.0, 103.0])
    with monkeypatch.context() as patch:
        patch.setattr("dragoman.training.log.time.monotonic", lambda: next(clock))
        log = make_log(tmp_path)
        assert log.elapsed == 10.5
    log.saved(3, 0.1)
    log.close()
    assert json.loads((tmp_path / "timing.jsonl").read_text().splitlines()[-1])["kind"] == "save"


def test_samples_that_were_written_twice_count_once(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    assert read_samples(path) == []
    path.write_text('{"kind": "valid", "update": 4, "samples": []}\n{"kind": "val')
    log = make_log(tmp_path)
    log.valid(4, METRICS, True, [SAMPLE], seconds=1.5)
    log.valid(8, METRICS, True, [], seconds=1.5)
    log.valid(4, METRICS, True, [], seconds=1.5, kind="average")
    log.close()
    samples = [{"src": SAMPLE.src, "tgt": SAMPLE.tgt, "out": SAMPLE.out}]
    assert read_samples(path) == [{"update": 4, "samples": samples}]


def test_broken_metrics_are_named_by_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "train"}\n{"half a\n{"cut')
    with pytest.raises(UserError, match=r"metrics\.jsonl:2"):
        read_records(path)
    assert read_records(tmp_path / "none") == []


def test_without_tensorboard_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **named: Any) -> Any:
        if "tensorboard" in name:
            raise ImportError(name)
        return real(name, *args, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UserError, match=r"pip install .*\[tensorboard\]"):
        open_tensorboard(tmp_path)

"""Choices follow the speed of updates: on a slow or shared machine less is asked for."""

from pathlib import Path
from typing import Any

import pytest
from tests.autopilot.corpora import profile_of, sounds

from dragoman.autopilot.choose import choose
from dragoman.autopilot.machine import Machine
from dragoman.learning import LEARNING
from dragoman.training import plan as plan_module
from dragoman.training.api import open_or_create
from dragoman.training.display import NoDisplay
from dragoman.training.plan import Plan, make_plan
from dragoman.training.report import read_speed

SMALL = ["tokenizer.vocab_size=300", "train.device=cpu", "data.valid_size=10"]


def sections(speed: float) -> dict[str, Any]:
    machine = Machine(cores=16, gpu_bytes=140 << 30, speed=speed)
    return choose(profile_of(sounds(8000)), machine, minutes=2.0, learning=LEARNING["translate"]).sections


def test_a_shared_card_gets_smaller_batches_and_one_pass() -> None:
    alone, shared = sections(1.0), sections(1 / 16)
    assert alone["objective"]["r_drop"] > 0
    assert "r_drop" not in shared["objective"]
    assert shared["train"]["batch_tokens"] < alone["train"]["batch_tokens"]
    assert shared["tokenizer"] == alone["tokenizer"]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"{a}\t{b}\n" for a, b in sounds(200)), encoding="utf-8")
    timed: list[float] = []

    def make(seconds: float | None) -> Plan:
        def measured(*_: object) -> float | None:
            timed.append(1.0)
            return seconds

        monkeypatch.setattr(plan_module, "measured_update", measured)
        return make_plan([str(table)], NoDisplay(), out=tmp_path / "run", overrides=SMALL, minutes=3.0)

    return make, timed, tmp_path / "run"


def test_what_is_measured_changes_the_plan(made: Any) -> None:
    make, timed, _ = made
    assert make(1e-9).speed == 1.0  # faster than expected
    assert make(None).speed == 1.0
    slow = make(1e3)
    assert slow.speed < 1e-2
    assert slow.expected is not None and (fast := make(1e-9).expected) is not None
    assert slow.expected[0] < fast[0]
    assert len(timed) == 4


def test_a_run_that_exists_keeps_the_speed_that_it_was_planned_with(made: Any) -> None:
    make, timed, directory = made
    slow = make(1e3)
    open_or_create(slow)
    assert read_speed(directory) == slow.speed
    timed.clear()
    again = make(1e-9)
    assert not timed
    assert again.config == slow.config

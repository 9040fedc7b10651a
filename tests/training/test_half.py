"""What half of the data is worth, and what is said about more."""

from pathlib import Path

import pytest
from tests.autopilot.corpora import sounds

from dragoman.runs.directory import Run
from dragoman.training.api import plan_and_train
from dragoman.training.half_data import Worth, half_config
from timed import Timed

SMALL = [
    *("train.device=cpu", "data.valid_size=10", "train.batch_tokens=600", "train.validate_sentences=2"),
    *("model.num_layers=1", "model.model_dim=16", "model.num_heads=2", "model.ff_dim=16"),
    "train.metric=loss",
]


def test_a_gain_is_a_range_and_never_beyond_the_best_there_is() -> None:
    found = Worth("exact", 1000, whole=60.0, half=40.0, validated=1000)
    assert found.gain == 20
    assert "between 10 and 20 more" in found.told()
    assert "between 1 and 2 more" in Worth("exact", 1000, whole=98.0, half=78.0, validated=1000).told()
    assert Worth("loss", 1000, whole=1.0, half=1.5, validated=0).gain == 0.5
    assert "| 500 | 40 |" in found.part()


@pytest.mark.parametrize(
    ("metric", "whole", "half", "validated"),
    [("exact", 50.0, 48.0, 200), ("bleu", 30.0, 29.5, 0), ("loss", 2.0, 1.9, 0)],
)
def test_a_difference_that_may_be_chance_is_called_so(
    metric: str, whole: float, half: float, validated: int
) -> None:
    assert "may be chance" in Worth(metric, 1000, whole, half, validated).told()


def test_a_run_on_half_of_the_data_beside_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"{a}\t{b}\n" for a, b in sounds(60)), encoding="utf-8")
    timed = Timed(monkeypatch, update=4.0)
    options = {"out": tmp_path / "run", "overrides": SMALL, "valid": [], "quiet": True, "half": True}
    run = plan_and_train([str(table)], minutes=1.0, clock=timed.clock, **options)
    assert run is not None and run.config.train.max_minutes == pytest.approx(2 / 3)
    assert timed.clock.now <= 60  # all of it
    second = Run.open(tmp_path / "run.half")
    assert second.config.train.max_minutes == pytest.approx(1 / 3) and second.config.objective.every == 2
    report = (run.directory / "report.md").read_text(encoding="utf-8")
    assert report.count("## Half of the data") == 1
    assert "## What to type next" in report
    again = plan_and_train([str(table)], minutes=1.0, clock=timed.clock, **options)  # all is done
    assert again is not None
    assert (run.directory / "report.md").read_text(encoding="utf-8").count("## Half of the data") == 1


def test_updates_and_schedule_are_halved_too(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"{a}\t{b}\n" for a, b in sounds(60)), encoding="utf-8")
    given = [*SMALL, "train.max_updates=8", "schedule.warmup=2"]
    run = plan_and_train([str(table)], out=tmp_path / "run", overrides=given, valid=[], quiet=True)
    assert run is not None
    config = half_config(run.config)
    assert config.train.max_updates == config.schedule.total == 4
    assert (config.schedule.warmup, config.objective.every) == (1, 2)

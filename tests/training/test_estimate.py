"""Estimates on a clock that is made up: what is predicted is what the same run then takes."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from dragoman.data.corpus import Prepared
from dragoman.learning.validation import DecoderValidator
from dragoman.runs.config import RunConfig, TrainConfig
from dragoman.runs.directory import Run
from dragoman.training import estimate as estimates
from dragoman.training.checkpoints import CheckpointPolicy
from dragoman.training.estimate import Costs, SessionPace, estimate
from timed import FakeClock, Timed

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]
CPU = torch.device("cpu")
UPDATE, FIRST, VALIDATION, SAVE, START = 0.7, 9.0, 4.0, 1.5, 20.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    """The first update is slow; a part of a validation is timed on the same clock."""
    clock, learn, done = FakeClock(START), estimates.learn, []

    def timed(*args: Any) -> Any:
        done.append(1)
        clock.now += FIRST if len(done) == 1 else UPDATE
        return learn(*args)

    monkeypatch.setattr(estimates, "learn", timed)
    monkeypatch.setattr(DecoderValidator, "estimated_seconds", lambda *_: VALIDATION)
    monkeypatch.setattr(estimates, "_SAVE_SECONDS", SAVE)
    monkeypatch.setattr(estimates, "_BYTES_SAVED_A_SECOND", float("inf"))
    return clock


def test_everything_that_takes_time_is_counted(
    make_config: MakeConfig, prepared: Prepared, clock: FakeClock
) -> None:
    config = make_config("train.max_updates=100", "train.validate_every=30", "train.save_every=20")
    found = estimate(config, prepared, CPU, clock=clock)
    spent = clock.now
    assert found.updates == 100 and found.seconds is not None
    assert spent < START + FIRST + 10  # a few updates, no more
    assert found.seconds == pytest.approx(spent + 100 * UPDATE + 4 * VALIDATION + 5 * SAVE)
    assert found.tokens_per_second is not None
    several = estimate(config, prepared, CPU, 4, clock)
    assert several.tokens_per_second == pytest.approx(4 * found.tokens_per_second, rel=0.2)


@pytest.mark.parametrize(
    "overrides",
    [
        ("train.max_updates=60", "train.validate_every=7", "train.save_every=7"),
        ("train.max_updates=90", "train.validate_every=40", "train.save_every=10"),
        ("train.max_updates=40", "train.validate_every=10", "train.save_every=10", "train.average=2"),
    ],
)
def test_the_run_takes_what_was_predicted(
    make_config: MakeConfig,
    make_run: MakeRun,
    prepared: Prepared,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    overrides: tuple[str, ...],
) -> None:
    predicted = estimate(make_config(*overrides), prepared, CPU, clock=clock).seconds
    timed = Timed(monkeypatch, UPDATE, VALIDATION)
    save = CheckpointPolicy._save

    def timed_save(*args: Any) -> None:
        timed.clock.now += SAVE
        save(*args)

    monkeypatch.setattr(CheckpointPolicy, "_save", timed_save)
    run = make_run(*overrides, "train.log_every=2", train=False)
    timed.train(run, start=clock.now)
    assert predicted == pytest.approx(timed.clock.now, rel=0.15)
    lines = (run.directory / "log.txt").read_text("utf-8").splitlines()
    told = [line for line in lines if "the whole run takes about" in line]
    assert len(told) == 1
    minutes, seconds = told[0].split()[-1].split(":")
    assert 60 * int(minutes) + int(seconds) == pytest.approx(timed.clock.now, rel=0.15)


def test_a_budget_is_not_measured(
    make_config: MakeConfig, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimates, "learn", lambda *_: pytest.fail("an update was timed"))
    config = make_config("train.max_updates=null", "train.max_minutes=2", "schedule.name=linear")
    found = estimate(config, prepared, CPU)
    assert (found.seconds, found.tokens_per_second) == (120, None)


def test_a_part_of_a_validation_is_timed_and_leaves_no_trace(
    make_config: MakeConfig, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.learning import learning_of
    from dragoman.training.state import Training

    config = make_config("train.validate_sentences=16", "train.batch_tokens=20")
    training = Training(config, prepared, CPU)
    validator = learning_of(config).validator(config, prepared, CPU)
    before = validator.run(training.model, training.autocast())
    now, translated = FakeClock(), []
    forced, written = DecoderValidator._teacher_forced, DecoderValidator._translate

    def timed_forced(self: DecoderValidator, model: Any) -> dict[str, float]:
        now.now += len(self._batches)
        return forced(self, model)

    def timed_translate(self: DecoderValidator, model: Any, loss: float, places: Sequence[int]) -> list[str]:
        now.now += len(places)
        translated.append((len(places), self._search.max_ratio))
        return written(self, model, loss, places)

    monkeypatch.setattr(DecoderValidator, "_teacher_forced", timed_forced)
    monkeypatch.setattr(DecoderValidator, "_translate", timed_translate)
    found = validator.estimated_seconds(training.model, training.autocast(), now.seconds)
    assert isinstance(validator, DecoderValidator)
    assert found == pytest.approx(len(validator._batches) + 16, rel=0.4)
    assert [count for count, _ in translated] == [16, 16]
    assert all(0.5 < ratio < 2 for _, ratio in translated)
    monkeypatch.undo()
    assert validator.run(training.model, training.autocast()) == before
    assert training.model.training


@pytest.mark.parametrize("sentences", [0, 1])
def test_a_validation_of_little_or_no_translation_can_be_timed(
    make_config: MakeConfig, prepared: Prepared, sentences: int
) -> None:
    found = estimate(make_config(f"train.validate_sentences={sentences}"), prepared, CPU)
    assert found.seconds is not None and found.seconds > 0


def test_costs_of_what_is_left() -> None:
    config = TrainConfig(max_updates=100, validate_every=30, save_every=50)
    costs = Costs(1.0, validation=10.0, save=100.0)
    assert costs.of(config, 0, 100) == 100 + 4 * 10 + 4 * 100
    assert costs.of(config, 95, 100) == 5 + 10 + 100


def test_the_pace_is_that_of_updates_alone() -> None:
    clock = FakeClock()
    pace = SessionPace(clock.seconds, update=0)
    clock.now = 50.0  # kernels are loaded
    assert pace.line(10) == 50
    assert pace.costs is None
    clock.now, pace.validation = 100.0, 30.0
    pace.pause(30.0)
    assert pace.line(20) == 20
    clock.now = 120.0
    pace.line(30)
    costs = pace.costs
    assert costs is not None and (costs.update, costs.validation) == (2.0, 30.0)

"""A budget of minutes on a clock that is made up: when a run ends, validates, saves, and how it goes on."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman import checkpoint
from dragoman.errors import UserError
from dragoman.runs.config import TrainConfig
from dragoman.runs.directory import Run
from dragoman.training.budget import Budget, Cooling
from dragoman.training.progress import Spent, TrainingProgress
from timed import FakeClock, Killed, Timed

MakeRun = Callable[..., Run]
BUDGET = (
    *("train.max_updates=null", "train.max_minutes=2", "schedule.name=linear", "schedule.total=null"),
    *("train.tune_search=false", "train.report=false", "train.log_every=1", "train.validate_sentences=0"),
    *("schedule.by=minutes", "train.validations=10", "train.patience=4"),
)


def rates(run: Run) -> list[float]:
    return [record["rate"] / 3e-3 for record in run.metrics if record["kind"] == "train"]


def budget(
    minutes: float = 10, before: float = 0.0, clock: FakeClock | None = None, **train: object
) -> Budget:
    config = TrainConfig(max_minutes=minutes, **train)  # type: ignore[arg-type]
    return Budget(config, clock or FakeClock(), Spent(minutes, before, start=0.0))


# --- the budget by itself ----------------------------------------------------------------------------


def test_time_is_left_for_what_comes_after_the_last_update() -> None:
    plain = budget()
    assert plain.reserve == pytest.approx(600 * (0.02 + 0.005 + 0.02) + 2)  # nothing has been timed yet
    plain.validated(0.1, seconds=20.0)
    plain.saved(0.1, seconds=2.0)
    assert plain.reserve == pytest.approx(20 + 3 + 12 + 2)
    plain.saved(0.1, seconds=4.0)
    assert plain.reserve == pytest.approx(20 + 4 + 12 + 2)
    for train, more in (
        ({"average": 3}, 20),
        ({"tune_search": True}, 30),
        ({"report": True}, 20),
        ({"tune_search": True, "report": True}, 30),
    ):
        other = budget(**train)
        other.validated(0.1, seconds=20.0)
        other.saved(0.1, seconds=4.0)
        assert other.reserve == pytest.approx(plain.reserve + more)
    plain.validated(0.1, seconds=1000.0)
    assert plain.reserve == 240  # most of it is for training, whatever the rest takes


def test_the_share_is_of_the_time_for_updates_and_never_goes_back() -> None:
    clock = FakeClock(100.0)
    found = budget(before=20.0, clock=clock)
    found.validated(0.0, seconds=50.0)
    found.saved(0.0, seconds=3.0)
    assert found.elapsed == 120 and found.left == 480
    assert found.share() == pytest.approx(120 / (600 - 67))
    found.validated(0.2, seconds=10.0)
    assert found.share() == pytest.approx(120 / 533)  # the reserve is smaller now
    clock.now = 480.0
    assert found.share() == pytest.approx(500 / 573)
    clock.now = 1000.0
    assert found.left == 0


def test_validations_come_at_equal_distances_and_take_a_tenth_of_the_time_at_most() -> None:
    quick = budget(validations=10)
    assert [share for share in (0.05, 0.1, 0.2) if quick.validation_is_due(share)] == [0.1, 0.2]
    quick.validated(0.1, seconds=6.0)
    assert not quick.validation_is_due(0.19) and quick.validation_is_due(0.21)
    quick.validated(0.9, seconds=6.0)
    assert not quick.validation_is_due(0.99)  # the end is near, and validates too
    slow = budget(validations=10)
    slow.validated(0.1, seconds=15.0)
    assert not slow.validation_is_due(0.34) and slow.validation_is_due(0.36)


def test_long_runs_are_saved_every_ten_minutes() -> None:
    found = budget(minutes=200, validations=10)
    found.saved(0.1, seconds=1.0)
    assert not found.save_is_due(0.14) and found.save_is_due(0.151)


def test_neither_metric_nor_loss_is_what_stops_a_run() -> None:
    progress = TrainingProgress(spent=Spent(5))
    found = []
    for bleu, loss in [(1.0, 5.0), (0.9, 4.0), (0.8, 4.5), (1.1, 4.6), (1.0, 4.7), (1.1, 4.6)]:
        progress.count_validation("0000001", "bleu", {"bleu": bleu, "loss": loss})
        assert progress.spent is not None
        found.append((progress.stale, progress.spent.stale))
    assert found == [(0, 0), (1, 0), (2, 1), (0, 0), (1, 1), (2, 2)]


def test_cooling_is_a_line_to_zero() -> None:
    cooling = Cooling(0.4)
    assert [cooling.scale(share) for share in (0.4, 0.45, 0.5, 0.9)] == pytest.approx([1, 0.5, 0, 0])


def test_what_comes_before_the_first_update_is_not_training() -> None:
    clock = FakeClock(120.0)
    found = Budget(TrainConfig(max_minutes=10, validations=10), clock, Spent(10))
    assert found.spent.start == 120 and found.share() == 0
    assert found.spent.next_validation == pytest.approx(0.1)
    clock.now = 120 + (600 - found.reserve - 120) / 4
    assert found.share() == pytest.approx(0.25)
    later = Budget(found.config, FakeClock(0.0), replace(found.spent, seconds=clock.now))
    assert later.share() == pytest.approx(0.25)


def test_minutes_that_are_over_before_the_first_update_are_too_few(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"^train\.max_minutes: 2 minutes were over before the first update"):
        Timed(monkeypatch).train(make_run(*BUDGET, train=False), start=130.0)


# --- runs --------------------------------------------------------------------------------------------


def test_the_rate_ends_at_zero_and_the_run_within_its_minutes(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Timed(monkeypatch, update=1.0, validation_seconds=1.0)
    run = make_run(*BUDGET, train=False)
    timed.train(run, start=10.0)
    assert run.outcome is not None and run.outcome.reason == "max_minutes 2 is reached"
    assert 112 < timed.clock.now <= 120  # start, updates, validations and the last one
    found = rates(run)
    assert found[-1] < 0.02
    assert all(a > b for a, b in itertools.pairwise(found[12:]))
    assert 9 <= len(timed.validations) <= 11
    assert timed.validations[-1] == run.outcome.update
    assert run.last == checkpoint.checkpoint_name(run.outcome.update)


@pytest.mark.parametrize("update", [0.5, 3.0])
def test_there_are_as_many_validations_on_a_fast_and_on_a_slow_machine(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, update: float
) -> None:
    timed = Timed(monkeypatch, update)
    run = make_run(*BUDGET, "train.validations=8", "train.max_minutes=1", train=False)
    timed.train(run)
    assert 7 <= len(timed.validations) <= 9


def test_a_killed_run_goes_on_with_the_minutes_that_are_left(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Timed(monkeypatch)
    whole = make_run(*BUDGET, name="whole", train=False)
    timed.train(whole)
    killed = make_run(*BUDGET, name="killed", train=False)
    for moment in (17, 30, 31, 90):
        timed.die_at = moment
        with pytest.raises(Killed):
            timed.train(killed)
    timed.die_at = None
    timed.train(killed)
    assert killed.outcome == whole.outcome
    assert killed.metrics == whole.metrics
    assert _model(killed) == _model(whole)


def _model(run: Run) -> bytes:
    return (run.checkpoints / (run.last or "") / "model.safetensors").read_bytes()


def test_what_starting_again_takes_counts(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch)
    run = make_run(*BUDGET, train=False)
    timed.die_at = 61
    with pytest.raises(Killed):
        timed.train(run)
    saved = int(run.last or 0)
    timed.die_at = None
    timed.train(run, start=20.0)
    assert run.outcome is not None
    reserve = 120 * (0.02 + 0.005) + 2
    assert run.outcome.update == pytest.approx(120 - reserve - 20, abs=2)
    assert run.outcome.update > saved


def test_a_run_that_is_over_stays_over_and_more_minutes_go_on(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.training.api import resume

    timed = Timed(monkeypatch, validation_seconds=2.0)
    run = make_run(*BUDGET, train=False)
    timed.train(run)
    assert run.outcome is not None
    first = run.outcome.update
    timed.train(run)
    assert run.outcome.update == first
    timed.clock.now = 0.0
    longer = resume(run.directory, ["train.max_minutes=4"], quiet=True, clock=timed.clock)
    assert longer.outcome is not None
    assert first + 80 < longer.outcome.update < 240
    assert rates(longer)[first] == pytest.approx(0.5, abs=0.03)
    assert rates(longer)[-1] < 0.02


def test_a_run_that_only_gets_worse_cools_down_and_ends(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Timed(monkeypatch)
    timed.metrics = lambda number: {"loss": 3.0 if number == 1 else 4.0 + number}
    run = make_run(*BUDGET, train=False)
    timed.train(run)
    assert run.outcome is not None
    assert run.outcome.reason == "early stopping: loss has not improved"
    assert run.best is not None and run.best["name"] == checkpoint.checkpoint_name(timed.validations[1])
    assert 0.55 * 115 < run.outcome.update < 0.8 * 115
    assert rates(run)[-1] < 0.02
    assert "the run ends early" in (run.directory / "log.txt").read_text("utf-8")


def test_minutes_beside_updates_are_only_a_limit(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(monkeypatch)
    both = make_run("train.max_minutes=2", "schedule.name=linear", name="both", train=False)
    timed.train(both, start=5.0)
    alone = make_run("schedule.name=linear", name="alone", train=False)
    timed.train(alone)
    assert both.metrics == alone.metrics
    short = make_run("train.max_minutes=0.2", name="short", train=False)
    timed.train(short)
    assert short.outcome is not None and short.outcome.reason == "max_minutes 0.2 is reached"
    assert 5 <= short.outcome.update <= 12


def test_without_minutes_a_checkpoint_does_not_tell_the_time(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Timed(monkeypatch)
    run = make_run(train=False)
    timed.train(run)
    assert checkpoint.newest(run.checkpoints).state["progress"]["spent"] is None


def test_earlier_versions_kept_the_time_in_timing_alone(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Timed(monkeypatch)
    run = make_run("train.max_updates=20", train=False)
    timed.train(run)
    from dragoman.training.api import resume

    timed.clock.now = 0.0
    longer = resume(run.directory, ["train.max_updates=null", "train.max_minutes=1"], True, timed.clock)
    assert longer.outcome is not None
    assert longer.outcome.update == pytest.approx(57, abs=2)


def test_the_mean_of_the_last_checkpoints_is_tried_under_a_budget_too(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    timed = Timed(monkeypatch, validation_seconds=1.0)
    run = make_run(*BUDGET, "train.average=3", train=False)
    timed.train(run)
    assert run.metrics[-1]["kind"] == "averaged"
    assert timed.clock.now <= 120
    assert tmp_path in run.directory.parents

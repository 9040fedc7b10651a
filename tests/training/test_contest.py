"""A contest on a clock that is made up: halving, handing over, stopping and going on."""

import json
from pathlib import Path

import pytest
from tests.autopilot.corpora import sounds

from dragoman import checkpoint
from dragoman.errors import UserError
from dragoman.runs.directory import Run
from dragoman.training import plan as plan_module
from dragoman.training import settings_search as search_module
from dragoman.training.api import plan_and_train, resume
from dragoman.training.contest_record import Result, ranked, read_contest
from dragoman.training.report import read_reasons
from timed import Killed, Timed

SMALL = [
    *("train.device=cpu", "data.valid_size=10", "train.batch_tokens=600", "train.validate_sentences=2"),
    *("model.num_layers=1", "model.model_dim=16", "model.num_heads=2", "model.ff_dim=16"),
    *("train.log_every=1", "train.metric=loss"),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in sounds(60)), encoding="utf-8")
    return path


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Timed:
    """Two seconds an update, and nothing else takes time."""
    monkeypatch.setattr(plan_module, "_measured_speed", lambda *_: 1.0)
    monkeypatch.setattr(search_module, "_least_seconds", lambda *_: 5.0)
    return Timed(monkeypatch, update=2.0)


def searched(
    table: Path, timed: Timed, *more: str, minutes: float | None = 2.0, dry_run: bool = False
) -> Run | None:
    return plan_and_train(
        [str(table)],
        out=table.parent / "run",
        overrides=[*SMALL, *more],
        valid=[],
        quiet=True,
        minutes=minutes,
        search=True,
        clock=timed.clock,
        dry_run=dry_run,
    )


def test_the_best_of_both_ranks_wins() -> None:
    a, b, c = Result("a", 5, 10.0, 3.0), Result("b", 5, 12.0, 4.0), Result("c", 5, 11.0, 2.0)
    assert ranked([a, b, c], "exact") == ["c", "b", "a"]
    assert ranked([a, b, c], "loss") == ["c", "a", "b"]
    assert ranked([Result("x", failed="out of memory"), a], "bleu") == ["a", "x"]
    level = [Result("a", 5, 0.0, 3.0), Result("b", 5, 0.0, 2.0)]
    assert ranked(level, "exact") == ["b", "a"]  # nobody has got anything right yet
    values, nlls = {"a": 0.0, "d": None, "c": 2.0, "b": 0.5}, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}
    four = [Result(name, 5, value, nlls[name]) for name, value in values.items()]
    # Ranks by value: c 0.5, b 1.5, a and d 3; by likelihood 0.5, 1.5, 2.5, 3.5. It decides between b and c.
    assert ranked(four, "bleu") == ["b", "c", "a", "d"]


def test_a_contest_and_its_winner(table: Path, timed: Timed) -> None:
    run = searched(table, timed)
    assert run is not None and run.outcome is not None and run.outcome.exit_status == 0
    contest = read_contest(run.directory)
    assert contest is not None and contest.winner is not None
    assert [len(each.names) for each in contest.rounds] == [4, 2]
    assert contest.unit == pytest.approx(0.25 * 120 / 6)
    assert contest.rounds[1].seconds == 2 * contest.unit
    for name in contest.rounds[0].names:  # ordinary runs
        assert Run.open(table.parent / "run.search" / name).last is not None
    assert contest.elapsed <= 0.27 * 120
    assert 105 < timed.clock.now <= 120  # all of it within the minutes
    winner = Run.open(table.parent / "run.search" / contest.winner)
    assert winner.last is not None
    updates = [record["update"] for record in run.metrics if record["kind"] == "train"]
    assert updates[0] == int(winner.last) + 1  # it went on from the checkpoint
    rates = [record["rate"] for record in run.metrics if record["kind"] == "train"]
    assert rates[-1] < 0.05 * max(rates)
    assert run.config.train.max_minutes == 2.0
    assert read_reasons(run.directory)
    assert "## The contest" in (run.directory / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("again", ["train", "resume"])
def test_a_contest_that_was_killed_goes_on(table: Path, timed: Timed, again: str) -> None:
    timed.die_at = 4  # in the second round
    with pytest.raises(Killed):
        searched(table, timed)
    contest = read_contest(table.parent / "run.search")
    assert contest is not None and contest.winner is None
    before = [(each.names, each.results) for each in contest.rounds]
    timed.die_at, timed.clock.now = None, 0.0
    run = (
        searched(table, timed)
        if again == "train"
        else resume(table.parent / "run", quiet=True, clock=timed.clock)
    )
    assert run is not None
    after = read_contest(run.directory)
    assert after is not None and after.rounds[0].results == contest.rounds[0].results
    assert len(before) >= 1 and after.elapsed >= contest.elapsed
    assert run.outcome is not None and run.outcome.exit_status == 0


def test_the_winner_keeps_what_is_left_of_the_minutes(table: Path, timed: Timed) -> None:
    timed.die_at = 30  # when the winner has the rest of the time to itself
    with pytest.raises(Killed):
        searched(table, timed)
    out = table.parent / "run"
    found = Run.open(out)
    assert found.last is not None
    state = checkpoint.read_state(found.checkpoints / found.last)
    contest = read_contest(out)
    assert contest is not None
    assert state["progress"]["spent"]["seconds"] >= contest.elapsed
    timed.die_at, timed.clock.now = None, 0.0
    run = searched(table, timed)
    assert run is not None
    assert timed.clock.now <= 120 - contest.elapsed


def test_what_a_contest_refuses(table: Path, timed: Timed) -> None:
    with pytest.raises(UserError, match="--search: a contest takes a share of the time"):
        searched(table, timed, minutes=None)
    timed.die_at = 2
    with pytest.raises(Killed):
        searched(table, timed)
    with pytest.raises(UserError, match=r"run.search: this contest was begun with other arguments"):
        searched(table, timed, "seed=7")
    with pytest.raises(UserError, match="resume it without changes"):
        resume(table.parent / "run", ["train.max_minutes=9"], quiet=True, clock=timed.clock)


def test_too_few_minutes_for_a_contest(table: Path, timed: Timed) -> None:
    run = searched(table, timed, minutes=0.5)
    assert run is not None and not (table.parent / "run.search").exists()
    assert run.outcome is not None and run.outcome.exit_status == 0


def test_a_dry_run_begins_none(table: Path, timed: Timed) -> None:
    assert searched(table, timed, dry_run=True) is None
    assert not (table.parent / "run.search").exists() and not (table.parent / "run").exists()


def test_a_damaged_record_is_refused(table: Path, timed: Timed) -> None:
    timed.die_at = 2
    with pytest.raises(Killed):
        searched(table, timed)
    path = table.parent / "run.search" / "contest.json"
    path.write_text(json.dumps({"asked": 3}))
    with pytest.raises(UserError, match=r"contest\.json"):
        searched(table, timed)

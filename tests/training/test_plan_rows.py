"""The plan that a person reads: short, in whole phrases; everything else is there on request."""

from pathlib import Path

import pytest
from tests.autopilot.corpora import sounds

from dragoman.runs.directory import Run
from dragoman.training import plan as plan_module
from dragoman.training.display import NoDisplay
from dragoman.training.plan import Plan, make_plan, open_or_create
from dragoman.training.plan_rows import details
from dragoman.training.report import read_reasons
from timed import Killed

SMALL = ["model.num_layers=1", "model.model_dim=16", "model.num_heads=2", "model.ff_dim=32"]
CPU = ["train.device=cpu", "data.valid_size=10"]


def plan_of(tmp_path: Path, *overrides: str, minutes: float | None = 3.0) -> Plan:
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"{a}\t{b}\n" for a, b in sounds(120)), encoding="utf-8")
    return make_plan(
        [str(table)], NoDisplay(), out=tmp_path / "run", overrides=[*CPU, *overrides], minutes=minutes
    )


def test_about_ten_lines_say_what_is_trained(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *SMALL)
    rows = dict(plan.rows())
    assert len(plan.rows()) <= 11
    assert rows["data"] == "110 pairs for training, 10 others for validation"
    assert rows["cleaning"] == "nothing is left out"
    assert rows["model"].startswith("Transformer, 1 + 1 layers of width 16, ")
    assert rows["training"].startswith("about ") and " epochs), on the CPU" in rows["training"]
    assert rows["learning rate"].endswith("then falls to 0 at the end")
    assert rows["metric"].startswith("exact matches on the validation set")
    assert rows["time"] == "3:00 in total"
    assert rows["output"] == str(tmp_path / "run")


def test_reasons_are_told_on_request(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, *SMALL)
    assert [title for title, _ in plan.tables(verbose=False)] == ["Plan"]
    tables = dict(plan.tables(verbose=True))
    assert list(tables) == ["Plan", "Details", "Reasons"]
    assert tables["Reasons"] == list(plan.reasons)
    assert "positions" in dict(tables["Details"])["model"]
    assert dict(tables["Details"])["ends after"].startswith("3 minutes or ")
    assert dict(details(plan_of(tmp_path, *SMALL, minutes=1.0)))["ends after"].startswith("1 minute or ")


@pytest.mark.parametrize(
    ("overrides", "row", "told"),
    [
        (["model.preset=lstm"], "model", "LSTM with cosine attention, 1 + 1 layers of width 256, "),
        (["model.preset=markov"], "training", "one pass over the data, by counting, on the CPU"),
        (["train.max_updates=7"], "training", "7 updates of "),
        (["train.max_epochs=2"], "training", "2 epochs, updates of "),
        (["schedule.name=constant", "schedule.warmup=0"], "learning rate", "then stays there"),
    ],
)
def test_what_is_given_is_told(tmp_path: Path, overrides: list[str], row: str, told: str) -> None:
    small = [] if any(each.startswith("model.") for each in overrides) else SMALL
    plan = plan_of(tmp_path, *overrides, *small, minutes=None)
    assert told in dict(plan.rows())[row]


def test_where_pairs_are_counted_no_checkpoint_is_chosen(tmp_path: Path) -> None:
    rows = dict(plan_of(tmp_path, "model.preset=markov", minutes=None).rows())
    assert "metric" not in rows and "learning rate" not in rows


def test_updates_are_counted_as_the_machine_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def updates(slower: float) -> int:
        monkeypatch.setattr(plan_module, "_measured_speed", lambda *_: 1 / slower)
        expected = plan_of(tmp_path, *SMALL).expected
        assert expected is not None
        return expected[0]

    assert updates(1.25) < updates(1.0) < updates(0.5)


def test_a_run_is_there_with_its_reasons_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between the two, a run would have no reasons and, given again, another speed."""

    def die(*_: object) -> None:
        raise Killed

    plan = plan_of(tmp_path, *SMALL)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(plan_module, "write_reasons", die)
        open_or_create(plan)
    assert not Run.exists(plan.out)
    assert read_reasons(open_or_create(plan).directory) == list(plan.reasons) != []

"""Small rules of training, each by itself: what is left, which bests are kept, how guesses are counted."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dragoman import checkpoint
from dragoman.data.batch import TextBatch
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.learning.masked_prediction import AnswerValidator
from dragoman.runs.config import TrainConfig
from dragoman.runs.directory import Run
from dragoman.runs.objective import ObjectiveConfig
from dragoman.training import loop as loop_module
from dragoman.training.checkpoints import CheckpointPolicy
from dragoman.training.display import NoDisplay
from dragoman.training.draft import plain_config
from dragoman.training.estimate import Costs, Estimate
from dragoman.training.loop import Loop
from dragoman.training.plan import Plan
from dragoman.training.progress import TrainingProgress
from dragoman.training.session import train_run


@pytest.mark.parametrize(
    ("total", "left", "expected"),
    [
        (30, None, 43.0),
        (None, 90.0, 90.0),
        (30, 90.0, 43.0),
        (300, 90.0, 90.0),
        (None, None, None),
        (5, 0.0, 0.0),
    ],
)
def test_training_ends_with_whichever_limit_comes_first(
    total: int | None, left: float | None, expected: float | None
) -> None:
    """An update takes two seconds; of the thirty, ten are done. There is a validation at the end."""
    loop: Any = SimpleNamespace(
        training=SimpleNamespace(progress=SimpleNamespace(update=10)),
        config=TrainConfig(max_updates=1, validate_every=1000, save_every=1000),
        budget=None if left is None else SimpleNamespace(left=left),
        pace=SimpleNamespace(costs=Costs(2.0, validation=2.5, save=0.5)),
        total=total,
    )
    assert Loop._seconds_left(loop) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(("keep", "expected"), [(1, ["b", "c"]), (2, ["b", "c"]), (3, ["a", "b", "c"])])
def test_the_best_of_every_kept_checkpoint_is_kept(tmp_path: Path, keep: int, expected: list[str]) -> None:
    for number, best in enumerate("abc", 1):
        folder = tmp_path / checkpoint.checkpoint_name(number)
        folder.mkdir()
        (folder / checkpoint.STATE).write_text(json.dumps({"progress": {"best": {"name": best}}}))
    policy: Any = SimpleNamespace(root=tmp_path, config=SimpleNamespace(keep=keep))
    assert CheckpointPolicy._bests(policy) == expected


def test_guesses_about_the_next_text_are_counted_over_all_batches() -> None:
    ids = torch.ones(3, 2, dtype=torch.long)
    batches = [_batch(ids, [True, True, False]), _batch(ids, [True, False, False])]

    def answers(_: object, batch: TextBatch) -> Any:
        follows = torch.tensor([[1.0, 0.0]]).expand(len(batch.ids), 2)  # it always says «follows»
        return SimpleNamespace(hidden=torch.eye(4), targets=torch.tensor([0, 1, 2, 2]), follows=follows)

    model: Any = SimpleNamespace(project=lambda hidden: 50 * hidden, vocab=SimpleNamespace(tgt_size=4))
    cpu = torch.device("cpu")
    validator: Any = SimpleNamespace(device=cpu, _batches=batches, _load=iter, _answer=answers)
    found = AnswerValidator._measured(validator, model)
    assert found["next_sentence"] == 3 / 6
    assert found["accuracy"] == 6 / 8


def _batch(ids: torch.Tensor, follows: list[bool]) -> Any:
    batch = object.__new__(TextBatch)
    for name, value in {"ids": ids, "follows": torch.tensor(follows), "num_tokens": 4}.items():
        object.__setattr__(batch, name, value)
    return batch


@pytest.mark.parametrize("shares", [(-0.5, 1.0, 1.0), (0.0, 0.0, 0.0), (1.0, 1.0), (1.0, 1.0, float("inf"))])
def test_shares_of_masks_are_three_numbers_that_are_not_negative(shares: tuple[float, ...]) -> None:
    with pytest.raises(UserError, match="mask_shares: expected three numbers"):
        ObjectiveConfig(name="unilm", mask_shares=shares)
    ObjectiveConfig(name="unilm", mask_shares=(0.0, 1.0, 0.0))


def test_a_new_run_has_room_for_checkpoints(make_run: Any) -> None:
    run: Run = make_run(train=False)
    assert run.checkpoints.is_dir() and not any(run.checkpoints.iterdir())


@pytest.mark.parametrize(
    ("patience", "told"), [("null", "about 2:00"), ("3", "about 2:00 if it runs to its end")]
)
def test_a_plan_tells_speed_and_time(
    make_config: Any, prepared: Prepared, patience: str, told: str, tmp_path: Path
) -> None:
    config = make_config(f"train.patience={patience}")
    plan = Plan(config, tmp_path, prepared, Estimate(1234, 5678.9, None, 120.0))
    rows = dict(plan.rows())
    assert rows["model"].endswith("of width 16, 1,234 parameters")
    assert rows["time"] == told
    assert dict(plan.tables(verbose=True)[1][1])["speed"] == "5,679 target tokens a second"
    assert "time" not in dict(replace(plan, estimate=None).rows())


@pytest.mark.parametrize(
    ("update", "rise", "warned"), [(999, 10, 0), (1000, 10, 1), (1500, 1501, 0), (1501, 1501, 1)]
)
def test_a_standstill_is_told_once_and_not_too_early(
    monkeypatch: pytest.MonkeyPatch, update: int, rise: int, warned: int
) -> None:
    monkeypatch.setattr(loop_module, "_STANDSTILL_FROM", 1000)
    validator = SimpleNamespace(frequency_loss=5.0)
    said: list[str] = []
    loop: Any = SimpleNamespace(
        validator=validator,
        training=SimpleNamespace(progress=SimpleNamespace(update=update)),
        run=SimpleNamespace(config=SimpleNamespace(schedule=SimpleNamespace(rise=rise))),
        log=SimpleNamespace(warn=said.append),
        _warned=False,
    )
    Loop._warn_of_standstill(loop, 1.0)
    assert not said
    for _ in range(2):
        Loop._warn_of_standstill(loop, 5.0)
    assert len(said) == warned


def test_a_run_that_nothing_would_end_is_refused(monkeypatch: pytest.MonkeyPatch, make_run: Any) -> None:
    """The question is asked before anything is learnt, of every run that learns by updates."""
    run: Run = make_run("train.patience=2", train=False)
    config = replace(run.config, train=replace(run.config.train, max_updates=None))
    without = SimpleNamespace(valid=[], train=[1])
    monkeypatch.setattr(run, "config", config)
    monkeypatch.setattr(Run, "corpus", lambda _: without)
    with pytest.raises(UserError, match="nothing ends this run; set max_updates"):
        train_run(run, NoDisplay())


def test_a_run_begins_with_empty_sums() -> None:
    """As after every line of the log."""
    cleared = TrainingProgress()
    cleared.clear_sums()
    assert TrainingProgress() == cleared
    assert cleared.sum_norm == cleared.sum_loss == cleared.sum_tokens == cleared.sum_updates == 0


def test_a_file_that_is_named_twice_does_not_make_several_languages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de"):
        Path(name).write_text("one\n")
    with pytest.raises(UserError, match=r"two by two, source and target; found 3: a\.en, a\.de, a\.en"):
        plain_config(["a.en", "a.de", "a.en"], [], "auto")

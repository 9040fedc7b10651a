"""`dragoman average`: against NumPy, with and without a moving average, and what may go wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from dragoman.errors import UserError
from dragoman.runs.directory import Run
from dragoman.training.average import average_run, best_checkpoints, last_checkpoints

MakeRun = Callable[..., Run]


def weights(run: Run, name: str, part: str = "model") -> dict[str, np.ndarray]:
    return load_file(run.checkpoints / name / f"{part}.safetensors")


@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_the_mean_is_that_of_numpy_and_translates(make_run: MakeRun, ema: float) -> None:
    run = make_run("train.keep=4", f"train.ema={ema}")
    names = last_checkpoints(run, 3)
    assert names == ["0000015", "0000016", "0000020"]
    found = average_run(run, names, "average-last-3")
    mean = weights(run, "average-last-3")
    parts = [weights(run, name, "ema" if ema else "model") for name in names]
    assert set(mean) == set(parts[0])
    for key, tensor in mean.items():
        expected = np.mean([part[key].astype(np.float64) for part in parts], axis=0)
        np.testing.assert_array_equal(tensor, expected.astype(np.float32), err_msg=key)
    assert found.metrics["loss"] > 0
    reopened = Run.open(run.directory)
    assert len(reopened.translator("average-last-3", "cpu").translate(["abc", "de"])) == 2
    assert reopened.last == "0000020"  # training goes on from its own checkpoints


def test_it_becomes_the_best_only_if_it_is_better(make_run: MakeRun) -> None:
    run = make_run("train.keep=4")
    before = run.best
    assert before is not None
    found = average_run(run, last_checkpoints(run, 2), "mean")
    assert found.better == (found.metrics["loss"] < before["value"])
    assert found.before is not None and found.before.value == before["value"]
    best = run.best
    assert best is not None and best["name"] == ("mean" if found.better else before["name"])
    worse = average_run(run, last_checkpoints(run, 4), "worse")
    assert not worse.better  # it has the first weights in it
    assert run.best == best
    run.translator("best", "cpu")


def test_the_best_are_those_of_the_validations(make_run: MakeRun) -> None:
    run = make_run("train.keep=4", "train.validate_every=5")
    losses = {f"{r['update']:07d}": r["loss"] for r in run.metrics if r["kind"] == "valid"}
    expected = sorted(sorted(losses, key=lambda name: losses[name])[:2])
    assert best_checkpoints(run, 2) == expected


def test_mistakes_are_told(make_run: MakeRun) -> None:
    run = make_run()
    with pytest.raises(UserError, match=r"it has 2 checkpoints, not 5; .* train\.keep=5"):
        last_checkpoints(run, 5)
    with pytest.raises(UserError, match="checkpoints that were validated, not 9"):
        best_checkpoints(run, 9)
    with pytest.raises(UserError, match="a mean needs at least 2 checkpoints, found 1"):
        last_checkpoints(run, 1)


def test_without_the_data_it_is_written_and_not_judged(make_run: MakeRun) -> None:
    run = make_run()
    shutil.rmtree(run.directory / "data")
    best = run.best
    found = average_run(run, last_checkpoints(run, 2), "mean")
    assert found.metrics == {} and not found.better
    assert run.best == best
    state = json.loads(Path(run.checkpoints / "mean" / "state.json").read_bytes())
    assert state["weights"] == "model"

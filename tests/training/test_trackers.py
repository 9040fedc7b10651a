"""Experiment trackers, with stand-ins for their packages; and the number of threads."""

import json
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from dragoman.errors import UserError
from dragoman.runs.directory import Run
from dragoman.training.loop import Loop
from dragoman.training.trackers import flat

MakeRun = Callable[..., Run]
FEW = ("train.max_updates=4", "train.log_every=2", "train.validate_every=4", "train.validate_sentences=0")


class StandIn(SimpleNamespace):
    """A module that writes down how it is called."""

    def __init__(self, *names: str, fails: str = "") -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        super().__init__(**{name: self._function(name, name == fails) for name in names})

    def _function(self, name: str, fails: bool) -> Callable[..., None]:
        def call(*args: Any, **named: Any) -> None:
            self.calls.append((name, args, named))
            if fails:
                raise ConnectionError("no server")

        return call

    def of(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, named) for called, args, named in self.calls if called == name]


def numbers_of(run: Run) -> dict[tuple[str, int], float]:
    """What metrics.jsonl has."""
    records = map(json.loads, (run.directory / "metrics.jsonl").read_text("utf-8").splitlines())
    return {
        (f"{record['kind']}/{name}", record["update"]): value
        for record in records
        for name, value in record.items()
        if name not in ("kind", "update") and value is not None
    }


def test_mlflow_gets_the_same_numbers(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = StandIn("start_run", "log_params", "log_metric", "end_run")
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)  # type: ignore[arg-type]
    run = make_run("train.tracker=mlflow", *FEW)
    assert mlflow.of("start_run") == [((), {"run_name": "run"})]
    assert mlflow.of("log_params")[0][0][0]["train.tracker"] == "mlflow"
    found = {(args[0], named["step"]): args[1] for args, named in mlflow.of("log_metric")}
    assert found.items() >= numbers_of(run).items()
    assert ("train/tokens_per_second", 2) in found
    assert mlflow.calls[-1][0] == "end_run"


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_so_do_wandb_and_trackio(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = StandIn("init", "log", "finish")
    monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]
    run = make_run(f"train.tracker={name}", *FEW)
    (begun,) = module.of("init")
    assert begun[1]["project"] == "dragoman" and begun[1]["name"] == "run"
    assert begun[1]["config"]["train.max_updates"] == 4
    found = {
        (tag, named["step"]): value for args, named in module.of("log") for tag, value in args[0].items()
    }
    assert found.items() >= numbers_of(run).items()
    assert len(module.of("finish")) == 1


def test_a_tracker_that_fails_does_not_stop_the_run(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = StandIn("init", "log", "finish", fails="log")
    monkeypatch.setitem(sys.modules, "wandb", module)  # type: ignore[arg-type]
    run = make_run("train.tracker=wandb", *FEW)
    assert run.last == "0000004" and len(module.of("log")) == 1
    told = (run.directory / "log.txt").read_text("utf-8")
    assert told.count("train.tracker: ConnectionError: no server; training continues without it") == 1


def test_one_that_is_missing_or_cannot_begin_is_named(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "trackio", None)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="trackio is not installed; pip install trackio"):
        make_run("train.tracker=trackio", *FEW, name="one")
    monkeypatch.setitem(sys.modules, "wandb", StandIn("init", fails="init"))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="wandb cannot be used"):
        make_run("train.tracker=wandb", *FEW, name="two")


def test_settings_are_flat() -> None:
    assert flat({"a": {"b": {"c": 1}, "d": [2]}, "e": None}) == {"a.b.c": 1, "a.d": [2], "e": None}


def test_threads_are_set_and_given_back(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    fit = Loop.fit
    monkeypatch.setattr(
        Loop, "fit", lambda loop, stop: seen.append(torch.get_num_threads()) or fit(loop, stop)
    )
    before = torch.get_num_threads()
    make_run("train.threads=3", *FEW)
    assert seen == [3] and torch.get_num_threads() == before
    with pytest.raises(UserError, match="threads: expected a whole number of at least 1"):
        make_run("train.threads=0", *FEW, name="none")

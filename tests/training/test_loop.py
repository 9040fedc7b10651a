"""The loop on the real Transformer: when it ends, what it validates and keeps, what it says."""

import errno
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman import checkpoint
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.learning import validation
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training import loop
from dragoman.training.batches import Batches, UpdateBatch
from dragoman.training.display import NoDisplay
from dragoman.training.log import Log
from dragoman.training.loop import learn
from dragoman.training.progress import Best, TrainingProgress
from dragoman.training.session import train_run
from dragoman.training.state import Training

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]
CPU = torch.device("cpu")


# --- when it ends, what it keeps ---------------------------------------------------------------------


def test_max_epochs_ends_with_the_data_and_can_be_raised(make_run: MakeRun) -> None:
    from dragoman.training.api import resume

    run = make_run("train.max_updates=null", "train.max_epochs=2", "train.accumulate=2", name="short")
    assert run.outcome is not None
    assert run.outcome.reason == "max_epochs 2 is reached"
    first = run.outcome.update
    train_run(run, NoDisplay())
    assert run.outcome.update == first
    resume(run.directory, ["train.max_epochs=4"], quiet=True)
    long = make_run("train.max_updates=null", "train.max_epochs=4", "train.accumulate=2", name="long")
    assert long.outcome is not None
    assert int(Run.open(run.directory).last or 0) == long.outcome.update


def test_patience_ends_a_run(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([(1.0, 5.0), (2.0, 4.0), (1.5, 3.0), (1.5, 3.0), (2.0, 4.5), (3.0, 1.0)])
    real = validation.DecoderValidator.run

    def scripted(self: validation.DecoderValidator, *args: object) -> validation.Validation:
        found = real(self, *args)  # type: ignore[arg-type]
        chrf, loss = next(values)
        return validation.Validation(found.metrics | {"chrf": chrf, "loss": loss}, found.samples)

    monkeypatch.setattr(validation.DecoderValidator, "run", scripted)
    run = make_run(
        "train.max_updates=null", "train.patience=3", "train.metric=chrf", "train.validate_every=4"
    )
    assert run.outcome is not None
    assert run.outcome.reason == "early stopping: chrF has not improved in 3 validations"
    assert run.outcome.update == 20
    assert run.best == {"name": "0000008", "metric": "chrf", "value": 2.0}
    assert "0000008" in checkpoint.names(run.checkpoints)


def test_what_is_better() -> None:
    progress = TrainingProgress()
    assert progress.is_better("bleu", {"bleu": 0.0, "loss": 9.0})
    assert not progress.is_better("bleu", {"bleu": math.nan, "loss": 9.0})
    progress.best = Best("0000001", "bleu", 0.0, 9.0)
    assert progress.is_better("bleu", {"bleu": 0.0, "loss": 8.0})  # of equals the one with the lower loss
    assert not progress.is_better("bleu", {"bleu": 0.0, "loss": 9.0})
    assert progress.is_better("bleu", {"bleu": 0.1, "loss": 10.0})
    assert progress.is_better("loss", {"bleu": 0.1, "loss": 10.0})  # another metric begins anew
    progress.best = Best("0000001", "loss", 9.0, 9.0)
    assert progress.is_better("loss", {"loss": 8.9})
    assert not progress.is_better("loss", {"loss": 9.1})


def test_metrics_of_different_numbers_of_sentences_are_not_compared() -> None:
    progress = TrainingProgress()
    assert progress.count_validation("1", "bleu", {"bleu": 52.0, "loss": 3.0, "translated": 16})
    assert progress.best is not None and progress.best.translated == 16
    assert not progress.is_better("bleu", {"bleu": 51.0, "loss": 2.0, "translated": 16})
    assert progress.count_validation("2", "bleu", {"bleu": 47.0, "loss": 2.5, "translated": 32})
    assert not progress.is_better("bleu", {"bleu": 60.0, "loss": 2.6, "translated": 16})
    assert progress.is_better("bleu", {"bleu": 47.5, "loss": 2.6, "translated": 32})


def test_max_minutes_ends_a_run_and_counts_earlier_sessions(make_run: MakeRun) -> None:
    run = make_run("train.max_updates=null", "train.max_minutes=0.005")
    assert run.outcome is not None
    assert run.outcome.reason == "max_minutes 0.005 is reached"
    last = run.last
    assert train_run(run, NoDisplay()).reason == "max_minutes 0.005 is reached"
    assert run.last == last


def test_a_plateau_cuts_the_rate_and_remembers_it(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    real = validation.DecoderValidator.run

    def never_better(self: validation.DecoderValidator, *args: object) -> validation.Validation:
        found = real(self, *args)  # type: ignore[arg-type]
        return validation.Validation(found.metrics | {"loss": 5.0}, found.samples)

    monkeypatch.setattr(validation.DecoderValidator, "run", never_better)
    options = ("schedule.name=plateau", "schedule.patience=2", "schedule.warmup=0", "train.validate_every=3")
    run = make_run(*options, "train.log_every=1")
    rates = {r["update"]: r["rate"] / 3e-3 for r in run.metrics if r["kind"] == "train"}
    assert (rates[9], rates[10], rates[15], rates[16]) == (1.0, 0.5, 0.5, 0.25)
    assert (
        checkpoint.newest(run.checkpoints).state["progress"]["plateau_cuts"] == 3
    )  # the last one at the end


def test_the_average_follows_its_formula_and_is_what_is_validated(
    make_run: MakeRun, make_config: MakeConfig, prepared: Prepared
) -> None:
    config = make_config("train.ema=0.9", "train.max_updates=3")
    training = Training(config, prepared, CPU)
    expected = {n: t.double().numpy().copy() for n, t in training.tensors()["model"].items()}
    for data in Batches(config, prepared, CPU).updates(0, 0):
        training.progress.update += 1
        learn(training, data)
        decay = min(0.9, (1 + training.progress.update) / (10 + training.progress.update))
        for name, tensor in training.tensors()["model"].items():
            expected[name] += (1 - decay) * (tensor.double().numpy() - expected[name])
        if training.progress.update == 5:
            break
    for name, tensor in training.tensors()["ema"].items():
        np.testing.assert_allclose(tensor.numpy(), expected[name], rtol=1e-5, atol=1e-6)
    run = make_run("train.ema=0.9")
    found = checkpoint.newest(run.checkpoints)
    translator = run.translator("last")
    served = dict(translator.model.named_parameters())
    for name, tensor in found.read("ema").items():
        assert torch.equal(served[name].detach(), tensor)


def test_the_mean_of_the_last_checkpoints_is_kept_if_better(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = validation.DecoderValidator.run
    calls = []

    def scripted(self: validation.DecoderValidator, *args: object) -> validation.Validation:
        found = real(self, *args)  # type: ignore[arg-type]
        calls.append(1)
        return validation.Validation(found.metrics | {"loss": 5.0 - len(calls)}, found.samples)

    monkeypatch.setattr(validation.DecoderValidator, "run", scripted)
    run = make_run("train.average=3", "train.validate_every=20")
    assert {"0000010", "0000015", "0000020"} <= set(checkpoint.names(run.checkpoints))
    assert run.best is not None
    assert run.best["name"] == "averaged"
    mean = checkpoint.average_checkpoints(
        [run.checkpoints / name for name in ("0000010", "0000015", "0000020")]
    )
    served = dict(run.translator().model.named_parameters())
    assert all(torch.equal(served[name].detach(), tensor) for name, tensor in mean.items())
    assert run.metrics[-1]["kind"] == "averaged"


def test_only_what_is_needed_is_kept(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    real = validation.DecoderValidator.run

    def first_is_best(self: validation.DecoderValidator, *args: object) -> validation.Validation:
        found = real(self, *args)  # type: ignore[arg-type]
        first_is_best.calls += 1  # type: ignore[attr-defined]
        return validation.Validation(found.metrics | {"loss": float(first_is_best.calls)}, [])  # type: ignore[attr-defined]

    first_is_best.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(validation.DecoderValidator, "run", first_is_best)
    run = make_run("train.max_updates=40", "train.save_every=2", "train.validate_every=4")
    assert checkpoint.names(run.checkpoints) == ["0000004", "0000038", "0000040"]
    assert json.loads((run.directory / "best.json").read_text())["name"] == "0000004"


def test_best_json_is_mended_after_a_kill_between_the_two(make_run: MakeRun) -> None:
    run = make_run()
    best = run.best
    (run.directory / "best.json").unlink()
    train_run(run, NoDisplay())
    assert run.best == best


def test_a_model_that_stands_still_is_told_once(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_STANDSTILL_FROM", 9)
    warmed_up = ("schedule.warmup=1", "train.validate_every=4")
    told = (make_run(*warmed_up, "optim.rate=1e-9").directory / "log.txt").read_text("utf-8")
    assert told.count("token frequencies alone give") == 1
    assert "after 12 updates the loss on the validation set is" in told
    monkeypatch.setattr(validation.DecoderValidator, "frequency_loss", 99.0)
    better = make_run(*warmed_up, "optim.rate=1e-9", "train.max_updates=12", name="better")
    assert "token frequencies" not in (better.directory / "log.txt").read_text("utf-8")


def test_out_of_memory_names_the_pair(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(train=False)

    def too_big(_training: Training, _data: UpdateBatch) -> loop.Learnt:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop, "learn", too_big)
    with pytest.raises(UserError, match=r"out of memory on cpu.*a\.en:\d+.*train\.batch_tokens below 200"):
        train_run(run, NoDisplay())


def test_a_full_disk_under_the_log_is_one_sentence(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(train=False)
    real = Log._record

    def full(self: Log, kind: str, record: dict[str, object]) -> None:
        if record["update"] == 12:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(self, kind, record)

    monkeypatch.setattr(Log, "_record", full)
    with pytest.raises(
        UserError, match=r"No space left on device \([\d,]+ bytes are free\).*checkpoint is 0000010"
    ):
        train_run(run, NoDisplay())
    monkeypatch.undo()
    assert train_run(run, NoDisplay()).update == 20


def test_tensorboard_gets_the_same_numbers(make_run: MakeRun) -> None:
    pytest.importorskip("tensorboard")
    run = make_run("train.tensorboard=true", "train.max_updates=8")
    events = list(Path(run.directory / "tensorboard").glob("events*"))
    assert events
    assert events[0].stat().st_size > 200

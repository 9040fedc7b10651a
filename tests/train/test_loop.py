"""The loop on the real Transformer: what an update computes, what is skipped and kept, when it ends."""

import errno
import json
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman import checkpoint
from dragoman.data.batch import collate
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.train import loop, validate
from dragoman.train.batches import Batches, MicroBatch, UpdateBatch
from dragoman.train.config import RunConfig
from dragoman.train.display import Quiet
from dragoman.train.log import Log
from dragoman.train.loop import learn
from dragoman.train.run import Run
from dragoman.train.session import train_run
from dragoman.train.state import Best, Progress, Training

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]
CPU = torch.device("cpu")


def training_in_double(config: RunConfig, prepared: Prepared) -> Training:
    torch.set_default_dtype(torch.float64)
    try:
        training = Training(config, prepared, CPU)
    finally:
        torch.set_default_dtype(torch.float32)
    training.progress.update = 1
    return training


def as_update(prepared: Prepared, groups: list[list[int]]) -> UpdateBatch:
    store = prepared.train
    micro_batches = [
        MicroBatch(collate([(store.src(i), store.tgt(i)) for i in group]), np.array(group), 0, number)
        for number, group in enumerate(groups, 1)
    ]
    return UpdateBatch(micro_batches, 0, len(groups), last=False)


def same_files(a: Run, b: Run, checkpoint_name: str) -> None:
    for file in ("model.safetensors", "optim.safetensors", "state.json"):
        left, right = (run.checkpoints / checkpoint_name / file for run in (a, b))
        assert left.read_bytes() == right.read_bytes(), file
    for file in ("metrics.jsonl", "best.json"):
        assert (a.directory / file).read_bytes() == (b.directory / file).read_bytes(), file


def _flat(tensors: list[torch.Tensor]) -> list[float]:
    return torch.cat([tensor.reshape(-1) for tensor in tensors]).tolist()


# --- one update --------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [0.0, 0.05], ids=["free", "clipped"])
def test_accumulation_is_one_big_batch(make_config: MakeConfig, prepared: Prepared, clip: float) -> None:
    config = make_config("model.dropout=0", f"train.clip={clip}", "optim.name=sgd", "optim.rate=0.1")
    numbers = list(range(24))
    ways = [[numbers], [numbers[:5], numbers[5:6], numbers[6:]], [[n] for n in numbers]]
    results = []
    for groups in ways:
        training = training_in_double(config, prepared)
        learnt = learn(training, as_update(prepared, groups))
        results.append((learnt, [p.detach().clone() for p in training.parameters]))
    first, weights = results[0]
    for learnt, others in results[1:]:
        assert learnt.tokens == first.tokens
        assert learnt.loss == pytest.approx(first.loss, rel=1e-6)  # the sums are single precision
        for a, b in zip(weights, others, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12 if not clip else 1e-9)


def test_the_gradient_is_that_of_the_mean_over_target_tokens(
    make_config: MakeConfig, prepared: Prepared
) -> None:
    config = make_config(
        "model.dropout=0", "train.clip=0", "optim.name=sgd", "optim.momentum=0", "schedule.warmup=0"
    )
    training = training_in_double(config, prepared)
    before = [p.detach().clone() for p in training.parameters]
    update = as_update(prepared, [[0, 1, 2], [3]])
    losses = [training.objective(training.model, micro.batch, 1) for micro in update.micro_batches]
    mean = torch.stack([loss.total for loss in losses]).sum() / sum(loss.count for loss in losses)
    gradients = torch.autograd.grad(mean, training.parameters)
    learnt = learn(training, update)
    norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
    assert learnt.norm == pytest.approx(norm, rel=1e-6)
    for parameter, old, gradient in zip(training.parameters, before, gradients, strict=True):
        torch.testing.assert_close(parameter.detach(), old - training.rate * gradient, rtol=0, atol=1e-12)


def test_clipping_bounds_the_norm(make_config: MakeConfig, prepared: Prepared) -> None:
    config = make_config("train.clip=0.01", "optim.name=sgd", "optim.momentum=0", "schedule.warmup=0")
    training = training_in_double(config, prepared)
    before = [p.detach().clone() for p in training.parameters]
    learnt = learn(training, as_update(prepared, [[0, 1, 2]]))
    moved = math.dist(_flat([p.detach() for p in training.parameters]), _flat(before))
    assert learnt.norm > 0.01
    assert moved == pytest.approx(0.01 * training.rate, rel=1e-6)


def test_randomness_is_a_function_of_seed_update_and_batch(
    make_config: MakeConfig, prepared: Prepared
) -> None:
    def loss_of(update: int, groups: list[list[int]], *overrides: str) -> float:
        training = Training(make_config("model.dropout=0.5", *overrides), prepared, CPU)
        training.progress.update = update
        torch.rand(update)  # whatever was drawn before changes nothing
        return learn(training, as_update(prepared, groups)).loss

    assert loss_of(3, [[1, 2]]) == loss_of(3, [[1, 2]])
    assert loss_of(3, [[1, 2]]) != loss_of(4, [[1, 2]])
    twice = loss_of(3, [[1, 2], [1, 2]])
    assert twice != 2 * loss_of(3, [[1, 2]])


def test_bf16_learns_nearly_the_same(make_config: MakeConfig, prepared: Prepared) -> None:
    losses = []
    for amp in ("none", "bf16"):
        training = Training(make_config(f"train.amp={amp}", "model.dropout=0"), prepared, CPU)
        training.progress.update = 1
        learnt = learn(training, as_update(prepared, [[0, 1, 2, 3]]))
        assert all(p.dtype == torch.float32 for p in training.parameters)
        losses.append(learnt.loss / learnt.tokens)
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


# --- a run -------------------------------------------------------------------------------------------


def test_a_run_learns_and_leaves_everything_in_place(make_run: MakeRun) -> None:
    run = make_run("train.max_updates=60", "train.validate_every=20", "optim.rate=1e-2")
    records = run.metrics
    train = [r for r in records if r["kind"] == "train"]
    valid = [r for r in records if r["kind"] == "valid"]
    assert [r["update"] for r in train] == list(range(4, 61, 4))
    assert [r["update"] for r in valid] == [20, 40, 60]
    assert train[-1]["loss"] < 0.8 * train[0]["loss"]
    assert valid[-1]["perplexity"] == pytest.approx(math.exp(valid[-1]["loss"]))
    assert {"bleu", "chrf", "accuracy", "forced_loss", "free_loss"} <= valid[0].keys()
    assert run.best is not None
    assert run.best["value"] == min(r["loss"] for r in valid)
    assert run.last == "0000060"
    assert run.outcome is not None
    assert run.outcome.exit_status == 0
    assert len(run.translator().translate(["ab c", "e"])) == 2
    log = (run.directory / "log.txt").read_text()
    assert "update 60/60" in log
    assert "dragoman translate" in log


def test_the_same_run_twice_is_the_same_bit_for_bit(make_run: MakeRun) -> None:
    runs = [make_run(name=name) for name in ("one", "two")]
    same_files(runs[0], runs[1], "0000020")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, make_config: MakeConfig, prepared: Prepared) -> Run:
    """A run with everything switched on that was never stopped."""
    options = ("train.ema=0.9", "train.accumulate=2", "train.average=2", "schedule.name=plateau")
    run = Run.create(tmp_path_factory.mktemp("whole") / "run", make_config(*options), prepared)
    train_run(run, Quiet())
    return run


@pytest.mark.parametrize("stop_at", [1, 7, 10, 19])
def test_stopping_by_a_signal_and_going_on_changes_nothing(
    whole: Run, tmp_path: Path, prepared: Prepared, monkeypatch: pytest.MonkeyPatch, stop_at: int
) -> None:
    stopped = Run.create(tmp_path / "stopped", whole.config, prepared)
    number = signal.SIGINT if stop_at % 2 else signal.SIGTERM
    monkeypatch.setattr(loop, "learn", raise_signal_at(stop_at, number))
    outcome = train_run(stopped, Quiet())
    assert (outcome.update, outcome.exit_status) == (stop_at, 128 + number)
    assert stopped.last == checkpoint.name_of(stop_at)
    assert "dragoman resume" in (stopped.directory / "log.txt").read_text()
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    outcome = train_run(Run.open(stopped.directory), Quiet())
    assert outcome.exit_status == 0
    same_files(whole, stopped, "0000020")
    ema = [run.checkpoints / "0000020" / "ema.safetensors" for run in (whole, stopped)]
    assert ema[0].read_bytes() == ema[1].read_bytes()


def raise_signal_at(update: int, number: int, times: int = 1) -> Callable[..., loop.Learnt]:
    def learn_with_signal(training: Training, data: UpdateBatch) -> loop.Learnt:
        learnt = learn(training, data)
        if training.progress.update == update:
            for _ in range(times):
                os.kill(os.getpid(), number)
        return learnt

    return learn_with_signal


def test_stopping_under_scheduled_sampling_changes_nothing(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share falls with the number of the update, and the coins are seeded by it."""
    options = ("model={kind: rnn, model_dim: 12, weight_dropout: 0.2, variational_dropout: true}",)
    options += ("objective.teacher_forcing_schedule=inverse_sigmoid", "objective.teacher_forcing_end=0.2")
    options += ("objective.teacher_forcing_updates=15",)
    whole = make_run(*options, name="whole")
    stopped = make_run(*options, name="stopped", train=False)
    monkeypatch.setattr(loop, "learn", raise_signal_at(7, signal.SIGTERM))
    assert train_run(stopped, Quiet()).update == 7
    monkeypatch.undo()
    train_run(Run.open(stopped.directory), Quiet())
    same_files(whole, stopped, "0000020")
    taught = make_run(options[0], name="taught")
    assert taught.metrics[0]["loss"] != whole.metrics[0]["loss"]


def test_a_second_ctrl_c_leaves_at_once(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(train=False)
    monkeypatch.setattr(loop, "learn", raise_signal_at(7, signal.SIGINT, times=2))
    with pytest.raises(KeyboardInterrupt):
        train_run(run, Quiet())
    assert run.last == "0000005"
    monkeypatch.undo()
    assert train_run(run, Quiet()).update == 20


def test_a_damaged_checkpoint_costs_only_itself(make_run: MakeRun) -> None:
    whole = make_run("train.max_updates=30", name="whole")
    damaged = make_run("train.max_updates=20", name="damaged")
    path = damaged.checkpoints / "0000020" / "optim.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x55")
    from dragoman.train.api import resume

    resume(damaged.directory, ["train.max_updates=30"], quiet=True)
    assert "0000020/optim.safetensors" in (damaged.directory / "log.txt").read_text()
    assert (damaged.checkpoints / "0000020.damaged").is_dir()
    for file in ("model.safetensors", "optim.safetensors", "state.json"):
        left, right = (run.checkpoints / "0000030" / file for run in (whole, damaged))
        assert left.read_bytes() == right.read_bytes()


def test_the_metrics_are_cut_back_to_the_checkpoint(make_run: MakeRun) -> None:
    run = make_run()
    path = run.directory / "metrics.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + b'{"kind": "train", "update": 99}\n{"half a li')
    train_run(run, Quiet())
    assert path.read_bytes() == before
    path.write_bytes(before[:-10])
    train_run(run, Quiet())
    assert "10 bytes are missing" in (run.directory / "log.txt").read_text()


# --- what is not finite ------------------------------------------------------------------------------


def poisoned(updates: set[int], value: float) -> Callable[..., loop.Learnt]:
    """`learn`, where the gradient of some updates is spoilt by its loss."""

    def learn_poisoned(training: Training, data: UpdateBatch) -> loop.Learnt:
        objective = training.objective
        if training.progress.update in updates:

            def spoilt(model: torch.nn.Module, batch: object, update: int) -> object:
                loss = objective(model, batch, update)  # type: ignore[arg-type]
                return type(loss)(loss.total * value, loss.nll, loss.count)

            training.objective = spoilt  # type: ignore[assignment]
        try:
            return learn(training, data)
        finally:
            training.objective = objective

    return learn_poisoned


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e38])
def test_updates_that_are_not_finite_are_skipped_and_counted(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    run = make_run(train=False)
    monkeypatch.setattr(loop, "learn", poisoned({3, 8, 9, 20}, value))
    train_run(run, Quiet())
    train = [r for r in run.metrics if r["kind"] == "train"]
    assert [r["skipped"] for r in train] == [1, 2, 3, 3, 4]
    assert all(math.isfinite(r["loss"]) for r in train)
    found = checkpoint.load(run.checkpoints / "0000020")
    assert found.state["progress"]["skipped"] == 4
    for part in found.parts:
        assert all(bool(torch.isfinite(t.float()).all()) for t in found.read(part).values())
    steps = {int(t) for name, t in found.read("optim").items() if name.startswith("step.")}
    assert steps == {16}
    assert "update 8 is skipped" in (run.directory / "log.txt").read_text()


def test_a_skipped_update_changes_no_weight(make_config: MakeConfig, prepared: Prepared) -> None:
    training = Training(make_config("train.ema=0.9"), prepared, CPU)
    training.progress.update = 5
    before = {
        part: {n: t.clone() for n, t in entries.items()} for part, entries in training.tensors().items()
    }
    learnt = poisoned({5}, float("nan"))(training, next(Batches(make_config(), prepared, CPU).updates(0, 0)))
    assert not learnt.finite
    for part, entries in training.tensors().items():
        assert all(torch.equal(entries[name], tensor) for name, tensor in before[part].items())


def test_too_many_in_a_row_stop_the_run_with_the_last_good_checkpoint(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run("train.max_bad_updates=4", train=False)
    monkeypatch.setattr(loop, "learn", poisoned({2, 3, 4, *range(7, 21)}, float("nan")))
    with pytest.raises(UserError, match=r"update 10: .* 4 times in a row.* last checkpoint is 0000008"):
        train_run(run, Quiet())
    for name in checkpoint.names(run.checkpoints):
        for tensor in checkpoint.load(run.checkpoints / name).read("model").values():
            assert bool(torch.isfinite(tensor).all())
    monkeypatch.undo()
    assert train_run(run, Quiet()).update == 20


def test_weights_that_are_not_finite_are_never_saved(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(train=False)

    def ruin(training: Training, data: UpdateBatch) -> loop.Learnt:
        learnt = learn(training, data)
        if training.progress.update == 7:
            training.parameters[2].data.view(-1)[0] = float("nan")
        return learnt

    monkeypatch.setattr(loop, "learn", ruin)
    with pytest.raises(UserError, match="NaN or infinite"):
        train_run(run, Quiet())
    assert run.last == "0000005"
    assert (run.directory / "best.json").exists() is False


# --- when it ends, what it keeps ---------------------------------------------------------------------


def test_max_epochs_ends_with_the_data_and_can_be_raised(make_run: MakeRun) -> None:
    from dragoman.train.api import resume

    run = make_run("train.max_updates=null", "train.max_epochs=2", "train.accumulate=2", name="short")
    assert run.outcome is not None
    assert run.outcome.reason == "max_epochs 2 is reached"
    first = run.outcome.update
    train_run(run, Quiet())
    assert run.outcome.update == first
    resume(run.directory, ["train.max_epochs=4"], quiet=True)
    long = make_run("train.max_updates=null", "train.max_epochs=4", "train.accumulate=2", name="long")
    assert long.outcome is not None
    assert int(Run.open(run.directory).last or 0) == long.outcome.update


def test_patience_ends_a_run(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([(1.0, 5.0), (2.0, 4.0), (1.5, 3.0), (1.5, 3.0), (2.0, 4.5), (3.0, 1.0)])
    real = validate.Validator.run

    def scripted(self: validate.Validator, *args: object) -> validate.Validation:
        found = real(self, *args)  # type: ignore[arg-type]
        chrf, loss = next(values)
        return validate.Validation(found.metrics | {"chrf": chrf, "loss": loss}, found.samples)

    monkeypatch.setattr(validate.Validator, "run", scripted)
    run = make_run(
        "train.max_updates=null", "train.patience=3", "train.metric=chrf", "train.validate_every=4"
    )
    assert run.outcome is not None
    assert run.outcome.reason == "chrf has not become better in 3 validations"
    assert run.outcome.update == 20
    assert run.best == {"name": "0000008", "metric": "chrf", "value": 2.0}
    assert "0000008" in checkpoint.names(run.checkpoints)


def test_what_is_better() -> None:
    progress = Progress()
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


def test_max_minutes_ends_a_run_and_counts_earlier_sessions(make_run: MakeRun) -> None:
    run = make_run("train.max_updates=null", "train.max_minutes=0.005")
    assert run.outcome is not None
    assert run.outcome.reason == "max_minutes 0.005 is over"
    last = run.last
    assert train_run(run, Quiet()).reason == "max_minutes 0.005 is over"
    assert run.last == last


def test_a_plateau_cuts_the_rate_and_remembers_it(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    real = validate.Validator.run

    def never_better(self: validate.Validator, *args: object) -> validate.Validation:
        found = real(self, *args)  # type: ignore[arg-type]
        return validate.Validation(found.metrics | {"loss": 5.0}, found.samples)

    monkeypatch.setattr(validate.Validator, "run", never_better)
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
    real = validate.Validator.run
    calls = []

    def scripted(self: validate.Validator, *args: object) -> validate.Validation:
        found = real(self, *args)  # type: ignore[arg-type]
        calls.append(1)
        return validate.Validation(found.metrics | {"loss": 5.0 - len(calls)}, found.samples)

    monkeypatch.setattr(validate.Validator, "run", scripted)
    run = make_run("train.average=3", "train.validate_every=20")
    assert {"0000010", "0000015", "0000020"} <= set(checkpoint.names(run.checkpoints))
    assert run.best is not None
    assert run.best["name"] == "averaged"
    mean = checkpoint.average([run.checkpoints / name for name in ("0000010", "0000015", "0000020")])
    served = dict(run.translator().model.named_parameters())
    assert all(torch.equal(served[name].detach(), tensor) for name, tensor in mean.items())
    assert run.metrics[-1]["kind"] == "averaged"


def test_only_what_is_needed_is_kept(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    real = validate.Validator.run

    def first_is_best(self: validate.Validator, *args: object) -> validate.Validation:
        found = real(self, *args)  # type: ignore[arg-type]
        first_is_best.calls += 1  # type: ignore[attr-defined]
        return validate.Validation(found.metrics | {"loss": float(first_is_best.calls)}, [])  # type: ignore[attr-defined]

    first_is_best.calls = 0  # type: ignore[attr-defined]
    monkeypatch.setattr(validate.Validator, "run", first_is_best)
    run = make_run("train.max_updates=40", "train.save_every=2", "train.validate_every=4")
    assert checkpoint.names(run.checkpoints) == ["0000004", "0000038", "0000040"]
    assert json.loads((run.directory / "best.json").read_text())["name"] == "0000004"


def test_best_json_is_mended_after_a_kill_between_the_two(make_run: MakeRun) -> None:
    run = make_run()
    best = run.best
    (run.directory / "best.json").unlink()
    train_run(run, Quiet())
    assert run.best == best


def test_out_of_memory_names_the_pair(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(train=False)

    def too_big(_training: Training, _data: UpdateBatch) -> loop.Learnt:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(loop, "learn", too_big)
    with pytest.raises(UserError, match=r"out of memory on cpu.*a\.en:\d+.*train\.batch_tokens below 200"):
        train_run(run, Quiet())


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
        train_run(run, Quiet())
    monkeypatch.undo()
    assert train_run(run, Quiet()).update == 20


def test_tensorboard_gets_the_same_numbers(make_run: MakeRun) -> None:
    pytest.importorskip("tensorboard")
    run = make_run("train.tensorboard=true", "train.max_updates=8")
    events = list(Path(run.directory / "tensorboard").glob("events*"))
    assert events
    assert events[0].stat().st_size > 200

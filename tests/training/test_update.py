"""One update on the real Transformer: what it computes, and what it makes of numbers that are not finite."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

from dragoman import checkpoint
from dragoman.data.batch import collate
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training import loop
from dragoman.training.batches import Batches, MicroBatch, UpdateBatch
from dragoman.training.display import NoDisplay
from dragoman.training.loop import learn
from dragoman.training.session import train_run
from dragoman.training.state import Training

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


def _flat(tensors: list[torch.Tensor]) -> list[float]:
    return torch.cat([tensor.reshape(-1) for tensor in tensors]).tolist()


@pytest.mark.parametrize("setting", ["model.copy=false", "model.copy=true", "objective.r_drop=1"])
def test_what_is_kept_of_a_pass_keeps_no_graph(
    make_config: MakeConfig, prepared: Prepared, setting: str
) -> None:
    """A graph that lives on belongs to the stream it was made on, and the next update cannot be recorded."""
    training = training_in_double(make_config(setting), prepared)
    sums = training.passed(as_update(prepared, [[0, 1, 2]]).micro_batches[0].batch)
    assert [part.grad_fn for part in sums] == [None, None]


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
    train_run(run, NoDisplay())
    train = [r for r in run.metrics if r["kind"] == "train"]
    assert [r["skipped"] for r in train] == [1, 2, 3, 3, 4]
    assert all(math.isfinite(r["loss"]) for r in train)
    found = checkpoint.load_checkpoint(run.checkpoints / "0000020")
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
        train_run(run, NoDisplay())
    for name in checkpoint.names(run.checkpoints):
        for tensor in checkpoint.load_checkpoint(run.checkpoints / name).read("model").values():
            assert bool(torch.isfinite(tensor).all())
    monkeypatch.undo()
    assert train_run(run, NoDisplay()).update == 20


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
        train_run(run, NoDisplay())
    assert run.last == "0000005"
    assert (run.directory / "best.json").exists() is False


@pytest.mark.parametrize("ahead", [False, True], ids=["host", "device"])
def test_a_norm_below_the_clip_changes_nothing(
    make_config: MakeConfig, prepared: Prepared, ahead: bool
) -> None:
    """Bit for bit the step without clipping, whether the host or the device decides."""
    results = []
    for clip in (0.0, 1e6):
        training = Training(make_config(f"train.clip={clip}", "optim.name=sgd"), prepared, CPU)
        training.progress.update, training.ahead = 1, ahead
        learnt = learn(training, as_update(prepared, [[0, 1, 2], [3, 4]]))
        results.append([p.detach().clone() for p in training.parameters])
        assert 0 < learnt.norm < 1e6
    for free, clipped in zip(*results, strict=True):
        assert torch.equal(free, clipped)


@pytest.mark.parametrize("ahead", [False, True], ids=["host", "device"])
def test_a_step_is_as_long_as_the_schedule_says(
    make_config: MakeConfig, prepared: Prepared, ahead: bool
) -> None:
    """In the fifth update of a warm-up it is five times as long as in the first."""
    steps = []
    for update in (1, 5):
        config = make_config(
            *("optim.name=sgd", "optim.rate=0.5", "train.clip=0", "model.dropout=0"),
            *("schedule.name=constant", "schedule.warmup=10"),
        )
        training = Training(config, prepared, CPU)
        training.progress.update, training.ahead = update, ahead
        before = [p.detach().clone() for p in training.parameters]
        learn(training, as_update(prepared, [[0, 1, 2], [3, 4]]))
        steps.append([p.detach() - old for p, old in zip(training.parameters, before, strict=True)])
    for first, fifth in zip(*steps, strict=True):
        torch.testing.assert_close(fifth, 5 * first, atol=1e-6, rtol=1e-3)
    assert max(float(step.abs().max()) for step in steps[0]) > 1e-3

"""Which parameters learn and how fast: by hand, bit for bit, and as resumable as everything else."""

import shutil
from collections.abc import Callable

import pytest
import torch

from dragoman import checkpoint
from dragoman.checkpoint.model import load_model, model_tensors
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.display import NoDisplay
from dragoman.training.optim import set_rate
from dragoman.training.session import train_run
from dragoman.training.state import Training
from dragoman.training.transfer import awake

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]
CPU = torch.device("cpu")
SHORT = ("train.max_updates=4", "train.save_every=2", "train.validate_every=4", "train.keep=9")
LORA = ("transfer.lora.rank=2", "transfer.lora.targets=[query_key_value, query]")


def weights(run: Run, update: int) -> dict[str, torch.Tensor]:
    return dict(
        checkpoint.load_checkpoint(run.checkpoints / checkpoint.checkpoint_name(update)).read("model")
    )


def changed(run: Run, first: int, last: int) -> set[str]:
    before, after = weights(run, first), weights(run, last)
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_one_stage_more_every_k_updates() -> None:
    assert [awake(4, 3, update) for update in range(1, 14)] == [1] * 3 + [2] * 3 + [3] * 3 + [4] * 4
    assert awake(4, 0, 1) == 4


def test_rates_fall_from_the_head_to_the_embeddings(make_config: MakeConfig, prepared: Prepared) -> None:
    training = Training(make_config("transfer.layer_decay=0.5"), prepared, CPU)
    set_rate(training.optimizer, 0.8)
    top = len(training.transfer.stages) - 1
    names = {parameter: name for name, parameter in training.model.named_parameters()}
    seen = set()
    for group in training.optimizer.param_groups:
        for parameter in group["params"]:
            name = names[parameter]
            stage = next(n for n, own in enumerate(training.transfer.stages.values()) if name in own)
            assert group["lr"] == 0.8 * 0.5 ** (top - stage)
            seen.add(name)
    assert seen == set(names.values())


def test_what_is_frozen_stays_bit_for_bit(make_run: MakeRun) -> None:
    run = make_run(*SHORT, "transfer.freeze_layers=1", "transfer.freeze=[decoder.layers.0.feedforward]")
    moved = changed(run, 2, 4)
    still = {name for name in weights(run, 2) if name not in moved}
    assert still == {
        name
        for name in weights(run, 2)
        if "embedding" in name or name.startswith(("encoder.layers.0.", "decoder.layers.0.feedforward."))
    }
    assert not any(name.endswith(tuple(still)) for name in checkpoint.newest(run.checkpoints).read("optim"))


def test_gradual_unfreezing_and_resuming_with_all_of_it(make_run: MakeRun) -> None:
    options = (
        *SHORT,
        "train.max_updates=6",
        "transfer.unfreeze_every=2",
        "transfer.layer_decay=0.4",
        "train.ema=0.9",
        "schedule.name=slanted_triangular",
        "optim.rate=0.01",
    )
    run = make_run(*options)
    stages = list(Training(run.config, run.prepared(), CPU).transfer.stages.values())
    assert changed(run, 2, 4) == {name for names in stages[-2:] for name in names}
    assert changed(run, 4, 6) == {name for names in stages[-3:] for name in names}
    other = make_run(*options, name="resumed", train=False)
    shutil.copytree(run.checkpoints / "0000002", other.checkpoints / "0000002")
    train_run(other, NoDisplay())
    for file in ("model.safetensors", "optim.safetensors", "ema.safetensors"):
        left, right = (each.checkpoints / "0000006" / file for each in (run, other))
        assert left.read_bytes() == right.read_bytes(), file


def test_pairs_learn_alone_are_resumed_and_folded_for_use(make_run: MakeRun) -> None:
    run = make_run(*SHORT, *LORA)
    moved = changed(run, 2, 4)
    assert moved == {name for name in weights(run, 2) if name.endswith((".low", ".high"))}
    log = (run.directory / "log.txt").read_text()
    total = sum(tensor.numel() for tensor in weights(run, 2).values())
    trained = sum(weights(run, 2)[name].numel() for name in moved)
    assert f"{trained:,} of {total:,} parameters are trained" in log
    loaded = load_model(run.directory, which="last")
    tensors = model_tensors(loaded.model)
    assert not any(name.endswith((".low", ".high")) for name in tensors)
    own = weights(run, 4)
    name = "decoder.layers.0.cross_attention.query"
    expected = own[f"{name}.weight"] + 8.0 * own[f"{name}.high"] @ own[f"{name}.low"]
    torch.testing.assert_close(tensors[f"{name}.weight"], expected)
    assert run.translator("last", "cpu").translate(["a b c"])
    more = make_run("train.max_updates=1", *LORA, f"start={run.directory}", name="more")
    begun = model_tensors(load_model(run.directory).model)
    torch.testing.assert_close(weights(more, 1)[f"{name}.weight"], begun[f"{name}.weight"])
    other = make_run(*SHORT, *LORA, name="resumed", train=False)
    shutil.copytree(run.checkpoints / "0000002", other.checkpoints / "0000002")
    train_run(other, NoDisplay())
    for file in ("model.safetensors", "optim.safetensors"):
        left, right = (each.checkpoints / "0000004" / file for each in (run, other))
        assert left.read_bytes() == right.read_bytes(), file


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("transfer.freeze=[nothing]", "transfer.freeze: no parameter's name begins with 'nothing'"),
        ("transfer.freeze_layers=99", "transfer.freeze_layers: found 99, and this model has"),
        ("transfer.freeze=['encoder', 'decoder']", "transfer.freeze: nothing is left to learn"),
        ("transfer.layer_decay=0", "layer_decay: expected a number above 0"),
        ("transfer.lora.rank=-1", "lora.rank: expected a whole number from 0 on"),
        ("transfer.auxiliary_lm=0.5", "transfer.auxiliary_lm: found 0.5, and this model does not read"),
    ],
)
def test_refusals(make_config: MakeConfig, prepared: Prepared, override: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Training(make_config(override), prepared, CPU)

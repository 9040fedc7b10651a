"""Packed batches, and updates that the device decides about: the same as padded ones and as the host's."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from dragoman.data.batch import PairBatch, collate
from dragoman.data.corpus import Prepared
from dragoman.data.packed import PackedPairs
from dragoman.errors import UserError
from dragoman.learning.cross_entropy import CrossEntropy, RDrop
from dragoman.learning.loss import Loss, Objective
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.batches import Batches
from dragoman.training.state import Training
from dragoman.training.update import Late, Learnt, learn

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]
CPU = torch.device("cpu")
PAIRS = [([5, 6, 7], [8, 9]), ([4], [10, 11, 12, 13]), ([14] * 6, [3]), ([], [])]


@pytest.mark.parametrize("multiple", [0, 1, 7])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"norm": "pre", "positions": "learned", "max_positions": 4},
        {"positions": "none", "activation": "gelu", "gated": True, "tie_embeddings": False},
        {"positions": "rotary", "norm": "pre", "scale_output": True},
        {"positions": "rotary", "position_layout": "halves", "head_dim": 6, "value_dim": 3},
        {"positions": "t5", "norm": "pre", "norm_kind": "rms", "bias": False, "gated": True},
    ],
    ids=["post", "pre", "gated", "rotary", "rotary-halves", "t5"],
)
@pytest.mark.parametrize("objective", [CrossEntropy(0.1), RDrop(5.0, 0.1)], ids=["plain", "r-drop"])
def test_a_packed_batch_gives_the_loss_and_gradients_of_the_padded_one(
    fields: dict[str, object], multiple: int, objective: CrossEntropy | RDrop
) -> None:
    torch.manual_seed(1)
    config = TransformerConfig(num_layers=2, model_dim=8, num_heads=2, ff_dim=12, dropout=0.0, **fields)  # type: ignore[arg-type]
    model = build_model("transformer", config, Vocab(23, 23, shared=True)).double()
    assert model.abilities.packs
    batch, parameters = collate(PAIRS), list(model.parameters())
    expected, found = objective(model, batch), objective(model, PackedPairs.of(batch, multiple))
    assert found.count == expected.count
    torch.testing.assert_close(found.nll, expected.nll, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(found.total, expected.total, atol=1e-12, rtol=1e-12)
    gradients = torch.autograd.grad(found.total, parameters)
    others = torch.autograd.grad(expected.total, parameters)
    torch.testing.assert_close(gradients, others, atol=1e-12, rtol=1e-12)


def test_packing_lays_sequences_one_after_another() -> None:
    packed = PackedPairs.of(collate(PAIRS[:2]))
    assert packed.src_ids.tolist() == [[5, 6, 7, 2, 4, 2]]
    assert packed.src.starts.tolist() == [0, 4, 6]
    assert packed.tgt_in.tolist() == [[1, 8, 9, 1, 10, 11, 12, 13]]
    assert packed.tgt_out.tolist() == [[8, 9, 2, 10, 11, 12, 13, 2]]
    assert packed.tgt.places.tolist() == [[0, 1, 2, 0, 1, 2, 3, 4]]
    assert packed.shape == (2, 5)


def test_batches_are_filled_up_to_few_forms() -> None:
    forms = set()
    for count in range(20, 30):
        packed = PackedPairs.of(collate([([3] * (count % 5 + 1), [4] * 3)] * count), 64)
        assert packed.src_ids.size(1) == packed.tgt_in.size(1)
        assert packed.src_ids.size(1) % 64 == 0
        assert packed.src.starts[-1] == packed.tgt.starts[-1] == packed.src_ids.size(1)
        assert packed.num_tokens == 4 * count
        assert int((packed.tgt_out != 0).sum()) == 4 * count
        forms.add(packed.form)
    assert len(forms) <= 3


def test_models_that_cannot_be_packed_stay_padded(make_config: MakeConfig, prepared: Prepared) -> None:
    for override in ("model.decoder_self=average", "transfer.freeze_layers=1"):
        assert not Training(make_config(override), prepared, CPU).packed
        with pytest.raises(UserError, match=r"train\.pack"):
            Training(make_config(override, "train.pack=true"), prepared, CPU)
    assert not Training(make_config(), prepared, CPU).packed, "on a CPU nothing changes by itself"


def test_an_update_of_a_packed_batch_is_that_of_the_padded_one(
    make_config: MakeConfig, prepared: Prepared
) -> None:
    found = []
    for pack in ("true", "false"):
        config = make_config(f"train.pack={pack}", "model.dropout=0.0")
        training = Training(config, prepared, CPU)
        for data in _first(Batches(config, prepared, CPU, packed=training.packed), 3):
            training.progress.update += 1
            learnt = learn(training, data)
        kind = PackedPairs if pack == "true" else PairBatch
        assert isinstance(data.micro_batches[0].batch, kind)
        found.append((learnt.loss, learnt.norm))
    assert found[0] == pytest.approx(found[1], rel=1e-5)


@pytest.mark.parametrize("overrides", [[], ["train.ema=0.9", "train.clip=0.01", "optim.name=sgd"]])
def test_the_device_decides_as_the_host_does(
    make_config: MakeConfig, prepared: Prepared, overrides: list[str]
) -> None:
    """Also about an update that is not finite: nothing of it stays."""
    config = make_config(*overrides)
    trainings = [Training(config, prepared, CPU) for _ in range(2)]
    trainings[1].ahead = True
    batches = _first(Batches(config, prepared, CPU), 4)
    for training in trainings:
        training.objective = _Poisoned(training.objective, at=3)
    for number, data in enumerate(batches, 1):
        for training in trainings:
            training.progress.update = number
        host, device = (learn(training, data) for training in trainings)
        assert isinstance(host, Learnt)
        assert isinstance(device, Late)
        assert host.tokens == device.tokens
        assert host.finite == device.finite == (number != 3)
        if host.finite:
            assert (device.loss, device.nll) == pytest.approx((host.loss, host.nll), rel=1e-6)
            assert device.norm == pytest.approx(host.norm, rel=1e-5)
        ours, others = (training.tensors() for training in trainings)
        for part, tensors in ours.items():
            for name, tensor in tensors.items():
                if "key_value.bias" in name and config.optim.name == "adam":
                    continue  # that of a key has no gradient but rounding errors, which Adam makes large
                torch.testing.assert_close(tensor, others[part][name], atol=1e-6, rtol=1e-5)


def test_a_run_whose_numbers_come_late_is_the_same(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Logged, validated and saved at the same updates, with the same sums."""
    overrides = ("train.max_updates=6", "train.log_every=2", "train.validate_every=6", "train.save_every=3")
    plain = make_run(*overrides, name="plain")
    begin = Training.__init__

    def ahead(self: Training, *arguments: object) -> None:
        begin(self, *arguments)  # type: ignore[arg-type]
        self.ahead = True

    monkeypatch.setattr(Training, "__init__", ahead)
    late = make_run(*overrides, name="late")
    assert (tmp_path / "late").is_dir()
    assert late.last == plain.last
    assert len(late.metrics) == len(plain.metrics)
    for ours, others in zip(late.metrics, plain.metrics, strict=True):
        numbers = {key: value for key, value in others.items() if isinstance(value, float)}
        assert {key: ours[key] for key in numbers} == pytest.approx(numbers, rel=1e-3)
        assert ours["update"] == others["update"]


class _Poisoned:
    """An objective that is not a number at one update."""

    def __init__(self, objective: Objective, at: int) -> None:
        self.objective, self.at = objective, at

    def __call__(self, model: object, batch: object, update: int) -> Loss:
        loss = self.objective(model, batch, update)
        return replace(loss, total=loss.total * torch.nan) if update == self.at else loss


def _first(batches: Batches, count: int) -> list:
    found = []
    for data in batches.updates(0, 0):
        found.append(data)
        if len(found) == count:
            break
    return found

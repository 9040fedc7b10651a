"""Thin pairs beside frozen matrices: by hand, folded, and as tensors of a checkpoint."""

import pytest
import torch
from torch import nn

from battery.models import make, random_batch
from dragoman.errors import UserError
from dragoman.nn.linear import Linear
from dragoman.nn.lora import LoraLinear, add_pairs, fold, folded_tensors, pair_names

TARGETS = ("query_key_value", "query", "key_value", "widen")


def perturb(model: nn.Module) -> None:
    torch.manual_seed(3)
    with torch.no_grad():
        for name in pair_names(model):
            model.get_parameter(name).normal_(std=0.3)


def test_by_hand() -> None:
    torch.manual_seed(0)
    plain = Linear(5, 3).double()
    weight, bias = plain.weight.detach().clone(), plain.bias.detach().clone()
    x = torch.randn(2, 4, 5, dtype=torch.float64)
    pair = LoraLinear(plain, rank=2, alpha=6.0)
    torch.testing.assert_close(pair(x), x @ weight.T + bias, atol=0, rtol=0)
    with torch.no_grad():
        pair.high.normal_()
    expected = x @ weight.T + bias + 3.0 * (x @ pair.low.T) @ pair.high.T
    torch.testing.assert_close(pair(x), expected, atol=1e-12, rtol=0)
    folded = pair.folded()
    torch.testing.assert_close(folded(x), expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(folded.weight, weight + 3.0 * pair.high @ pair.low, atol=1e-12, rtol=0)
    assert type(folded) is Linear


@pytest.mark.parametrize("name", ["transformer", "transformer-t5", "gpt-2"])
def test_folded_a_model_says_the_same(name: str) -> None:
    model = make(name)
    names = list(model.state_dict())
    src, mask, tgt = random_batch(model.vocab, [6, 3], 5)
    before = model.project(model(src, mask, tgt))
    targets = TARGETS if name != "gpt-2" else ("query_key_value", "widen")
    add_pairs(model, 3, 6.0, targets)
    torch.testing.assert_close(model.project(model(src, mask, tgt)), before, atol=0, rtol=0)
    perturb(model)
    changed = model.project(model(src, mask, tgt)).detach()
    assert not torch.allclose(changed, before)
    folded = folded_tensors(model.state_dict(), 3, 6.0)
    assert list(folded) == names
    other = make(name)
    other.load_state_dict(folded)
    torch.testing.assert_close(other.project(other(src, mask, tgt)), changed, atol=1e-10, rtol=0)
    fold(model)
    assert list(model.state_dict()) == names
    torch.testing.assert_close(model.project(model(src, mask, tgt)), changed, atol=1e-10, rtol=0)


def test_a_name_that_no_layer_has() -> None:
    with pytest.raises(UserError, match=r"targets: this model has no linear layer 'q_proj'; it has .*widen"):
        add_pairs(make("gpt"), 2, 4.0, ["q_proj"])

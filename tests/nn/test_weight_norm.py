"""Weight normalisation against PyTorch's own."""

import pytest
import torch
from torch.nn.utils.parametrizations import weight_norm

from dragoman.errors import UserError
from dragoman.models.base import Vocab
from dragoman.models.convs2s import ConvS2SConfig, convs2s
from dragoman.nn.linear import Linear, normal_linear
from dragoman.nn.lora import add_pairs
from dragoman.nn.weight_norm import NormedLinear, normed_linear

VOCAB = Vocab(src_size=23, tgt_size=23, shared=True)


def test_outputs_and_gradients_are_those_of_torch() -> None:
    torch.manual_seed(1)
    ours = normed_linear(6, 4, gain=2.0).double()
    with torch.no_grad():
        ours.gain.mul_(torch.tensor([0.5, 1.0, 2.0, -3.0]))
        ours.bias.normal_()
    theirs = torch.nn.Linear(6, 4).double()
    theirs.load_state_dict({"weight": ours.weight.detach().clone(), "bias": ours.bias.detach().clone()})
    weight_norm(theirs, dim=0)
    lengths, directions = theirs.parametrizations["weight"].parameters()
    with torch.no_grad():
        lengths.copy_(ours.gain[:, None])
    x = torch.randn(3, 5, 6, dtype=torch.float64)
    a, b = ours(x), theirs(x)
    torch.testing.assert_close(a, b)
    (a**2).sum().backward()
    (b**2).sum().backward()
    torch.testing.assert_close(ours.gain.grad, lengths.grad[:, 0])
    torch.testing.assert_close(ours.weight.grad, directions.grad)
    torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)


def test_it_begins_as_the_plain_layer() -> None:
    plain = normal_linear(6, 4)
    x = torch.randn(3, 6)
    torch.testing.assert_close(NormedLinear(plain)(x), plain(x))


def test_all_layers_of_the_paper_have_lengths() -> None:
    model = convs2s(ConvS2SConfig(num_layers=2, model_dim=8, conv_dim=12, weight_norm=True), VOCAB)
    normed = {name for name, module in model.named_modules() if isinstance(module, NormedLinear)}
    assert {name.rpartition(".")[2] for name in normed} == {"into", "out", "gates", "query", "context"}
    assert not [name for name, module in model.named_modules() if type(module) is Linear]
    plain = convs2s(ConvS2SConfig(num_layers=2, model_dim=8, conv_dim=12), VOCAB)
    assert not [name for name, _ in plain.named_parameters() if name.endswith("gain")]


def test_a_low_rank_pair_does_not_take_the_place_of_one() -> None:
    """It would lose the lengths."""
    model = torch.nn.ModuleDict({"a": normed_linear(4, 4), "b": normal_linear(4, 4)})
    with pytest.raises(UserError, match="no linear layer 'a'; it has b"):
        add_pairs(model, 1, 1.0, ["a"])

"""One battery for every model that reads and does not write."""

import pytest
import torch

from battery.readers import CASES, make_reader
from dragoman.models.base import Reader
from until_learnt import learn_by_heart


@pytest.fixture(params=list(CASES))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_it_shows_every_layer_and_padding_is_inert(name: str) -> None:
    model, batch = make_reader(name)
    assert isinstance(model, Reader)
    wider = [torch.nn.functional.pad(x, (0, 4)) for x in (batch.ids, batch.mask, batch.segments)]
    wider[0] = wider[0].masked_fill(~wider[1], 9)
    with torch.no_grad():
        layers = model.read_layers(batch.ids, batch.mask, batch.segments)
        padded = model.read_layers(*wider)
        assert torch.equal(layers[-1], model.read(batch.ids, batch.mask, batch.segments))
    assert len({layer.shape for layer in layers}) == 1
    for layer, again in zip(layers, padded, strict=True):
        torch.testing.assert_close(again[:, :6][batch.mask], layer[batch.mask], atol=1e-12, rtol=0)


def test_a_text_alone_is_read_as_in_a_batch(name: str) -> None:
    model, batch = make_reader(name)
    with torch.no_grad():
        together = model.read(batch.ids, batch.mask, batch.segments)
        for row, length in enumerate(batch.mask.sum(dim=1).tolist()):
            parts = [x[row : row + 1, :length] for x in (batch.ids, batch.mask, batch.segments)]
            torch.testing.assert_close(model.read(*parts)[0], together[row, :length], atol=1e-12, rtol=0)


def test_gradients_reach_every_parameter(name: str) -> None:
    model, batch = make_reader(name)
    loss = CASES[name][2](model.train(), batch, 1)
    loss.total.backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0 or parameter_name.endswith("query_key_value.bias")
    assert loss.count == batch.num_tokens


def test_one_batch_can_be_learnt_by_heart(name: str) -> None:
    """It takes 15 to 30 updates; the limit is 2000."""
    model, batch = make_reader(name, torch.float32)  # eval mode: without dropout
    learn_by_heart(model, lambda: CASES[name][2](model, batch, 1), rate=2e-2)

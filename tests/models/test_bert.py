"""BERT by itself: gradients, padding, and numbers that are refused."""

import pytest
import torch

from dragoman.data.batch import TextBatch
from dragoman.errors import UserError
from dragoman.learning.masked import MaskedLanguageModel
from dragoman.models import build_model, build_network
from dragoman.models.base import Vocab
from dragoman.models.bert import Bert, BertConfig

VOCAB = Vocab(23, 23, shared=True)
SMALL = BertConfig(2, 16, 4, 24, max_positions=16)


def make() -> Bert:
    torch.manual_seed(0)
    model = build_network("bert", SMALL, VOCAB)
    assert isinstance(model, Bert)
    return model.double().eval()


def batch_of(follows: torch.Tensor | None) -> TextBatch:
    ids = torch.tensor([[1, 5, 3, 2, 7, 2], [1, 3, 2, 9, 2, 0]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]])
    return TextBatch(ids, ids != 0, segments, torch.tensor([2, 7]), torch.tensor([6, 8]), follows, 2)


@pytest.mark.parametrize("follows", [torch.tensor([True, False]), None], ids=["two texts", "one text"])
def test_every_parameter_has_a_gradient(follows: torch.Tensor | None) -> None:
    """Also where nobody asks what follows: several processes add the gradients of all parameters up."""
    model = make()
    loss = MaskedLanguageModel()(model, batch_of(follows))
    loss.total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        silent = follows is None and name.startswith(("pooler", "next_sentence"))
        assert (parameter.grad == 0).all() == silent or name.endswith("query_key_value.bias"), name
    assert loss.count == 2


def test_padding_is_inert() -> None:
    model, batch = make(), batch_of(None)
    wider = [torch.nn.functional.pad(x, (0, 4)) for x in (batch.ids, batch.mask, batch.segments)]
    with torch.no_grad():
        expected = model.read(batch.ids, batch.mask, batch.segments)
        model.embedding.weight[0] = torch.nan
        found = model.read(*wider)[:, :6]
    torch.testing.assert_close(found[batch.mask], expected[batch.mask], atol=1e-12, rtol=0)


def test_pooled_is_the_tanh_of_a_linear_layer_of_the_first_position() -> None:
    model, hidden = make(), torch.randn(2, 6, 16, dtype=torch.float64)
    expected = torch.tanh(hidden[:, 0] @ model.pooler.weight.t() + model.pooler.bias)
    torch.testing.assert_close(model.pool(hidden), expected, atol=1e-12, rtol=0)


def test_what_it_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match="num_heads: model_dim 16 cannot be divided into 3 heads"):
        BertConfig(2, 16, 3, 24)
    with pytest.raises(UserError, match=r"model\.kind: bert reads and does not write; choose one of"):
        build_model("bert", SMALL, VOCAB)

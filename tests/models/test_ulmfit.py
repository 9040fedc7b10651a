"""ULMFiT by itself: the layers by torch's own LSTM, what is left out in training, and its penalties."""

import pytest
import torch
from torch import nn

from battery.models import random_batch
from dragoman.data.batch import collate
from dragoman.errors import UserError
from dragoman.learning.cross_entropy import CrossEntropy, Penalised
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.ulmfit import UlmfitConfig, UlmfitDecoder

VOCAB = Vocab(23, 23, shared=True)
NOTHING_LEFT_OUT = dict.fromkeys(("embedding_dropout", "input_dropout", "dropout", "output_dropout"), 0.0)
PAIRS = [([3, 4, 5], [6, 7, 8]), ([9], [4, 3])]


def training(**dropout: float) -> EncoderDecoder:
    torch.manual_seed(0)
    config = UlmfitConfig(model_dim=8, hidden_dim=12, **NOTHING_LEFT_OUT | {"weight_dropout": 0.0} | dropout)
    return build_model("ulmfit", config, VOCAB).double().train()


def test_the_layers_are_torchs_lstm() -> None:
    """Source and target row by row as one sequence, without padding, through three plain modules."""
    model = training().eval()
    src, mask, tgt = random_batch(model.vocab, [7, 4, 1], 5)
    with torch.no_grad():
        found = model(src, mask, tgt)
        for row, length in enumerate((7, 4, 1)):
            ids = torch.cat([src[row, :length], tgt[row]])
            x = 8**0.5 * nn.functional.embedding(ids, model.decoder.embedding.weight)[None]
            for layer in model.decoder.layers:
                x, _ = layer.layers[0](x)
            torch.testing.assert_close(found[row], x[0, length:], atol=1e-12, rtol=0)
    widths = [(layer.layers[0].input_size, layer.width) for layer in model.decoder.layers]
    assert widths == [(8, 12), (12, 12), (12, 8)]
    assert model.projection.weight is model.decoder.embedding.weight


def test_all_layers_can_be_read() -> None:
    model = training().eval()
    src, mask, _ = random_batch(model.vocab, [5, 3], 1)
    layers = model.decoder.read_memory(model.encode(src, mask))
    assert [layer.size(-1) for layer in layers] == [8, 12, 12, 8]
    assert all(layer.shape[:2] == src.shape for layer in layers)


@pytest.mark.parametrize("field", ["input_dropout", "dropout", "output_dropout"])
def test_units_are_left_out_at_every_position_alike(field: str) -> None:
    model = training(**{field: 0.5})
    decoder = model.decoder
    assert isinstance(decoder, UlmfitDecoder)
    masks = decoder._draw(4)
    drawn = {"input_dropout": masks.inputs, "dropout": masks.between[1], "output_dropout": masks.outputs}
    held = drawn.pop(field)
    assert held is not None
    assert set(held.unique().tolist()) == {0.0, 2.0}
    assert all(mask is None for mask in drawn.values())
    top, left = decoder.twice(
        torch.full((2, 6), 5), model.encode(torch.full((2, 1), 2), torch.ones(2, 1) > 0)
    )
    if field == "output_dropout":
        gone = left == 0
        assert (gone == gone[:, :1]).all()
        assert gone.any()
    else:
        assert torch.equal(top, left)


def test_weights_are_left_out_for_source_and_target_alike() -> None:
    model = training(weight_dropout=0.5)
    state = model.start(model.encode(torch.full((2, 3), 5), torch.ones(2, 3) > 0))
    for layer, masks in zip(model.decoder.layers, state.masks.layers, strict=True):
        (left,), whole = masks.weights, layer.layers[0].weight_hh_l0
        assert ((left == 0) | torch.isclose(left, 2 * whole)).all()
        assert 0.3 < (left == 0).double().mean() < 0.7


def test_the_penalties_by_hand() -> None:
    model, batch = training(output_dropout=0.5), collate(PAIRS)
    torch.manual_seed(3)
    plain = CrossEntropy()(model, batch)
    torch.manual_seed(3)
    found = Penalised(2.0, 3.0)(model, batch)
    torch.manual_seed(3)
    whole, left = (
        x.detach().numpy()
        for x in model.decoder.twice(batch.tgt_in, model.encode(batch.src_ids, batch.src_mask))
    )
    expected = 0.0
    for row, length in enumerate((4, 3)):
        for t in range(length):
            expected += 2.0 * (left[row, t] ** 2).mean()
            expected += 3.0 * ((whole[row, t] - whole[row, t - 1]) ** 2).mean() if t else 0.0
    assert found.nll == plain.nll
    assert found.count == plain.count == 7
    assert found.total.item() - plain.total.item() == pytest.approx(expected, rel=1e-5)
    found.total.backward()


def test_what_it_cannot_be_is_refused() -> None:
    with pytest.raises(UserError, match="weight_dropout: expected a share from 0 up to 1, found 1"):
        UlmfitConfig(weight_dropout=1)
    with pytest.raises(UserError, match="hidden_dim: expected a whole number of at least 1, found 0"):
        UlmfitConfig(hidden_dim=0)

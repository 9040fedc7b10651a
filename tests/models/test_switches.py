"""Switches that experiments need: residual connections, norms, the causal mask, a context that is given once.
Each is compared with torch's modules, or with NumPy by hand."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dragoman.config import from_dict
from dragoman.engines.spec import refuse_unsupported
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.norm import NoResidual, PositionBatchNorm, Residual, make_norm

VOCAB = Vocab(20, 20, shared=True)
SMALL: dict[str, Any] = {"num_layers": 2, "model_dim": 16, "num_heads": 4, "ff_dim": 24, "dropout": 0.0}


def made(**fields: Any) -> EncoderDecoder:
    torch.manual_seed(0)
    return build_model("transformer", TransformerConfig(**SMALL, **fields), VOCAB).double()


def test_batch_norm_is_that_of_torch_and_of_the_formula() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 5, 8, dtype=torch.float64) * 4 + 2
    ours, theirs = make_norm(8, "batch", 1e-5).double(), nn.BatchNorm1d(8, eps=1e-5).double()
    assert isinstance(ours, PositionBatchNorm)
    torch.testing.assert_close(ours(x), theirs(x.transpose(1, 2)).transpose(1, 2))
    rows = x.numpy().reshape(-1, 8)
    by_hand = (rows - rows.mean(0)) / np.sqrt(rows.var(0) + 1e-5)
    np.testing.assert_allclose(ours(x).detach().numpy().reshape(-1, 8), by_hand, atol=1e-12)
    assert "num_batches_tracked" not in ours.state_dict()


def test_batch_norm_uses_running_averages_outside_training() -> None:
    torch.manual_seed(0)
    norm = PositionBatchNorm(4, eps=1e-9).double()
    seen = torch.randn(50, 6, 4, dtype=torch.float64)
    norm(seen)
    rows = seen.flatten(0, 1)
    mean, variance = 0.1 * rows.mean(0), 0.9 + 0.1 * rows.var(0)
    x = torch.randn(1, 2, 4, dtype=torch.float64)
    torch.testing.assert_close(norm.eval()(x), (x - mean) / variance.sqrt())


@pytest.mark.parametrize("place", ["pre", "post"])
def test_without_a_residual_connection_the_sublayer_alone_is_left(place: Any) -> None:
    x, y = torch.randn(2, 3, 8), torch.randn(2, 3, 8)
    norm = F.layer_norm(y, (8,))
    found = NoResidual(8, 0.0, place, 1e-5).after(x, y)
    torch.testing.assert_close(found, y if place == "pre" else norm)
    kept = Residual(8, 0.0, place, 1e-5).after(x, y)
    torch.testing.assert_close(kept, x + y if place == "pre" else F.layer_norm(x + y, (8,)))


def test_an_encoder_without_residuals_and_norms_is_its_sublayers_in_a_row() -> None:
    model = made(residual=False, norm_kind="none", positions="none")
    ids = torch.randint(3, 20, (2, 6))
    mask = torch.ones_like(ids, dtype=torch.bool)
    x = model.encoder.embedding(ids)  # type: ignore[union-attr]
    for layer in model.encoder.layers:  # type: ignore[union-attr]
        attention = layer.self_attention
        query, key, value = attention.query_key_value(x).chunk(3, dim=-1)
        heads = [part.unflatten(-1, (4, 4)).transpose(1, 2) for part in (query, key, value)]
        x = attention.out(F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2))
        x = layer.feedforward(x)
    torch.testing.assert_close(model.encode(ids, mask).hidden, x)


@pytest.mark.parametrize("kind", ["batch", "none"])
@pytest.mark.parametrize("place", ["pre", "post"])
def test_one_step_at_a_time_gives_the_same(kind: Any, place: Any) -> None:
    model = made(norm_kind=kind, norm=place, residual=kind == "none").eval()
    src, tgt = torch.randint(3, 20, (2, 6)), torch.randint(3, 20, (2, 5))
    memory = model.encode(src, torch.ones_like(src, dtype=torch.bool))
    whole, state = model.decode(tgt, memory), model.start(memory)
    for place_of in range(5):
        out, state = model.step(tgt[:, place_of], state)
        torch.testing.assert_close(out, whole[:, place_of])


def test_without_the_causal_mask_the_past_depends_on_the_future_but_not_on_padding() -> None:
    torch.manual_seed(1)
    src, tgt = torch.randint(3, 20, (1, 6)), torch.randint(3, 20, (1, 5))
    other = tgt.clone()
    other[0, -1] = (tgt[0, -1] - 2) % 17 + 3
    padded = F.pad(tgt, (0, 3), value=0)
    for causal in (True, False):
        model = made(causal=causal).eval()
        memory = model.encode(src, torch.ones_like(src, dtype=torch.bool))
        first = model.decode(tgt, memory)[:, 0]
        assert torch.equal(first, model.decode(other, memory)[:, 0]) == causal
        torch.testing.assert_close(model.decode(padded, memory)[:, :5], model.decode(tgt, memory))


def test_the_switches_have_the_weights_of_the_usual_model() -> None:
    usual = dict(made().named_parameters())
    for fields in ({"residual": False}, {"causal": False}):
        found = dict(made(**fields).named_parameters())
        assert list(found) == list(usual) and all(torch.equal(found[name], usual[name]) for name in usual)


def test_a_context_given_once_is_the_first_state_alone() -> None:
    torch.manual_seed(0)
    config = RnnConfig(model_dim=8, attention="none", context="once", bidirectional=False, dropout=0.0)
    model = build_model("rnn", config, VOCAB).double().eval()
    src, tgt = torch.randint(3, 20, (2, 6)), torch.randint(3, 20, (2, 5))
    memory = model.encode(src, torch.ones_like(src, dtype=torch.bool))
    decoder: Any = model.decoder
    weights = dict(decoder.stack.named_parameters())
    lstm = nn.LSTM(8, 8, batch_first=True).double()
    with torch.no_grad():
        for name, weight in lstm.named_parameters():
            weight.copy_(next(own for key, own in weights.items() if key.endswith(name)))
        first = torch.tanh(decoder.bridge(memory.summary)).unflatten(-1, (2, 1, -1)).permute(1, 2, 0, 3)
        words = decoder.embedding(tgt)
        top, _ = lstm(words, (first[0].contiguous(), first[1].contiguous()))
        expected = torch.tanh(decoder.readout(torch.cat([top, words], dim=-1)))
        torch.testing.assert_close(model.decode(tgt, memory), expected)
        state = model.start(memory).expand(3)
        for place in range(5):
            out, state = model.step(tgt[:, place].repeat_interleave(3), state)
            torch.testing.assert_close(out[::3], expected[:, place])


@pytest.mark.parametrize(
    ("config", "fields", "sentence"),
    [
        (RnnConfig, {"context": "once"}, "context: once is for attention none"),
        (RnnConfig, {"context": "twice"}, "context: expected one of every, once"),
        (TransformerConfig, {"decoder_self": "average", "causal": False}, "causal: average is a mean"),
        (TransformerConfig, {"norm_kind": "group"}, "norm_kind: expected one of layer, rms, batch, none"),
    ],
)
def test_what_does_not_go_together_is_refused(config: type, fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        from_dict(config, fields, "model")


@pytest.mark.parametrize("fields", [{"norm_kind": "batch"}, {"norm_kind": "none"}, {"residual": False}])
def test_an_engine_that_has_no_such_switch_refuses_it(fields: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"model.{next(iter(fields))}: CTranslate2 has"):
        refuse_unsupported("transformer", TransformerConfig(**SMALL, **fields))

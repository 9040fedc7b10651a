"""PyTorch's own nn.Transformer with our weights gives our output."""

import pytest
import torch
from torch import nn

from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig

DIM, HEADS, FF, LAYERS = 32, 4, 48, 2


def copy_attention(theirs: nn.MultiheadAttention, ours: nn.Module) -> None:
    if hasattr(ours, "query_key_value"):
        weight, bias = ours.query_key_value.weight, ours.query_key_value.bias
    else:
        weight = torch.cat([ours.query.weight, ours.key_value.weight])
        bias = torch.cat([ours.query.bias, ours.key_value.bias])
    theirs.in_proj_weight.copy_(weight)
    theirs.in_proj_bias.copy_(bias)
    theirs.out_proj.load_state_dict(ours.out.state_dict())


def copy_layer(theirs: nn.Module, ours: nn.Module) -> None:
    copy_attention(theirs.self_attn, ours.self_attention)
    theirs.linear1.load_state_dict(ours.feedforward.widen.state_dict())
    theirs.linear2.load_state_dict(ours.feedforward.narrow.state_dict())
    norms = [ours.self_residual.norm, ours.ff_residual.norm]
    if hasattr(ours, "cross_attention"):
        copy_attention(theirs.multihead_attn, ours.cross_attention)
        norms.insert(1, ours.cross_residual.norm)
    for number, norm in enumerate(norms, 1):
        getattr(theirs, f"norm{number}").load_state_dict(norm.state_dict())


def torch_twin(model, pre: bool) -> nn.Transformer:
    options = {"dim_feedforward": FF, "dropout": 0.0, "batch_first": True, "norm_first": pre}
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(DIM, HEADS, **options),
        LAYERS,
        nn.LayerNorm(DIM) if pre else None,
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(DIM, HEADS, **options), LAYERS, nn.LayerNorm(DIM) if pre else None
    )
    twin = nn.Transformer(
        DIM, HEADS, custom_encoder=encoder, custom_decoder=decoder, batch_first=True, norm_first=pre
    )
    with torch.no_grad():
        for theirs, ours in zip(encoder.layers, model.encoder.layers, strict=True):
            copy_layer(theirs, ours)
        for theirs, ours in zip(decoder.layers, model.decoder.layers, strict=True):
            copy_layer(theirs, ours)
        if pre:
            encoder.norm.load_state_dict(model.encoder.final_norm.state_dict())
            decoder.norm.load_state_dict(model.decoder.final_norm.state_dict())
    return twin.eval()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
def test_same_output(norm: str, dtype: torch.dtype, tolerance: float) -> None:
    torch.manual_seed(0)
    config = TransformerConfig(
        num_layers=LAYERS,
        model_dim=DIM,
        num_heads=HEADS,
        ff_dim=FF,
        norm=norm,  # type: ignore[arg-type]
        dropout=0.1,
    )
    model = build_model("transformer", config, Vocab(50, 60, shared=False)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    model, twin = model.to(dtype), torch_twin(model, pre=norm == "pre").to(dtype)
    src = torch.randint(3, 50, (5, 9))
    mask = torch.arange(9)[None] < torch.tensor([9, 4, 7, 1, 9])[:, None]
    src = src.masked_fill(~mask, 0)
    tgt = torch.randint(3, 60, (5, 11))
    with torch.no_grad():
        encoder, decoder = model.encoder, model.decoder
        theirs = twin(
            encoder.positions(encoder.embedding(src)),
            decoder.positions(decoder.embedding(tgt)),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(11, dtype=dtype),
            src_key_padding_mask=~mask,
            memory_key_padding_mask=~mask,
            tgt_is_causal=True,
        )
        torch.testing.assert_close(model(src, mask, tgt), theirs, atol=tolerance, rtol=0)

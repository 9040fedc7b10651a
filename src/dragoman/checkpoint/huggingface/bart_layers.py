"""The layers shared by Marian, Pegasus and BART: in transformers all three use those of BART, under its
names."""

from typing import Any

import torch
from torch import Tensor

from dragoman.checkpoint.huggingface.family import (
    ConfigFields,
    Weight,
    activation_name,
    modules,
    read_activation,
    refuse_unequal,
    weights_of_layers,
)
from dragoman.models.transformer import TransformerConfig

BIAS = "final_logits_bias"
SHARED = "model.shared.weight"
COPIES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
"""Names under which a file may hold the shared matrix too."""
SINUSOID_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
"""Tables that are computed; a file may hold them."""
WIRING = {
    "norm": "post",
    "norm_kind": "layer",
    "residual": True,
    "causal": True,
    "norm_eps": 1e-5,
    "gated": False,
    "bias": True,
    "decoder_self": "attention",
    "scale_attention": True,
    "head_dim": None,
    "value_dim": None,
    "tie_embeddings": True,
    "scale_output": False,
}
"""All that cannot be chosen in any of them."""
SINUSOIDS = {"position_base": 10000.0, "norm_embeddings": False}
"""Further options that are fixed for sinusoidal positions."""
POSITIONS = 1024
"""Maximum sentence length that is written: transformers computes a table of this many positions."""


def layer_weights(theirs: str, cross: bool) -> dict[str, Weight]:
    """One layer: `theirs` is where it stands in the published file."""

    def attention(name: str, *parts: str) -> tuple[str, ...]:
        return tuple(f"{theirs}.{name}.{part}_proj" for part in parts)

    named = {
        "self_attention.query_key_value": attention("self_attn", "q", "k", "v"),
        "self_attention.out": attention("self_attn", "out"),
        "self_residual.norm": (f"{theirs}.self_attn_layer_norm",),
        "feedforward.widen": (f"{theirs}.fc1",),
        "feedforward.narrow": (f"{theirs}.fc2",),
        "ff_residual.norm": (f"{theirs}.final_layer_norm",),
    }
    if cross:
        named |= {
            "cross_attention.query": attention("encoder_attn", "q"),
            "cross_attention.key_value": attention("encoder_attn", "k", "v"),
            "cross_attention.out": attention("encoder_attn", "out"),
            "cross_residual.norm": (f"{theirs}.encoder_attn_layer_norm",),
        }
    return modules(named)


def body_weights(config: TransformerConfig) -> dict[str, Weight]:
    """All layers and the bias of the projection."""

    def encoder_layer(number: int) -> dict[str, Weight]:
        return layer_weights(f"model.encoder.layers.{number}", cross=False)

    def decoder_layer(number: int) -> dict[str, Weight]:
        return layer_weights(f"model.decoder.layers.{number}", cross=True)

    named = weights_of_layers("encoder.layers", config.num_layers, encoder_layer)
    named |= weights_of_layers("decoder.layers", config.decoder_layers, decoder_layer)
    if config.output_bias:
        named["projection.bias"] = Weight((BIAS,), rows="tgt", flat=True)
    return named


def sines_before_cosines(config: TransformerConfig, named: dict[str, Tensor]) -> dict[str, Tensor]:
    """Permute the model's dimensions: those with a sine first, then those with a cosine.

    These families have no other layout. The order of dimensions does not matter to a model: products sum over
    them, and norms treat them alike.
    """
    if config.position_layout == "halves":
        return named
    order = torch.cat([torch.arange(0, config.model_dim, 2), torch.arange(1, config.model_dim, 2)])

    def reordered(name: str, tensor: Tensor) -> Tensor:
        kind = name.removesuffix(".weight").removesuffix(".bias").rpartition(".")[2]
        if name == BIAS or (kind in ("q_proj", "k_proj", "v_proj", "fc1") and tensor.dim() == 1):
            return tensor
        writes = kind in ("out_proj", "fc2") or tensor.dim() == 1
        return tensor[order] if writes else tensor[:, order]

    return {name: reordered(name, tensor).contiguous() for name, tensor in named.items()}


def read_shape(fields: ConfigFields) -> dict[str, Any]:
    """The fields of ours that all of them have."""
    refuse_unequal(fields, "encoder_attention_heads", "decoder_attention_heads")
    refuse_unequal(fields, "encoder_ffn_dim", "decoder_ffn_dim")
    encoder, decoder = fields["encoder_layers"], fields["decoder_layers"]
    return {
        "num_layers": encoder,
        "num_decoder_layers": None if decoder == encoder else decoder,
        "model_dim": fields["d_model"],
        "num_heads": fields["encoder_attention_heads"],
        "ff_dim": fields["encoder_ffn_dim"],
        "dropout": fields.get("dropout", 0.1),
        "attention_dropout": fields.get("attention_dropout", 0.0),
        "ff_dropout": fields.get("activation_dropout", 0.0),
        "activation": read_activation(fields.get("activation_function", "gelu")),
        "scale_embeddings": fields.get("scale_embedding", False),
    }


def write_shape(config: TransformerConfig) -> dict[str, Any]:
    sides = {
        "layers": (config.num_layers, config.decoder_layers),
        "attention_heads": (config.num_heads, config.num_heads),
        "ffn_dim": (config.ff_dim, config.ff_dim),
    }
    shape = {f"{side}_{name}": pair[n] for name, pair in sides.items() for n, side in enumerate(_SIDES)}
    return shape | {
        "d_model": config.model_dim,
        "num_hidden_layers": config.num_layers,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.ff_dropout,
        "activation_function": activation_name(config.activation),
        "scale_embedding": config.scale_embeddings,
    }


_SIDES = ("encoder", "decoder")

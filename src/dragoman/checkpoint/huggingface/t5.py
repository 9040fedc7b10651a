"""T5 (Raffel et al. 2020) and T5 v1.1 (Shazeer 2020): relative bias, RMS norm, no biases, unscaled attention.

The first T5 has one matrix for everything and divides what it projects by √D; v1.1 has gates and a projection
of its own.
"""

from functools import partial
from typing import Any

from dragoman.checkpoint.huggingface.family import (
    ACTIVATIONS,
    ConfigFields,
    Family,
    Weight,
    activation_name,
    modules,
    refuse_unless,
    weights_of_layers,
)
from dragoman.errors import UserError, shown
from dragoman.models.transformer import TransformerConfig

_SHARED, _HEAD = "shared.weight", "lm_head.weight"
_WIRING = {
    "norm": "pre",
    "norm_kind": "rms",
    "residual": True,
    "causal": True,
    "bias": False,
    "decoder_self": "attention",
    "scale_attention": False,
    "scale_embeddings": False,
    "norm_embeddings": False,
    "output_bias": False,
}


def _read_config(fields: ConfigFields) -> dict[str, Any]:
    found = fields.get("feed_forward_proj", "relu")
    kind, _, activation = found.rpartition("-") if isinstance(found, str) else ("", "", "")
    if kind not in ("", "gated") or activation not in ACTIVATIONS:
        raise UserError(
            f"feed_forward_proj: expected an activation, or one after gated-, found {shown(found)}"
        )
    if (kind, activation) == ("gated", "gelu"):  # by this name the papers' approximation is meant
        activation = "gelu_new"
    layers, decoder = fields["num_layers"], fields.get("num_decoder_layers")
    dropout = fields.get("dropout_rate", 0.1)
    tied = fields.get("tie_word_embeddings", True)
    return {
        "num_layers": layers,
        "num_decoder_layers": None if decoder in (None, layers) else decoder,
        "model_dim": fields["d_model"],
        "num_heads": fields["num_heads"],
        "head_dim": fields["d_kv"],
        "ff_dim": fields["d_ff"],
        "dropout": dropout,
        "attention_dropout": dropout,
        "ff_dropout": dropout,
        "norm": "pre",
        "norm_kind": "rms",
        "norm_eps": fields.get("layer_norm_epsilon", 1e-6),
        "activation": ACTIVATIONS[activation],
        "gated": kind == "gated",
        "bias": False,
        "scale_attention": False,
        "positions": "t5",
        "relative_buckets": fields.get("relative_attention_num_buckets", 32),
        "relative_max_distance": fields.get("relative_attention_max_distance", 128),
        "scale_embeddings": False,
        "scale_output": fields.get("scale_decoder_outputs", tied),
    }


def _write_config(config: TransformerConfig) -> dict[str, Any]:
    refuse_unless("T5", config, _WIRING)
    if config.tie_embeddings is False:
        raise UserError("model.tie_embeddings: T5 has one matrix for source and target, and this model two")
    _, head_dim, value_dim = config.heads
    if head_dim != value_dim:
        raise UserError(f"model.value_dim: T5's keys and values have one width, not {head_dim}, {value_dim}")
    activation = activation_name(config.activation)
    if config.gated and activation == "gelu":
        raise UserError("model.activation: T5's gated gelu is gelu_tanh, and this model has gelu")
    gate = "gated-gelu" if activation == "gelu_new" else f"gated-{activation}"
    return {
        "num_layers": config.num_layers,
        "num_decoder_layers": config.decoder_layers,
        "d_model": config.model_dim,
        "num_heads": config.num_heads,
        "d_kv": head_dim,
        "d_ff": config.ff_dim,
        "dropout_rate": config.dropout,
        "layer_norm_epsilon": config.norm_eps,
        "feed_forward_proj": gate if config.gated else activation,
        "relative_attention_num_buckets": config.relative_buckets,
        "relative_attention_max_distance": config.relative_max_distance,
        "tie_word_embeddings": config.scale_output,  # that is how a file says it
        "scale_decoder_outputs": config.scale_output,
    }


def _weights(config: TransformerConfig, shared: bool) -> dict[str, Weight]:
    if not shared:
        raise UserError("tokenizer.joint: T5 has one vocabulary for both sides, and this model has two")
    named = {"encoder.embedding.weight": Weight((_SHARED,), rows="src")}
    if config.tie_embeddings == "inputs":
        named["projection.weight"] = Weight((_HEAD,), rows="tgt")
    for side, depth in (("encoder", config.num_layers), ("decoder", config.decoder_layers)):
        first = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        named[f"{side}.relations.weight"] = Weight((first,))
        named[f"{side}.final_norm.weight"] = Weight((f"{side}.final_layer_norm.weight",))
        named |= weights_of_layers(f"{side}.layers", depth, partial(_block, side, config.gated))
    return named


def _block(side: str, gated: bool, number: int) -> dict[str, Weight]:
    theirs, cross = f"{side}.block.{number}.layer", side == "decoder"

    def attention(name: str, parts: str) -> tuple[str, ...]:
        return tuple(f"{theirs}.{name}.{part}" for part in parts)

    last = 2 if cross else 1
    dense = f"{theirs}.{last}.DenseReluDense"
    named = {
        "self_attention.query_key_value": attention("0.SelfAttention", "qkv"),
        "self_attention.out": attention("0.SelfAttention", "o"),
        "self_residual.norm": (f"{theirs}.0.layer_norm",),
        "feedforward.widen": (f"{dense}.wi_0", f"{dense}.wi_1") if gated else (f"{dense}.wi",),
        "feedforward.narrow": (f"{dense}.wo",),
        "ff_residual.norm": (f"{theirs}.{last}.layer_norm",),
    }
    if cross:
        named |= {
            "cross_attention.query": attention("1.EncDecAttention", "q"),
            "cross_attention.key_value": attention("1.EncDecAttention", "kv"),
            "cross_attention.out": attention("1.EncDecAttention", "o"),
            "cross_residual.norm": (f"{theirs}.1.layer_norm",),
        }
    return modules(named, bias=False)


T5 = Family(
    model_type="t5",
    architecture="T5ForConditionalGeneration",
    kind="transformer",
    read_config=_read_config,
    write_config=_write_config,
    weights=_weights,
    copies={_SHARED: ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", _HEAD)},
    own_projection=_HEAD,
    computed=("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",),
)

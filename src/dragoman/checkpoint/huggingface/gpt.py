"""GPT (Radford et al. 2018) and GPT-2 (Radford et al. 2019): one stack that goes on from what it has read.

    GPT      norms after each sublayer; no piece begins or ends a text
    GPT-2    norms before each sublayer and one at the end; `<|endoftext|>` begins and ends a text

Matrices stand on their side in these files: inputs before outputs.
"""

from collections.abc import Callable
from typing import Any

from dragoman.checkpoint.huggingface.family import (
    ACTIVATIONS,
    ConfigFields,
    Controls,
    Family,
    Weight,
    activation_name,
    modules,
    read_activation,
    refuse_others,
    refuse_unless,
    weights_of_layers,
)
from dragoman.errors import UserError
from dragoman.models.gpt import GptConfig

_HEAD = "lm_head.weight"
_FIRST_ACTIVATIONS = {"gelu": "gelu_tanh", "relu": "relu", "silu": "silu", "swish": "silu"}
"""GPT's gelu is the approximation of it."""
_SHAPE = {
    "num_layers": "n_layer",
    "model_dim": "n_embd",
    "num_heads": "n_head",
    "max_positions": "n_positions",
}


def _read_shape(fields: ConfigFields) -> dict[str, Any]:
    width = fields["n_embd"]
    return {ours: fields[theirs] for ours, theirs in _SHAPE.items()} | {
        "ff_dim": fields.get("n_inner") or (4 * width if isinstance(width, int) else width),
        "dropout": fields.get("resid_pdrop", 0.1),
        "attention_dropout": fields.get("attn_pdrop", 0.1),
        "norm_eps": fields.get("layer_norm_epsilon", 1e-5),
    }


def _write_shape(config: GptConfig) -> dict[str, Any]:
    if config.tie_embeddings is False:
        raise UserError(
            "model.tie_embeddings: transformers' GPT reads with one matrix, and this model with two; it "
            "cannot be exported to transformers"
        )
    return {theirs: getattr(config, ours) for ours, theirs in _SHAPE.items()} | {
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.attention_dropout,
        "layer_norm_epsilon": config.norm_eps,
        "tie_word_embeddings": config.tie_embeddings is True,
    }


def _read_gpt(fields: ConfigFields) -> dict[str, Any]:
    activation = read_activation(fields.get("afn", "gelu"), "afn", _FIRST_ACTIVATIONS)
    return _read_shape(fields) | {"norm": "post", "activation": activation}


def _write_gpt(config: GptConfig) -> dict[str, Any]:
    wiring = {"norm": "post", "output_bias": False, "ff_dim": 4 * config.model_dim}
    refuse_unless("GPT", config, wiring)
    return _write_shape(config) | {"afn": activation_name(config.activation, _FIRST_ACTIVATIONS)}


def _read_gpt2(fields: ConfigFields) -> dict[str, Any]:
    wiring = {"scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True}
    refuse_others("GPT-2", fields, wiring | {"add_cross_attention": False})
    activation = read_activation(fields.get("activation_function", "gelu_new"))
    return _read_shape(fields) | {"norm": "pre", "activation": activation}


def _write_gpt2(config: GptConfig) -> dict[str, Any]:
    refuse_unless("GPT-2", config, {"norm": "pre", "output_bias": False})
    return _write_shape(config) | {
        "n_inner": config.ff_dim,
        "activation_function": activation_name(config.activation, ACTIVATIONS),
    }


def _weights(config: GptConfig, tokens: str, places: str) -> dict[str, Weight]:
    named = {"encoder.embedding.weight": Weight((tokens,), rows="src")}
    named["decoder.positions.weight"] = Weight((places,))
    if config.tie_embeddings == "inputs":
        named["projection.weight"] = Weight((_HEAD,), rows="tgt")
    named |= weights_of_layers("decoder.layers", config.num_layers, _layer)
    if config.norm == "pre":
        named |= modules({"decoder.final_norm": ("transformer.ln_f",)})
    return named


def _layer(number: int) -> dict[str, Weight]:
    theirs = f"transformer.h.{number}"
    matrices = {
        "self_attention.query_key_value": (f"{theirs}.attn.c_attn",),
        "self_attention.out": (f"{theirs}.attn.c_proj",),
        "feedforward.widen": (f"{theirs}.mlp.c_fc",),
        "feedforward.narrow": (f"{theirs}.mlp.c_proj",),
    }
    norms = {"self_residual.norm": (f"{theirs}.ln_1",), "ff_residual.norm": (f"{theirs}.ln_2",)}
    return modules(matrices, turned=True) | modules(norms)


def _family(
    model_type: str,
    architecture: str,
    read_config: Callable[[ConfigFields], dict[str, Any]],
    write_config: Callable[[GptConfig], dict[str, Any]],
    tokens: str,
    places: str,
    controls: Controls,
) -> Family:
    """The common part of both families; `tokens` and `places` are their names of the embeddings."""
    return Family(
        model_type=model_type,
        architecture=architecture,
        kind="gpt",
        objective="causal",
        read_config=read_config,
        write_config=write_config,
        weights=lambda config, shared: _weights(config, tokens, places),  # noqa: ARG005 (one vocabulary)
        copies={tokens: (_HEAD,)},
        computed=(".attn.bias", ".attn.masked_bias", "position_ids"),
        own_projection=_HEAD,
        prefix="transformer.",
        controls=controls,
        loader="AutoModelForCausalLM",
        encoder_decoder=False,
        silences=("silent_bos", "silent_pad"),
    )


GPT = _family(
    "openai-gpt",
    "OpenAIGPTLMHeadModel",
    _read_gpt,
    _write_gpt,
    tokens="transformer.tokens_embed.weight",
    places="transformer.positions_embed.weight",
    controls="none",
)
GPT2 = _family(
    "gpt2",
    "GPT2LMHeadModel",
    _read_gpt2,
    _write_gpt2,
    tokens="transformer.wte.weight",
    places="transformer.wpe.weight",
    controls="text",
)

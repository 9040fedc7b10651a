"""BERT (Devlin et al. 2019): an encoder with segments, and heads for hidden pieces and next sentences."""

from typing import Any

from dragoman.checkpoint.huggingface.family import (
    ConfigFields,
    Family,
    Weight,
    activation_name,
    modules,
    read_activation,
    refuse_others,
    weights_of_layers,
)
from dragoman.models.bert import BertConfig

_TOKENS, _BIAS = "bert.embeddings.word_embeddings.weight", "cls.predictions.bias"
_SHAPE = {
    "num_layers": "num_hidden_layers",
    "model_dim": "hidden_size",
    "num_heads": "num_attention_heads",
    "ff_dim": "intermediate_size",
    "max_positions": "max_position_embeddings",
}
_MODULES = {
    "embedding_norm": ("bert.embeddings.LayerNorm",),
    "pooler": ("bert.pooler.dense",),
    "transform": ("cls.predictions.transform.dense",),
    "transform_norm": ("cls.predictions.transform.LayerNorm",),
    "next_sentence": ("cls.seq_relationship",),
}


def _read_config(fields: ConfigFields) -> dict[str, Any]:
    only = {"position_embedding_type": "absolute", "type_vocab_size": 2}
    refuse_others("BERT", fields, only | {"is_decoder": False, "add_cross_attention": False})
    return {ours: fields[theirs] for ours, theirs in _SHAPE.items()} | {
        "dropout": fields.get("hidden_dropout_prob", 0.1),
        "attention_dropout": fields.get("attention_probs_dropout_prob", 0.1),
        "norm_eps": fields.get("layer_norm_eps", 1e-12),
        "activation": read_activation(fields.get("hidden_act", "gelu"), "hidden_act"),
    }


def _write_config(config: BertConfig) -> dict[str, Any]:
    return {theirs: getattr(config, ours) for ours, theirs in _SHAPE.items()} | {
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "layer_norm_eps": config.norm_eps,
        "hidden_act": activation_name(config.activation),
        "type_vocab_size": 2,
    }


def _weights(config: BertConfig, shared: bool) -> dict[str, Weight]:  # noqa: ARG001 (it has one side)
    named = {
        "embedding.weight": Weight((_TOKENS,), rows="tgt"),
        "positions.weight": Weight(("bert.embeddings.position_embeddings.weight",)),
        "segments": Weight(("bert.embeddings.token_type_embeddings.weight",)),
        "projection.bias": Weight((_BIAS,), rows="tgt"),
    }
    return named | modules(_MODULES) | weights_of_layers("layers", config.num_layers, _layer)


def _layer(number: int) -> dict[str, Weight]:
    theirs, parts = f"bert.encoder.layer.{number}", ("query", "key", "value")
    named = {
        "self_attention.query_key_value": tuple(f"{theirs}.attention.self.{part}" for part in parts),
        "self_attention.out": (f"{theirs}.attention.output.dense",),
        "self_residual.norm": (f"{theirs}.attention.output.LayerNorm",),
        "feedforward.widen": (f"{theirs}.intermediate.dense",),
        "feedforward.narrow": (f"{theirs}.output.dense",),
        "ff_residual.norm": (f"{theirs}.output.LayerNorm",),
    }
    return modules(named)


BERT = Family(
    model_type="bert",
    architecture="BertForPreTraining",
    kind="bert",
    objective="masked",
    read_config=_read_config,
    write_config=_write_config,
    weights=_weights,
    copies={_TOKENS: ("cls.predictions.decoder.weight",), _BIAS: ("cls.predictions.decoder.bias",)},
    computed=(".position_ids", ".token_type_ids"),
    prefix="bert.",
    controls="pair",
    loader="AutoModelForPreTraining",
    encoder_decoder=False,
    silences=(),
    heads=("pooler.", "transform", "next_sentence.", "projection."),
    older={".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"},
)

"""BART (Lewis et al. 2020): learned positions, and a norm on what the first layers read."""

from typing import Any

from dragoman.checkpoint.huggingface.bart_layers import (
    BIAS,
    COPIES,
    SHARED,
    WIRING,
    body_weights,
    read_shape,
    write_shape,
)
from dragoman.checkpoint.huggingface.family import ConfigFields, Family, Weight, modules, refuse_unless
from dragoman.errors import UserError, shown
from dragoman.models.transformer import TransformerConfig

_UNUSED_POSITIONS = 2
"""Theirs counts positions from the third row of the table."""


def _read_config(fields: ConfigFields) -> dict[str, Any]:
    for name, only in (("normalize_before", False), ("normalize_embedding", True)):
        if fields.get(name, only) != only:
            raise UserError(f"{name}: BART has {str(only).lower()}, found {shown(fields[name])}")
    return read_shape(fields) | {
        "positions": "learned",
        "max_positions": fields["max_position_embeddings"],
        "norm_embeddings": True,
    }


def _write_config(config: TransformerConfig) -> dict[str, Any]:
    refuse_unless("BART", config, WIRING | {"norm_embeddings": True})
    return write_shape(config) | {"max_position_embeddings": config.max_positions}


def _weights(config: TransformerConfig, shared: bool) -> dict[str, Weight]:
    if not shared:
        raise UserError("tokenizer.joint: BART has one vocabulary for both sides, and this model has two")
    named = {"encoder.embedding.weight": Weight((SHARED,), rows="src")}
    for side in ("encoder", "decoder"):
        table = f"model.{side}.embed_positions.weight"
        named[f"{side}.positions.weight"] = Weight((table,), skip=_UNUSED_POSITIONS)
        named |= modules({f"{side}.embedding_norm": (f"model.{side}.layernorm_embedding",)})
    return named | body_weights(config)


BART = Family(
    model_type="bart",
    architecture="BartForConditionalGeneration",
    kind="transformer",
    read_config=_read_config,
    write_config=_write_config,
    weights=_weights,
    output_bias=BIAS,
    copies={SHARED: COPIES},
    opening=True,
)

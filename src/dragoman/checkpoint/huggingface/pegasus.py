"""Pegasus (Zhang et al. 2020): Marian's wiring with the norms before the layers and one at the end."""

from typing import Any

from dragoman.checkpoint.huggingface.bart_layers import (
    BIAS,
    COPIES,
    POSITIONS,
    SHARED,
    SINUSOID_TABLES,
    SINUSOIDS,
    WIRING,
    body_weights,
    read_shape,
    sines_before_cosines,
    write_shape,
)
from dragoman.checkpoint.huggingface.family import ConfigFields, Family, Weight, modules, refuse_unless
from dragoman.errors import UserError
from dragoman.models.transformer import TransformerConfig


def _read_config(fields: ConfigFields) -> dict[str, Any]:
    return read_shape(fields) | {"positions": "sinusoidal", "position_layout": "halves", "norm": "pre"}


def _write_config(config: TransformerConfig) -> dict[str, Any]:
    refuse_unless("Pegasus", config, WIRING | SINUSOIDS | {"norm": "pre"})
    # transformers knows nothing else; other programs are told.
    told = {"normalize_before": True, "normalize_embedding": False, "add_final_layer_norm": True}
    return write_shape(config) | {"max_position_embeddings": POSITIONS, **told}


def _weights(config: TransformerConfig, shared: bool) -> dict[str, Weight]:
    if not shared:
        raise UserError("tokenizer.joint: Pegasus has one vocabulary for both sides, and this model has two")
    named = {"encoder.embedding.weight": Weight((SHARED,), rows="src")}
    for side in ("encoder", "decoder"):
        named |= modules({f"{side}.final_norm": (f"model.{side}.layer_norm",)})
    return named | body_weights(config)


PEGASUS = Family(
    model_type="pegasus",
    architecture="PegasusForConditionalGeneration",
    kind="transformer",
    read_config=_read_config,
    write_config=_write_config,
    weights=_weights,
    output_bias=BIAS,
    copies={SHARED: COPIES},
    computed=SINUSOID_TABLES,
    relabel=sines_before_cosines,
)

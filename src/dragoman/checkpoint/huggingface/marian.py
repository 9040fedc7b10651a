"""Marian (Junczys-Dowmunt et al. 2018): the Transformer of the paper, with all sines before all cosines."""

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
from dragoman.checkpoint.huggingface.family import ConfigFields, Family, Weight, refuse_unless
from dragoman.errors import UserError
from dragoman.models.transformer import TransformerConfig

_SEPARATE = {"src": "model.encoder.embed_tokens.weight", "tgt": "model.decoder.embed_tokens.weight"}


def _read_config(fields: ConfigFields) -> dict[str, Any]:
    for name, only in (("normalize_before", False), ("normalize_embedding", False)):
        if fields.get(name, only) != only:
            raise UserError(f"{name}: transformers' own Marian ignores it, and so its meaning is not known")
    return read_shape(fields) | {"positions": "sinusoidal", "position_layout": "halves"}


def _write_config(config: TransformerConfig) -> dict[str, Any]:
    refuse_unless("Marian", config, WIRING | SINUSOIDS)
    return write_shape(config) | {"max_position_embeddings": POSITIONS}


def _weights(config: TransformerConfig, shared: bool) -> dict[str, Weight]:
    if shared:
        embeddings = {"encoder.embedding.weight": Weight((SHARED,), rows="src")}
    else:
        embeddings = {
            "encoder.embedding.weight": Weight((_SEPARATE["src"],), rows="src"),
            "decoder.embedding.weight": Weight((_SEPARATE["tgt"],), rows="tgt"),
        }
    return embeddings | body_weights(config)


MARIAN = Family(
    model_type="marian",
    architecture="MarianMTModel",
    kind="transformer",
    read_config=_read_config,
    write_config=_write_config,
    weights=_weights,
    output_bias=BIAS,
    copies={
        SHARED: COPIES,
        _SEPARATE["tgt"]: ("lm_head.weight",),
    },
    computed=SINUSOID_TABLES,
    relabel=sines_before_cosines,
)

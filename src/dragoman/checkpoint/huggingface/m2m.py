"""M2M-100 (Fan et al. 2021) and NLLB (NLLB team 2022): Pegasus's wiring, and a language before every text.

Their sinusoids have rates and a first position of their own, so that they are read as a table of positions.
Such models are read, not written.
"""

import math
from typing import Any, NoReturn

import torch
from torch import Tensor

from dragoman.checkpoint.huggingface.bart_layers import (
    COPIES,
    SHARED,
    SINUSOID_TABLES,
    body_weights,
    read_shape,
)
from dragoman.checkpoint.huggingface.family import ConfigFields, Family, Weight, modules
from dragoman.errors import UserError
from dragoman.models.transformer import TransformerConfig


def _read_config(fields: ConfigFields) -> dict[str, Any]:
    return read_shape(fields) | {
        "positions": "learned",
        "max_positions": fields["max_position_embeddings"],
        "norm": "pre",
        "scale_embeddings": fields.get("scale_embedding", True),
    }


def _write_config(config: TransformerConfig) -> NoReturn:  # noqa: ARG001
    raise UserError("models of M2M-100's kind are read, not written; export to ctranslate2 or onnx")


def _weights(config: TransformerConfig, shared: bool) -> dict[str, Weight]:
    if not shared:
        raise UserError("share_encoder_decoder_embeddings: M2M-100 has one vocabulary for both sides")
    named = {"encoder.embedding.weight": Weight((SHARED,), rows="src")}
    for side in ("encoder", "decoder"):
        named |= modules({f"{side}.final_norm": (f"model.{side}.layer_norm",)})
    return named | body_weights(config)


def position_table(rows: int, dim: int, pad: int) -> Tensor:
    """The position table as transformers computes it, in float32: positions start after the id of padding."""
    half = dim // 2
    rates = torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
    angles = torch.arange(pad + 1, pad + 1 + rows).float()[:, None] * rates
    table = torch.cat([angles.sin(), angles.cos()], dim=1)
    return torch.cat([table, table.new_zeros(rows, dim % 2)], dim=1)


def _computed_weights(config: TransformerConfig, pad: int) -> dict[str, Tensor]:
    table = position_table(config.max_positions, config.model_dim, pad)
    return {f"{side}.positions.weight": table.clone() for side in ("encoder", "decoder")}


M2M = Family(
    model_type="m2m_100",
    architecture="M2M100ForConditionalGeneration",
    kind="transformer",
    read_config=_read_config,
    write_config=_write_config,
    weights=_weights,
    copies={SHARED: COPIES},
    computed=(*SINUSOID_TABLES, ".embed_positions.weights"),
    computed_weights=_computed_weights,
    languages=True,
)

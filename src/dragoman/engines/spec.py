"""Conversion of a Transformer to CTranslate2's model specification.

    self-attention    linear 0 = query, key and value in one    linear 1 = out
    cross-attention   linear 0 = query    linear 1 = key and value in one    linear 2 = out
    feed-forward      linear 0 = W₁    linear 0 noact = the gate's V    linear 1 = W₂

Every array is a copy: CTranslate2 quantises in place. Absolute positions become a table of `positions` rows;
relative ones keep their kind and have no limit.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from ctranslate2 import specs
from torch import Tensor, nn

from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.nn.layer import FeedForward
from dragoman.nn.linear import SILENCE
from dragoman.text.tokenizer import Tokenizer

_ACTIVATIONS = {
    "relu": specs.Activation.RELU,
    "gelu": specs.Activation.GELU,
    "gelu_tanh": specs.Activation.GELUTanh,
    "silu": specs.Activation.SWISH,
    "sigmoid": specs.Activation.Sigmoid,
}
_ADDED = ("sinusoidal", "learned", "none")


def refuse_unsupported(kind: str, config: object) -> TransformerConfig:
    """The configuration, if CTranslate2 can run the model. Otherwise raises a UserError."""
    if kind != "transformer" or not isinstance(config, TransformerConfig):
        raise UserError(f"model.kind: CTranslate2 runs the kind transformer, not {kind}")
    if config.decoder_self == "average":
        raise UserError("model.decoder_self: CTranslate2 has no average in place of self-attention")
    if config.norm_kind not in ("layer", "rms"):
        raise UserError(f"model.norm_kind: CTranslate2 has layer and rms, not {config.norm_kind}")
    if not config.residual:
        raise UserError("model.residual: CTranslate2 has a connection around every sublayer")
    if config.copy:
        raise UserError(
            "model.copy: CTranslate2 cannot copy from the source; use the run itself, or train one with "
            "model.copy=false"
        )
    _, head_dim, value_dim = config.heads
    if head_dim != value_dim:
        raise UserError(
            f"model.value_dim: in CTranslate2 keys and values have one width, not {head_dim} and {value_dim}"
        )
    return config


def rows_needed(config: TransformerConfig, positions: int) -> int | None:
    """Rows of the table of positions; None if the model needs no table. A learnt table is kept whole."""
    if config.positions not in _ADDED:
        return None
    return max(positions, config.max_positions) if config.positions == "learned" else positions


def build_spec(
    model: EncoderDecoder,
    config: TransformerConfig,
    rows: int | None,
    names: tuple[list[str], list[str]],
    shown: str = "",
    silent: Sequence[int] = (),
) -> Any:
    """The whole model, not yet quantised. `rows` is what `rows_needed` says, and `names` are those of the
    pieces of source and target; the attention named `shown` is what CTranslate2 returns if asked, as the mean
    over its heads. `silent` pieces get no probability, for programs that cannot be told to leave them out."""
    heads, head_dim, _ = config.heads
    options: dict[str, Any] = {
        "pre_norm": config.norm == "pre",
        "activation": _ACTIVATIONS[config.activation],
        "ffn_glu": config.gated,
        "rms_norm": config.norm_kind == "rms",
        "relative_position": config.positions == "shaw",
        "relative_attention_bias": config.positions == "t5",
        "layernorm_embedding": config.norm_embeddings,
    }
    if config.positions == "rotary":
        interleaved = config.position_layout == "interleaved"
        options |= {
            "rotary_dim": 0,
            "rotary_interleave": interleaved,
            "rotary_base": config.position_base,
        }
    if heads * head_dim != config.model_dim:
        options["head_dim"] = head_dim
    spec: Any = specs.TransformerSpec(
        specs.TransformerEncoderSpec(config.num_layers, heads, **options),
        specs.TransformerDecoderSpec(
            config.decoder_layers,
            heads,
            alignment_layer=_layer_of(shown, model),
            alignment_heads=0,
            **options,
        ),
    )
    encoder, decoder = _module(model.encoder), _module(model.decoder)
    _fill_half(spec.encoder, spec.encoder.embeddings[0], encoder, config, rows)
    _fill_half(spec.decoder, spec.decoder.embeddings, decoder, config, rows)
    projection: Any = _module(model.projection)
    _fill_linear(spec.decoder.projection, projection)
    if silent:
        bias = (
            np.zeros(model.vocab.tgt_size, np.float32) if projection.bias is None else _array(projection.bias)
        )
        bias[list(silent)] = SILENCE
        spec.decoder.projection.bias = bias
    if config.scale_output:
        spec.decoder.scale_outputs = np.float32(config.model_dim**-0.5)
    _name_pieces(spec, model, config, names)
    spec.validate()
    return spec


def _layer_of(shown: str, model: EncoderDecoder) -> int:
    """The index of the decoder layer with the attention of this name; by default the last one."""
    layers: Any = _module(model.decoder).layers
    names = {module: name for name, module in model.named_modules()}
    found = [number for number, layer in enumerate(layers) if names[layer.cross_attention] == shown]
    return found[0] if found else -1


def piece_names(tokenizer: Tokenizer) -> list[str]:
    """Piece names for CTranslate2, which must be unique and without white space."""
    names = tokenizer.pieces(range(tokenizer.size))
    counts = Counter(names)

    def usable(name: str) -> bool:
        return counts[name] == 1 and bool(name) and not re.search(r"\s", name)

    return [name if usable(name) else f"<piece-{number}>" for number, name in enumerate(names)]


def _name_pieces(
    spec: Any, model: EncoderDecoder, config: TransformerConfig, names: tuple[list[str], list[str]]
) -> None:
    vocab, (source, target) = model.vocab, names
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.unk_token = target[vocab.pad_id]  # there are no unknown pieces
    spec.config.bos_token = spec.config.decoder_start_token = target[vocab.bos_id]
    spec.config.eos_token = target[vocab.eos_id]
    spec.config.layer_norm_epsilon = config.norm_eps


def _fill_half(spec: Any, embedding: Any, ours: Any, config: TransformerConfig, rows: int | None) -> None:
    embedding.weight = _array(ours.embedding.weight)
    spec.scale_embeddings = config.scale_embeddings
    if rows is not None:
        spec.position_encodings.encodings = _position_table(ours.positions, rows, config.model_dim)
    if config.norm_embeddings:
        _fill_norm(spec.layernorm_embedding, ours.embedding_norm)
    if config.norm == "pre":
        _fill_norm(spec.layer_norm, ours.final_norm)
    for layer, own in zip(spec.layer, ours.layers, strict=True):
        _fill_norm(layer.self_attention.layer_norm, own.self_residual.norm)
        _fill_attention(layer.self_attention, own.self_attention, config.relative_window)
        if config.positions == "t5":
            layer.self_attention.relative_attention_bias = _array(ours.relations.weight)
            layer.self_attention.relative_attention_max_distance = np.int32(config.relative_max_distance)
        if hasattr(own, "cross_attention"):
            _fill_norm(layer.attention.layer_norm, own.cross_residual.norm)
            _fill_attention(layer.attention, own.cross_attention, config.relative_window)
        _fill_norm(layer.ffn.layer_norm, own.ff_residual.norm)
        _fill_feedforward(layer.ffn, own.feedforward)


def _position_table(positions: nn.Module, rows: int, dim: int) -> np.ndarray:
    """The vector added at each position, found by adding it to zeros."""
    with torch.inference_mode():
        table = positions(torch.zeros(1, rows, dim))[0]
    return _array(table)


def _fill_attention(spec: Any, ours: SelfAttention | CrossAttention, window: int) -> None:
    if isinstance(ours, SelfAttention):
        parts = [ours.query_key_value, ours.out]
        if ours.distances is not None:
            spec.relative_position_keys = _both_sides(ours.distances.key, window)
            spec.relative_position_values = _both_sides(ours.distances.value, window)
    else:
        parts = [ours.query, ours.key_value, ours.out]
    for linear, part in zip(spec.linear, parts, strict=True):
        _fill_linear(linear, part)
    if not ours.scaled:
        spec.queries_scale = 1.0


def _both_sides(table: Tensor, window: int) -> np.ndarray:
    """Shaw's vectors from −k to k. A decoder has none for later positions, and they are never used."""
    ahead = 2 * window + 1 - len(table)
    return np.concatenate([_array(table), np.zeros((ahead, table.size(1)), np.float32)])


def _fill_feedforward(spec: Any, ours: FeedForward) -> None:
    if not ours.gated:
        _fill_linear(spec.linear_0, ours.widen)
    else:
        opened, passed = ours.widen.weight.chunk(2)
        spec.linear_0.weight, spec.linear_0_noact.weight = _array(opened), _array(passed)
        if ours.widen.bias is not None:
            opened, passed = ours.widen.bias.chunk(2)
            spec.linear_0.bias, spec.linear_0_noact.bias = _array(opened), _array(passed)
    _fill_linear(spec.linear_1, ours.narrow)


def _fill_linear(spec: Any, ours: Any) -> None:
    spec.weight = _array(ours.weight)
    if ours.bias is not None:
        spec.bias = _array(ours.bias)


def _fill_norm(spec: Any, ours: nn.Module) -> None:
    spec.gamma = _array(ours.weight)
    if isinstance(ours, nn.LayerNorm):
        spec.beta = _array(ours.bias)


def _array(tensor: Any) -> np.ndarray:
    return np.array(tensor.detach().cpu().float().numpy(), dtype=np.float32, copy=True)


def _module(part: object) -> nn.Module:
    assert isinstance(part, nn.Module)
    return part

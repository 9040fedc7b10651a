"""The peers: Hugging Face MarianMT with the weights of one of our models, and PyTorch's nn.Transformer."""

import torch
import transformers
from torch import Tensor, nn

from dragoman.models.base import EncoderDecoder
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.position import sinusoids


def marian_like(ours: EncoderDecoder, config: TransformerConfig) -> transformers.MarianMTModel:
    """MarianMT of the same shape with the same weights. Ours must have `position_layout: halves`."""
    theirs = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=ours.vocab.tgt_size,
            d_model=config.model_dim,
            encoder_layers=config.num_layers,
            decoder_layers=config.num_decoder_layers or config.num_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.ff_dim,
            decoder_ffn_dim=config.ff_dim,
            activation_function=config.activation,
            dropout=config.dropout,
            attention_dropout=config.attention_dropout,
            activation_dropout=config.ff_dropout,
            scale_embedding=config.scale_embeddings,
            pad_token_id=ours.vocab.pad_id,
            bos_token_id=ours.vocab.bos_id,
            eos_token_id=ours.vocab.eos_id,
            decoder_start_token_id=ours.vocab.bos_id,
            forced_eos_token_id=None,
            max_position_embeddings=1024,
        )
    )
    names = dict(theirs.named_parameters())
    with torch.no_grad():
        names["model.shared.weight"].copy_(ours.projection.weight)
        if ours.projection.bias is not None:
            theirs.final_logits_bias.copy_(ours.projection.bias[None])
        for side, half in (("encoder", ours.encoder), ("decoder", ours.decoder)):
            for number, layer in enumerate(half.layers):  # type: ignore[attr-defined]
                for name, value in marian_layer(layer).items():
                    names[f"model.{side}.layers.{number}.{name}"].copy_(value)
    return theirs


def marian_layer(layer: nn.Module) -> dict[str, Tensor]:
    parts = {
        "fc1": layer.feedforward.widen,
        "fc2": layer.feedforward.narrow,
        "final_layer_norm": layer.ff_residual.norm,
        "self_attn_layer_norm": layer.self_residual.norm,
        "self_attn.out_proj": layer.self_attention.out,
    }
    if hasattr(layer, "cross_attention"):
        parts["encoder_attn.q_proj"] = layer.cross_attention.query
        parts["encoder_attn.out_proj"] = layer.cross_attention.out
        parts["encoder_attn_layer_norm"] = layer.cross_residual.norm
    named = {
        f"{name}.{kind}": getattr(part, kind) for name, part in parts.items() for kind in ("weight", "bias")
    }
    for kind in ("weight", "bias"):
        packed = getattr(layer.self_attention.query_key_value, kind).chunk(3)
        named |= {f"self_attn.{name}_proj.{kind}": part for name, part in zip("qkv", packed, strict=True)}
        if hasattr(layer, "cross_attention"):
            key, value = getattr(layer.cross_attention.key_value, kind).chunk(2)
            named |= {f"encoder_attn.k_proj.{kind}": key, f"encoder_attn.v_proj.{kind}": value}
    return named


class TorchTransformer(nn.Module):
    """nn.Transformer as its tutorial uses it, with scaled embeddings that are tied to the projection."""

    def __init__(self, config: TransformerConfig, size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, config.model_dim)
        self.register_buffer("positions", sinusoids(1024, config.model_dim).float(), persistent=False)
        self.body = nn.Transformer(
            config.model_dim,
            config.num_heads,
            config.num_layers,
            config.num_decoder_layers or config.num_layers,
            config.ff_dim,
            config.dropout,
            batch_first=True,
        )
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, src_ids: Tensor, src_mask: Tensor, tgt_in: Tensor) -> Tensor:
        width = tgt_in.size(1)
        hidden = self.body(
            self._embed(src_ids),
            self._embed(tgt_in),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(width, device=tgt_in.device),
            src_key_padding_mask=~src_mask,
            memory_key_padding_mask=~src_mask,
            tgt_is_causal=True,
        )
        return hidden @ self.embedding.weight.t()

    def _embed(self, ids: Tensor) -> Tensor:
        scaled = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.dropout(scaled + self.positions[: ids.size(1)])

"""The peers: Hugging Face's models with the weights of one of ours, and PyTorch's nn.Transformer."""

import transformers
from torch import Tensor, nn

from dragoman.checkpoint.huggingface.families import family_of
from dragoman.checkpoint.huggingface.write import config_fields, published_tensors
from dragoman.models import Network
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.positions import sinusoids


def published_like(ours: Network, config: object, kind: str = "transformer") -> transformers.PreTrainedModel:
    """Hugging Face's model of the same wiring and shape, with the same weights."""
    family = family_of(kind, config)
    fields = config_fields(family, config, ours.vocab)
    theirs = getattr(transformers, family.architecture)(
        transformers.AutoConfig.for_model(**fields)  # as it would read them from a file
    )
    found = theirs.load_state_dict(published_tensors(family, config, ours), strict=False)
    tied = ("embed_tokens.weight", "lm_head.weight", "embed_positions.weight")
    tied += ("predictions.decoder.weight", "predictions.decoder.bias")
    assert not found.unexpected_keys
    assert all(name.endswith(tied) for name in found.missing_keys), found.missing_keys
    return theirs


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

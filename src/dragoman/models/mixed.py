"""Any encoder with any decoder. They may have different widths.

    model:
      kind: mixed
      encoder: {preset: transformer-tiny}
      decoder: {kind: rnn, model_dim: 256, attention: general, wiring: luong}

With `encoder: {kind: vit}` the model reads vectors, such as the patches of an image. Fields of the encoder's
section that are about decoders have no effect, and the other way round. The output bias is the decoder's.
Embeddings share a matrix only if both sections tie and have the same width.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dragoman.config import to_dict
from dragoman.models.abilities import Abilities
from dragoman.models.base import Decoder, Encoder, EncoderDecoder, Vocab, join, joined_abilities
from dragoman.models.convs2s import ConvDecoder, ConvEncoder, ConvS2SConfig
from dragoman.models.rnn import RnnConfig, RnnDecoder, RnnEncoder
from dragoman.models.transformer import TransformerConfig, TransformerDecoder, TransformerEncoder
from dragoman.models.vit import VitConfig, VitEncoder
from dragoman.nn.linear import TokenEmbedding

MakeEncoder = Callable[[Any, TokenEmbedding], Encoder]
MakeDecoder = Callable[[Any, TokenEmbedding, int], Decoder]

HALVES: dict[str, tuple[type, MakeEncoder, MakeDecoder | None]] = {
    "transformer": (TransformerConfig, TransformerEncoder, TransformerDecoder),
    "rnn": (RnnConfig, RnnEncoder, RnnDecoder),
    "convs2s": (ConvS2SConfig, ConvEncoder, ConvDecoder),
    "vit": (VitConfig, VitEncoder, None),
}


@dataclass(frozen=True)
class MixedConfig:
    """A section for each half, with a kind or a preset; completed with all fields when it is checked."""

    encoder: dict[str, Any]
    decoder: dict[str, Any]

    def __post_init__(self) -> None:
        for name in ("encoder", "decoder"):
            kind, config = self._half(name)
            object.__setattr__(self, name, {"kind": kind, **to_dict(config)})

    @property
    def model_dim(self) -> int:
        return self._half("decoder")[1].model_dim

    @property
    def abilities(self) -> Abilities:
        return joined_abilities(self._half("encoder")[1], self._half("decoder")[1])

    def _half(self, name: str) -> tuple[str, Any]:
        from dragoman.models import chosen_config  # which knows this class

        classes = {kind: half[0] for kind, half in HALVES.items() if half[2] or name == "encoder"}
        return chosen_config(getattr(self, name), classes, name)

    def join(self, vocab: Vocab) -> EncoderDecoder:
        encoder_kind, encoder_config = self._half("encoder")
        decoder_kind, decoder_config = self._half("decoder")
        encoder, decoder = HALVES[encoder_kind][1], HALVES[decoder_kind][2]
        assert decoder is not None, "only what writes is a decoder"
        return join(vocab, encoder, encoder_config, decoder, decoder_config)


def mixed(config: MixedConfig, vocab: Vocab) -> EncoderDecoder:
    """Assemble the whole model."""
    return config.join(vocab)

"""The stack of Transformer layers that BERT, GPT, UniLM and ViT share, and the fields of its configuration.

Every head has `model_dim / num_heads` dimensions, for keys and values alike. Embeddings and positions are
added by the models themselves.
"""

from dataclasses import dataclass

from torch import nn

from dragoman.config import check_heads, check_not_negative, check_shares, check_sizes
from dragoman.nn.attention import SelfAttention
from dragoman.nn.layer import Activation, EncoderLayer, FeedForward
from dragoman.nn.norm import NormPlace, Residual


@dataclass(frozen=True)
class StackConfig:
    """The defaults are those of BERT-base."""

    num_layers: int = 12
    model_dim: int = 768
    num_heads: int = 12
    ff_dim: int = 3072
    dropout: float = 0.1
    attention_dropout: float = 0.1
    norm_eps: float = 1e-12
    activation: Activation = "gelu"
    max_positions: int = 512

    def __post_init__(self) -> None:
        check_sizes(self, ["num_layers"], ["model_dim", "num_heads", "ff_dim"], ["max_positions"])
        check_not_negative(self, "norm_eps")
        check_shares(self, "dropout", "attention_dropout")
        check_heads(self)


def stack(config: StackConfig, norm: NormPlace) -> nn.ModuleList:
    """`num_layers` Transformer layers, with normalisation before or after each sublayer."""
    return nn.ModuleList(_layer(config, norm) for _ in range(config.num_layers))


def _layer(config: StackConfig, norm: NormPlace) -> EncoderLayer:
    width = config.model_dim // config.num_heads
    return EncoderLayer(
        SelfAttention(config.model_dim, config.num_heads, width, width, config.attention_dropout),
        FeedForward(config.model_dim, config.ff_dim, activation=config.activation),
        *(Residual(config.model_dim, config.dropout, norm, config.norm_eps) for _ in range(2)),
    )


def gpt_weights(model: nn.Module, num_layers: int | None = None) -> None:
    """Normal with standard deviation 0.02 throughout (Radford et al. 2018, section 4.1; Devlin et al. 2019).
    With `num_layers` L, the 2·L projections that add to the residual stream begin with 1/√(2·L) of it
    (Radford et al. 2019, section 2.3). Biases are zero, norms begin at 1."""
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            added = name.endswith(("self_attention.out.weight", "feedforward.narrow.weight"))
            shrink = (2 * num_layers) ** -0.5 if added and num_layers else 1.0
            nn.init.normal_(parameter, std=0.02 * shrink)

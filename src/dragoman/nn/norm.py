"""Residual connections with a norm before or after the sublayer.

post (the paper):  x ─┬─ sublayer ─ dropout ─ + ─ norm ─▶      LayerNorm(x + Sublayer(x))
                      └───────────────────────┘
pre:               x ─┬─ norm ─ sublayer ─ dropout ─ + ─▶      x + Sublayer(LayerNorm(x))
                      └──────────────────────────────┘

layer:  (x − μ) / √(σ² + ε) ⊙ γ + β     over the width of one position (Ba et al. 2016)
rms:    x / √(mean x² + ε) ⊙ γ          the same without centring (Zhang & Sennrich 2019)
batch:  as layer, over all positions of the batch for each number of the width (Ioffe & Szegedy 2015)
none:   x
"""

from typing import Literal

import torch
from torch import nn

from dragoman.kernels import usable
from dragoman.nn.dropout import dropout
from dragoman.nn.kernel_choice import POST_NORM, choose_kernel, pre_norm_refusal
from dragoman.shapes import Float, Tensor

NormPlace = Literal["post", "pre"]
NormKind = Literal["layer", "rms", "batch", "none"]


def in_half(x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    """Convert to the type of matrix products under autocast, if Triton kernels continue with the tensor."""
    device = x.device.type
    if usable(x) and torch.is_autocast_enabled(device):
        return x.to(torch.get_autocast_dtype(device))
    return x


def residual_stream(x: Float[Tensor, "*B D"], place: NormPlace) -> Float[Tensor, "*B D"]:
    """The input of the first layer. With post-norm every sublayer ends with a norm, so rounding errors cannot
    grow, and the stream may have the type of matrix products."""
    return in_half(x) if place == "post" else x


def make_norm(dim: int, kind: NormKind, eps: float) -> nn.Module:
    if kind == "none":
        return nn.Identity()
    if kind == "batch":
        return PositionBatchNorm(dim, eps=max(eps, 1e-12))  # torch's refuses 0
    return nn.RMSNorm(dim, eps=eps) if kind == "rms" else nn.LayerNorm(dim, eps=eps)


class PositionBatchNorm(nn.BatchNorm1d):
    """Batch norm over all positions of a batch, padding among them; outside training by running averages. It
    is there to be compared with layer norm."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__(dim, eps=eps)
        self.num_batches_tracked = None  # a count: checkpoints that are averaged hold weights alone

    def forward(self, input: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return super().forward(input.flatten(0, -2)).view(input.shape)


class Residual(nn.Module):
    """The two halves around a sublayer: `before` gives its input, `after` takes its output."""

    def __init__(
        self, dim: int, dropout: float, place: NormPlace, eps: float, kind: NormKind = "layer"
    ) -> None:
        super().__init__()
        self.norm = make_norm(dim, kind, eps)
        self.dropout, self.place = dropout, place

    @property
    def rate(self) -> float:
        """The dropout rate in the current mode."""
        return self.dropout if self.training else 0.0

    def before(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return self.norm(x) if self.place == "pre" else x

    def after(self, x: Float[Tensor, "B T D"], sublayer: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        if self.place == "pre":
            return x + dropout(sublayer, self.dropout, self.training)
        call = (x, sublayer, self.norm, self.rate)
        return choose_kernel(POST_NORM, *call).run(*call)

    def fuses_next_norm(self, x: Float[Tensor, "B T D"]) -> bool:
        """Whether `after_and_norm` is one pass: pre-norm, while it is trained on a GPU. The norms of a model
        that is sharded (FSDP) exist only inside their own layer."""
        return self.place == "pre" and self.training and pre_norm_refusal(x, self.norm) is None

    def after_and_norm(
        self, x: Float[Tensor, "B T D"], sublayer: Float[Tensor, "B T D"], norm: nn.Module
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """`after` and the norm of the next sublayer in one pass, where `fuses_next_norm`."""
        from dragoman.kernels.fused_norm import drop_add_then_norm

        assert isinstance(norm, nn.LayerNorm), "all norms of a model are of one kind"
        return drop_add_then_norm(x, sublayer, norm.weight, norm.bias, norm.eps, self.rate)


class NoResidual(Residual):
    """The same norms without a residual connection."""

    def after(
        self,
        x: Float[Tensor, "B T D"],  # noqa: ARG002
        sublayer: Float[Tensor, "B T D"],
    ) -> Float[Tensor, "B T D"]:
        dropped = dropout(sublayer, self.dropout, self.training)
        return dropped if self.place == "pre" else self.norm(dropped)

    def fuses_next_norm(self, x: Float[Tensor, "B T D"]) -> bool:  # noqa: ARG002
        return False

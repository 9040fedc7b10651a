"""Residual connections, and where their norm stands.

post (the paper):  x ─┬─ sublayer ─ dropout ─ + ─ norm ─▶      LayerNorm(x + Sublayer(x))
                      └───────────────────────┘
pre:               x ─┬─ norm ─ sublayer ─ dropout ─ + ─▶      x + Sublayer(LayerNorm(x))
                      └──────────────────────────────┘

layer:  (x − μ) / √(σ² + ε) ⊙ γ + β     over the width of one position (Ba et al. 2016)
rms:    x / √(mean x² + ε) ⊙ γ          the same without centring (Zhang & Sennrich 2019)
"""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.kernels import usable
from dragoman.shapes import Float, Tensor

NormPlace = Literal["post", "pre"]
NormKind = Literal["layer", "rms"]
_WIDEST_FOR_KERNEL = 8192


def in_half(x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    """In the type of matrix products under autocast, where kernels go on with it."""
    device = x.device.type
    if usable(x) and torch.is_autocast_enabled(device):
        return x.to(torch.get_autocast_dtype(device))
    return x


def stream(x: Float[Tensor, "*B D"], place: NormPlace) -> Float[Tensor, "*B D"]:
    """What goes through the layers. Where every sublayer ends with a norm, no error can grow on the way, and
    the numbers need be no wider than those of the matrix products."""
    return in_half(x) if place == "post" else x


def make_norm(dim: int, kind: NormKind, eps: float) -> nn.Module:
    return nn.RMSNorm(dim, eps=eps) if kind == "rms" else nn.LayerNorm(dim, eps=eps)


class Residual(nn.Module):
    """The two halves around a sublayer: `before` gives its input, `after` takes its output."""

    def __init__(
        self, dim: int, dropout: float, place: NormPlace, eps: float, kind: NormKind = "layer"
    ) -> None:
        super().__init__()
        self.norm = make_norm(dim, kind, eps)
        self.dropout, self.place = dropout, place

    def before(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return self.norm(x) if self.place == "pre" else x

    def after(self, x: Float[Tensor, "B T D"], sublayer: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        norm = self.norm
        if isinstance(norm, nn.LayerNorm) and self._by_kernel(x, sublayer, norm.weight):
            if torch.is_grad_enabled():
                from dragoman.kernels.residual import drop_add_norm

                rate = self.dropout if self.training else 0.0
                return drop_add_norm(x, sublayer, norm.weight, norm.bias, norm.eps, rate)
            from dragoman.kernels.norm import add_norm

            return add_norm(x, sublayer, norm.weight, norm.bias, norm.eps)
        joined = x + F.dropout(sublayer, self.dropout, self.training)
        return norm(joined) if self.place == "post" else joined

    def hands_on(self, x: Float[Tensor, "B T D"]) -> bool:
        """Whether `onward` is one pass: pre-norm, while it learns on a GPU. A norm that is cut into parts, as
        large models have it, cannot be reached from the sublayer before it."""
        norm = self.norm
        return (
            self.place == "pre"
            and self.training
            and torch.is_grad_enabled()
            and isinstance(norm, nn.LayerNorm)
            and x.size(-1) <= _WIDEST_FOR_KERNEL
            and usable(x)
            and not hasattr(norm.weight, "full_tensor")
        )

    def onward(
        self, x: Float[Tensor, "B T D"], sublayer: Float[Tensor, "B T D"], norm: nn.Module
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """`after`, and what the next norm makes of it; where it `hands_on`."""
        from dragoman.kernels.residual import drop_add_then_norm

        assert isinstance(norm, nn.LayerNorm), "all norms of a model are of one kind"
        rate = self.dropout if self.training else 0.0
        return drop_add_then_norm(x, sublayer, norm.weight, norm.bias, norm.eps, rate)

    def _by_kernel(self, x: Tensor, sublayer: Tensor, weight: Tensor) -> bool:
        """One pass in place of some, for LayerNorm on a GPU."""
        return (
            self.place == "post"
            and (torch.is_grad_enabled() or not self.training or not self.dropout)
            and x.dtype == sublayer.dtype
            and x.size(-1) <= _WIDEST_FOR_KERNEL
            and usable(x, sublayer, weight)
        )

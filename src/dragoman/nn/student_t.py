"""Student's t distribution with a location, a scale and degrees of freedom for every number to come, as
probabilistic forecasts with heavy tails use it (Salinas et al. 2020 have the normal distribution there).

    log p(y) = log Γ((ν + 1)/2) − log Γ(ν/2) − ½ log(π ν) − log σ − (ν + 1)/2 · log(1 + z²/ν)
    z        = (y − μ)/σ

A quantile of the standard distribution solves, with t = √ν tan θ,

    ∫₀^θ cos^(ν−1) u du = (q − ½) · B(½, ν/2)

by Newton's steps from 0, which cannot go too far, because the integral rises ever more slowly. It is computed
for a table of 1/ν and interpolated between.
"""

import functools
import math

import numpy as np
import torch
import torch.nn.functional as F

from dragoman.shapes import Float, Tensor

_LEAST_FREEDOM = 2.0
"""Above it the variance is finite."""
_LEAST_SCALE = 1e-4
_TABLE = 1024
_NODES, _STEPS = 32, 40


def student(raw: Float[Tensor, "*B 3"]) -> tuple[Tensor, Tensor, Tensor]:
    """Location, scale and degrees of freedom from three numbers of any size."""
    location, scale, freedom = raw.float().unbind(dim=-1)
    return location, F.softplus(scale) + _LEAST_SCALE, F.softplus(freedom) + _LEAST_FREEDOM


def log_density(
    value: Float[Tensor, "*B"],
    location: Float[Tensor, "*B"],
    scale: Float[Tensor, "*B"],
    freedom: Float[Tensor, "*B"],
) -> Float[Tensor, "*B"]:
    half = (freedom + 1) / 2
    norm = torch.lgamma(half) - torch.lgamma(freedom / 2) - 0.5 * torch.log(math.pi * freedom) - scale.log()
    return norm - half * torch.log1p(((value - location) / scale).square() / freedom)


def student_quantile(level: float, freedom: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """The number below which a share `level` of the standard distribution lies."""
    table = torch.from_numpy(_quantiles(level)).to(freedom.device, torch.float64)
    place = _LEAST_FREEDOM / freedom.double().clamp(min=_LEAST_FREEDOM) * (_TABLE - 1)
    below = place.long().clamp(max=_TABLE - 2)
    found = torch.lerp(table[below], table[below + 1], place - below)
    return found.to(freedom.dtype)


@functools.lru_cache(maxsize=64)
def _quantiles(level: float) -> np.ndarray:
    """Of 1/ν from 0, the normal distribution, to the greatest, evenly."""
    inverse = np.arange(_TABLE) / ((_TABLE - 1) * _LEAST_FREEDOM)
    freedom = 1 / np.maximum(inverse, 1e-7)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    nodes, weights = (nodes + 1) / 2, weights / 2
    beta = np.exp(
        [math.lgamma(0.5) + math.lgamma(v / 2) - math.lgamma((v + 1) / 2) for v in freedom.tolist()]
    )
    wanted = abs(level - 0.5) * beta
    angle = np.zeros(_TABLE)
    for _ in range(_STEPS):
        inside = weights * np.cos(angle[:, None] * nodes) ** (freedom[:, None] - 1)
        missing = wanted - angle * inside.sum(axis=1)
        angle = angle + missing / np.cos(angle) ** (freedom - 1)
    return math.copysign(1.0, level - 0.5) * np.sqrt(freedom) * np.tan(angle)

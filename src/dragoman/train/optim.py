"""Optimizers, and their state by parameter name.

    Adam (Kingma & Ba 2015, algorithm 1)      g += λθ;  m = β₁m + (1−β₁)g;  v = β₂v + (1−β₂)g²
                                              θ −= a · m̂ / (√v̂ + ε)   with m̂, v̂ divided by 1 − βᵗ
    AdamW (Loshchilov & Hutter 2019, alg. 2)  θ −= aλθ;  then Adam with λ = 0
    SGD with momentum                         g += λθ;  b = μb + g;  θ −= a·b  (Nesterov: θ −= a·(g + μb))

λ is `weight_decay`: inside the gradient for Adam and SGD (L2: the penalty λ/2·θ²), beside it for AdamW.
Biases and norms, which have one axis, are never decayed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from dragoman.checkpoint import refuse_other_names
from dragoman.config import check_not_negative
from dragoman.errors import UserError

_SCALE = "scale"
"""Of a group: its share of the learning rate."""


@dataclass(frozen=True)
class OptimConfig:
    name: Literal["adam", "adamw", "sgd"] = "adam"
    rate: float | None = None
    """The highest rate; the schedule scales it. None: (model_dim × warmup)^−½, the peak of the paper's."""
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-9
    weight_decay: float = 0.0
    momentum: float = 0.9
    """For sgd."""
    nesterov: bool = False

    def __post_init__(self) -> None:
        if self.rate is not None and not 0 < self.rate < float("inf"):
            raise UserError(f"rate: expected a number above 0, found {self.rate}")
        for name in ("beta1", "beta2", "momentum"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name}: expected a number from 0 up to 1, found {getattr(self, name)}")
        if not 0 < self.eps < float("inf"):
            raise UserError(f"eps: expected a number above 0, found {self.eps}")
        check_not_negative(self, "weight_decay")
        if self.nesterov and not self.momentum:
            raise UserError("nesterov: needs a momentum above 0")


def build_optimizer(
    config: OptimConfig, model: nn.Module, scales: Mapping[str, float] | None = None
) -> torch.optim.Optimizer:
    """One fused kernel over all that learns; every element is computed alone, so it is deterministic.
    `scales` are shares of the rate by the name of a parameter.

    The state is made here, not at the first step: a checkpoint has the same names from the first one on.
    """
    assert config.rate is not None, "the configuration is resolved before training"
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    parameters = list(named.values())
    fused = all(p.device.type in ("cpu", "cuda") for p in parameters)
    sharing: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for name, parameter in named.items():
        scale = 1.0 if scales is None else scales[name]
        sharing.setdefault((scale, parameter.ndim > 1), []).append(parameter)
    groups = [
        {"params": found, "weight_decay": config.weight_decay if decays else 0.0, _SCALE: scale}
        for (scale, decays), found in sorted(sharing.items(), key=lambda each: each[0], reverse=True)
    ]
    if config.name == "sgd":
        optimizer = torch.optim.SGD(
            groups, lr=config.rate, momentum=config.momentum, nesterov=config.nesterov, fused=fused
        )
    else:
        kind = torch.optim.Adam if config.name == "adam" else torch.optim.AdamW
        betas = (config.beta1, config.beta2)
        optimizer = kind(groups, lr=config.rate, betas=betas, eps=config.eps, fused=fused)
    for parameter in parameters:
        optimizer.state[parameter] = _first_state(config, parameter, fused)
    return optimizer


def _first_state(config: OptimConfig, parameter: Tensor, fused: bool) -> dict[str, Tensor]:
    if config.name == "sgd":
        return {"momentum_buffer": torch.zeros_like(parameter)} if config.momentum else {}
    step_device = parameter.device if fused else torch.device("cpu")
    return {
        "step": torch.zeros((), dtype=torch.float32, device=step_device),
        "exp_avg": torch.zeros_like(parameter),
        "exp_avg_sq": torch.zeros_like(parameter),
    }


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate * group[_SCALE]


def optimizer_tensors(optimizer: torch.optim.Optimizer, model: nn.Module) -> dict[str, Tensor]:
    """`exp_avg.<parameter>` and so on: the state belongs to names, not to positions in a list."""
    return {
        f"{key}.{name}": value
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def load_optimizer(
    optimizer: torch.optim.Optimizer, model: nn.Module, tensors: Mapping[str, Tensor], source: object
) -> None:
    """Copy a saved state in; a missing, an extra or a misshapen tensor is refused by name."""
    expected = optimizer_tensors(optimizer, model)
    refuse_other_names(f"{source}: the optimizer's state", tensors, expected)
    for name, tensor in expected.items():
        tensor.copy_(tensors[name])

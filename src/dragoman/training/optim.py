"""Optimizers, their state by parameter name, the learning rate, and the moving average of the weights.

    Adam (Kingma & Ba 2015, algorithm 1)      g += λθ;  m = β₁m + (1−β₁)g;  v = β₂v + (1−β₂)g²
                                              θ −= a · m̂ / (√v̂ + ε)   with m̂, v̂ divided by 1 − βᵗ
    AdamW (Loshchilov & Hutter 2019, alg. 2)  θ −= aλθ;  then Adam with λ = 0
    SGD with momentum                         g += λθ;  b = μb + g;  θ −= a·b  (Nesterov: θ −= a·(g + μb))
    relative (Shazeer & Stern 2018, sect. 8)  a of each parameter times max(10⁻³, √(mean of θ²))

λ is `weight_decay`: inside the gradient for Adam and SGD (L2: the penalty λ/2·θ²), beside it for AdamW.
Biases and norms, which have one axis, are never decayed.

The learning rate as a pure function of the global update u = 1, 2, 3, … or of the share of the time budget
that has passed, p from 0 to 1.

    rate = optim.rate × min(1, u / warmup) × shape

    inverse_sqrt   √(warmup / u) after the warm-up. With optim.rate = (model_dim × warmup)^−½ this is
                   model_dim^−½ · min(u^−½, u · warmup^−1.5) (Vaswani et al. 2017, equation 3)
    linear         from 1 down to `floor` at update `total`
    cosine         the same, along half a cosine (Loshchilov & Hutter 2017, equation 5)
    constant       1
    slanted_triangular   up for the share `cut_frac` of all updates, then down to 1/`ratio` at `total`; it has
                   no warm-up beside it (Howard & Ruder 2018, equation 3)
    plateau        multiplied by `factor` whenever `patience` validations in a row bring nothing better

With `by: minutes`, linear, cosine and slanted_triangular are functions of p, and reach their lowest at p = 1.
The warm-up is counted in updates there too, but is over at p = 0.2 at the latest.

By updates, it cannot jump or lose a step when a run is resumed. The plateau alone looks at results; how often
it has cut the rate is counted in the checkpoint. So is the time that has passed.
"""

import importlib
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.checkpoint import refuse_other_names
from dragoman.checkpoint.model import load_into, model_tensors
from dragoman.runs.optim import OptimConfig, ScheduleConfig


def load_compiler() -> None:
    """Import it now, and remove the empty temporary directory that it creates."""
    if "torch._dynamo" in sys.modules:
        return
    folder = Path(tempfile.gettempdir())
    before = set(folder.glob("torchinductor_*"))
    importlib.import_module("torch._dynamo")
    for made in set(folder.glob("torchinductor_*")) - before:
        with suppress(OSError):  # another process may use it already
            made.rmdir()


_SCALE = "scale"
"""Key of a parameter group: its multiple of the learning rate."""
_RELATIVE = "relative"
"""Key of a parameter group: its learning rate is this times the RMS of its one parameter."""
_SMALLEST = 1e-3
"""Minimum RMS of a parameter, so that parameters initialised to zero learn too."""


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
    sharing: dict[tuple[float, bool, int], list[nn.Parameter]] = {}
    for number, (name, parameter) in enumerate(named.items()):
        scale, own = 1.0 if scales is None else scales[name], number if config.relative else 0
        sharing.setdefault((scale, parameter.ndim > 1, own), []).append(parameter)
    groups = [
        {
            "params": found,
            "weight_decay": config.weight_decay if decays else 0.0,
            _SCALE: scale,
            _RELATIVE: config.relative,
        }
        for (scale, decays, _), found in sorted(sharing.items(), key=lambda each: each[0], reverse=True)
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
    """Set the learning rate; called before every step."""
    groups = optimizer.param_groups
    relative = groups[0][_RELATIVE]
    sizes = _sizes([group["params"][0] for group in groups]) if relative else [1.0] * len(groups)
    for group, size in zip(groups, sizes, strict=True):
        group["lr"] = rate * group[_SCALE] * size


@torch.no_grad()
def _sizes(parameters: list[Tensor]) -> Sequence[Tensor]:
    """The root mean square of each parameter, on its device, without synchronisation. GPU kernels read the
    rate as float32."""
    roots = [parameter.numel() ** 0.5 for parameter in parameters]
    norms = torch._foreach_norm(parameters)  # pyright: ignore[reportPrivateImportUsage]
    sizes = torch._foreach_div(norms, roots)  # pyright: ignore[reportPrivateImportUsage]
    torch._foreach_clamp_min_(sizes, _SMALLEST)  # pyright: ignore[reportPrivateImportUsage]
    return [size.float() if size.is_cuda else size for size in sizes]


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


_LONGEST_WARMUP = 0.2
"""Maximum warm-up, as a share of the time budget."""


def scale_at(config: ScheduleConfig, update: int, cuts: int = 0, time_share: float = 0.0) -> float:
    """The factor of optim.rate at update `update`; `cuts` counts the reductions on a plateau, `time_share` is
    the elapsed share of the time budget."""
    if config.by == "minutes":
        return _scale_by_time(config, update, min(1.0, time_share))
    if config.name == "slanted_triangular":
        return _slanted(config, update)
    if update < config.warmup:
        return update / config.warmup
    if config.name == "inverse_sqrt":
        return math.sqrt(max(1, config.warmup) / max(1, update))
    if config.name == "plateau":
        return config.factor**cuts
    if config.needs_total:
        assert config.total is not None, "the configuration is resolved before training"
        done = min(1.0, (update - config.warmup) / (config.total - config.warmup))
        return _falling(config, done)
    return 1.0


def _scale_by_time(config: ScheduleConfig, update: int, passed: float) -> float:
    if config.name == "slanted_triangular":
        cut = config.cut_frac
        return _triangle(config, passed / cut if passed < cut else (1 - passed) / (1 - cut))
    warmed_up = max(update / max(1, config.warmup), passed / _LONGEST_WARMUP)
    return min(1.0, warmed_up) * _falling(config, passed)


def _falling(config: ScheduleConfig, done: float) -> float:
    """Decay from 1 to the floor, for `done` from 0 to 1."""
    left = 1 - done if config.name == "linear" else (1 + math.cos(math.pi * done)) / 2
    return config.floor + (1 - config.floor) * left


def _slanted(config: ScheduleConfig, update: int) -> float:
    """Howard & Ruder 2018, equation 3. The paper's cut · (1 / cut_frac − 1) is T − cut where T · cut_frac is
    a whole number; where it is not, this alone ends at 1 / ratio."""
    assert config.total is not None, "the configuration is resolved before training"
    cut = max(1, math.floor(config.total * config.cut_frac))
    return _triangle(
        config, update / cut if update < cut else 1 - (update - cut) / max(1, config.total - cut)
    )


def _triangle(config: ScheduleConfig, height: float) -> float:
    return (1 + max(0.0, height) * (config.ratio - 1)) / config.ratio


class MovingAverage:
    """A moving average of the weights, by parameter name: ē ← ē + (1 − d)(θ − ē) after every update.

    The decay d grows to its full value over the first updates, min(d, (1 + u) / (10 + u)), so that the random
    weights of the start are soon forgotten. With d = 0 it is the weights themselves and, `since` an update
    that validation has chosen, the mean of all from there on: ASGD with the trigger of NT-ASGD (Merity et al.
    2018, algorithm 1). The model must not move to another device.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.model = model
        self.tensors = {name: tensor.clone() for name, tensor in model_tensors(model).items()}
        # The parameters themselves: on a GPU, cuDNN's recurrent layers get other memory with every `to`.
        entries = model.state_dict(keep_vars=True)
        live = {name: entries[name] for name in self.tensors}
        floating = [name for name, tensor in live.items() if tensor.is_floating_point()]
        self._averages = [self.tensors[name] for name in floating]
        self._weights = [live[name] for name in floating]
        self._counters = [(self.tensors[name], live[name]) for name in live if name not in set(floating)]

    @torch.no_grad()
    def update(self, number: int, finite: Tensor | None = None, since: int | None = None) -> None:
        """Take in the weights after update `number`; not where `finite`, which only the device knows, is
        False."""
        decay = min(self.decay, (1 + number) / (10 + number))
        share = 1 - decay if since is None else 1 / (number - since + 1)
        if finite is None:
            torch._foreach_lerp_(self._averages, self._weights, share)  # pyright: ignore[reportPrivateImportUsage]
        else:
            change = torch._foreach_sub(self._weights, self._averages)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_mul_(change, share * finite)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_add_(self._averages, change)  # pyright: ignore[reportPrivateImportUsage]
        for average, counter in self._counters:
            average.copy_(counter)

    def load(self, tensors: Mapping[str, Tensor], source: object) -> None:
        refuse_other_names(source, tensors, self.tensors)
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])


@contextmanager
def replaced_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Context manager: the model has these weights inside, and its own again afterwards, bit for bit."""
    own = {name: tensor.clone() for name, tensor in model_tensors(model).items()}
    load_into(model, tensors, "average")
    try:
        yield
    finally:
        load_into(model, own, "weights")

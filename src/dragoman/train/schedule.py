"""The learning rate as a pure function of the global update u = 1, 2, 3, …

    rate(u) = optim.rate × min(1, u / warmup) × shape(u)

    inverse_sqrt   √(warmup / u) after the warm-up. With optim.rate = (model_dim × warmup)^−½ this is
                   model_dim^−½ · min(u^−½, u · warmup^−1.5) (Vaswani et al. 2017, equation 3)
    linear         from 1 down to `floor` at update `total`
    cosine         the same, along half a cosine (Loshchilov & Hutter 2017, equation 5)
    constant       1
    slanted_triangular   up for the share `cut_frac` of all updates, then down to 1/`ratio` at `total`; it has
                   no warm-up beside it (Howard & Ruder 2018, equation 3)
    plateau        multiplied by `factor` whenever `patience` validations in a row bring nothing better

Because it is a function of u, it cannot jump or lose a step when a run is resumed. The plateau alone looks at
results; how often it has cut the rate is counted in the checkpoint.
"""

import math
from dataclasses import dataclass
from typing import Literal

from dragoman.errors import UserError


@dataclass(frozen=True)
class ScheduleConfig:
    name: Literal["inverse_sqrt", "linear", "cosine", "constant", "plateau", "slanted_triangular"] = (
        "inverse_sqrt"
    )
    warmup: int = 4000
    total: int | None = None
    """For linear, cosine and slanted_triangular: where the rate ends. None: at train.max_updates."""
    floor: float = 0.0
    """For linear and cosine: the share of the rate that is left at the end."""
    factor: float = 0.5
    """For plateau."""
    patience: int = 2
    """For plateau: validations without a better result before the rate is cut."""
    cut_frac: float = 0.1
    """For slanted_triangular: share of the updates in which the rate rises."""
    ratio: float = 32.0
    """For slanted_triangular: how many times the highest rate is the lowest."""

    def __post_init__(self) -> None:
        if self.warmup < 0:
            raise UserError(f"warmup: expected 0 or more updates, found {self.warmup}")
        if self.total is not None and self.total <= self.rise:
            raise UserError(f"total: expected more than the warm-up's {self.rise}, found {self.total}")
        if not 0 <= self.floor <= 1:
            raise UserError(f"floor: expected a share from 0 to 1, found {self.floor}")
        if not 0 < self.factor < 1:
            raise UserError(f"factor: expected a number between 0 and 1, found {self.factor}")
        if self.patience < 1:
            raise UserError(f"patience: expected at least 1 validation, found {self.patience}")
        if not 0 < self.cut_frac < 1:
            raise UserError(f"cut_frac: expected a share between 0 and 1, found {self.cut_frac}")
        if not 1 <= self.ratio < math.inf:
            raise UserError(f"ratio: expected a number from 1 on, found {self.ratio}")

    @property
    def needs_total(self) -> bool:
        return self.name in ("linear", "cosine", "slanted_triangular")

    @property
    def rise(self) -> int:
        """Updates of the warm-up; a slanted triangle has its own."""
        return 0 if self.name == "slanted_triangular" else self.warmup


def paper_rate(model_dim: int, warmup: int) -> float:
    """The peak of the paper's schedule, reached at the end of the warm-up."""
    return (model_dim * max(1, warmup)) ** -0.5


def scale_at(config: ScheduleConfig, update: int, cuts: int = 0) -> float:
    """What optim.rate is multiplied by at update `update`; `cuts` is how often a plateau was met."""
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
        left = 1 - done if config.name == "linear" else (1 + math.cos(math.pi * done)) / 2
        return config.floor + (1 - config.floor) * left
    return 1.0


def _slanted(config: ScheduleConfig, update: int) -> float:
    """Howard & Ruder 2018, equation 3. The paper's cut · (1 / cut_frac − 1) is T − cut where T · cut_frac is
    a whole number; where it is not, this alone ends at 1 / ratio."""
    assert config.total is not None, "the configuration is resolved before training"
    cut = max(1, math.floor(config.total * config.cut_frac))
    p = update / cut if update < cut else 1 - (update - cut) / max(1, config.total - cut)
    return (1 + max(0.0, p) * (config.ratio - 1)) / config.ratio

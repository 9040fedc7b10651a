"""The sections `optim`, `schedule` and `transfer` of a configuration."""

import math
from dataclasses import dataclass, field
from typing import Literal

from dragoman.config import check_not_negative
from dragoman.errors import UserError


@dataclass(frozen=True)
class OptimConfig:
    name: Literal["adam", "adamw", "sgd"] = "adam"
    rate: float | None = None
    """Peak learning rate; the schedule scales it. None: (model_dim × warmup)^−½, as in the Transformer
    paper."""
    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-9
    weight_decay: float = 0.0
    momentum: float = 0.9
    """For sgd."""
    nesterov: bool = False
    relative: bool = False
    """For adam and adamw: scale the learning rate of each parameter by the root mean square of its values, as
    for T5."""

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
        if self.relative and self.name == "sgd":
            raise UserError("relative: it is for adam and adamw; leave it out, or choose one of them as name")


ENDING = ("linear", "cosine", "slanted_triangular")
"""Schedules that end at a given update or time."""


@dataclass(frozen=True)
class ScheduleConfig:
    name: Literal["inverse_sqrt", "linear", "cosine", "constant", "plateau", "slanted_triangular"] = (
        "inverse_sqrt"
    )
    warmup: int = 4000
    by: Literal["updates", "minutes"] = "updates"
    """For linear, cosine and slanted_triangular: the learning rate falls with the number of updates, or with
    the share of train.max_minutes that has passed. The warm-up is counted in updates."""
    total: int | None = None
    """For the same schedules by updates: the last update. None: train.max_updates."""
    floor: float = 0.0
    """For linear and cosine: final learning rate as a share of the peak."""
    factor: float = 0.5
    """For plateau."""
    patience: int = 2
    """For plateau: validations without improvement before the learning rate is reduced."""
    cut_frac: float = 0.1
    """For slanted_triangular: share of the updates in which the learning rate rises."""
    ratio: float = 32.0
    """For slanted_triangular: peak learning rate divided by the lowest."""

    def __post_init__(self) -> None:
        if self.warmup < 0:
            raise UserError(f"warmup: expected 0 or more updates, found {self.warmup}")
        if self.total is not None and self.total <= self.rise:
            raise UserError(f"total: expected more than the warm-up's {self.rise}, found {self.total}")
        if self.by == "minutes" and (not self.has_end or self.total is not None):
            raise UserError(
                "by: the clock brings down the rate of linear, cosine and slanted_triangular, which have no "
                f"total then; found {self.name} with total {self.total}"
            )
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
    def has_end(self) -> bool:
        """Whether the schedule ends at a given update or time."""
        return self.name in ENDING

    @property
    def needs_total(self) -> bool:
        return self.has_end and self.by == "updates"

    @property
    def rise(self) -> int:
        """Updates of the warm-up; slanted_triangular has its own."""
        return 0 if self.name == "slanted_triangular" else self.warmup


def paper_rate(model_dim: int, warmup: int) -> float:
    """The peak of the paper's schedule, reached at the end of the warm-up."""
    return (model_dim * max(1, warmup)) ** -0.5


@dataclass(frozen=True)
class LoraConfig:
    rank: int = 0
    """Rank of the LoRA matrices; 0: off."""
    alpha: float = 16.0
    """The LoRA update is scaled by alpha / rank."""
    targets: tuple[str, ...] = ("query_key_value",)
    """Names of the linear layers that get LoRA matrices."""

    def __post_init__(self) -> None:
        if self.rank < 0:
            raise UserError(f"rank: expected a whole number from 0 on, found {self.rank}")
        if not 0 < self.alpha < float("inf"):
            raise UserError(f"alpha: expected a number above 0, found {self.alpha}")
        if self.rank and not self.targets:
            raise UserError("targets: pairs need linear layers to stand beside; name one, or set rank to 0")


@dataclass(frozen=True)
class TransferConfig:
    freeze_layers: int | None = None
    """Freeze the embeddings and this many of the lowest layers; 0: the embeddings only."""
    freeze: tuple[str, ...] = ()
    """Prefixes of the names of parameters to freeze."""
    layer_decay: float = 1.0
    """Discriminative learning rates: factor from each layer to the one below it."""
    unfreeze_every: int = 0
    """Gradual unfreezing: updates until one more layer is trained, from the top; 0: off."""
    auxiliary_lm: float = 0.0
    """Weight of an auxiliary language-model loss on the input; 0: off."""
    vectors: str | None = None
    """A text file of word vectors (GloVe, word2vec) that the embeddings begin with."""
    lora: LoraConfig = field(default_factory=LoraConfig)

    def __post_init__(self) -> None:
        if self.freeze_layers is not None and self.freeze_layers < 0:
            raise UserError(f"freeze_layers: expected a whole number from 0 on, found {self.freeze_layers}")
        if not 0 < self.layer_decay <= 1:
            raise UserError(f"layer_decay: expected a number above 0 and up to 1, found {self.layer_decay}")
        if self.unfreeze_every < 0:
            raise UserError(f"unfreeze_every: expected a number of updates, found {self.unfreeze_every}")
        check_not_negative(self, "auxiliary_lm")

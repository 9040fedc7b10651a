"""A run as one YAML: frozen dataclasses with every number checked.

This module says what a configuration may hold. What is chosen for fields that are not given, and what goes
together with what, is in `learning/resolve.py`; a run directory holds the resolved configuration.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman.config import check_not_negative, dump_yaml, from_dict, to_dict
from dragoman.data.config import DataConfig
from dragoman.data.labelled.config import TaskConfig
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.errors import UserError
from dragoman.models import config_classes
from dragoman.models.presets import chosen_config
from dragoman.runs.objective import ObjectiveConfig
from dragoman.runs.optim import OptimConfig, ScheduleConfig, TransferConfig
from dragoman.text.tokenizer import TokenizerConfig

TaskMetric = Literal["f1", "macro_f1", "matthews", "pearson", "spearman", "exact_match"]
Metric = Literal["loss", "perplexity", "accuracy", "bleu", "chrf", "exact", TaskMetric]
LOWER_IS_BETTER = ("loss", "perplexity")
ENDS = ("max_updates", "max_epochs", "max_minutes", "patience")
"""Fields of `train` that end a run."""
Purpose = Literal["translate", "generate", "predict", "read"]


@dataclass(frozen=True)
class TrainConfig:
    """When to stop, how much to learn from at once, and what to look at on the way."""

    max_updates: int | None = None
    max_epochs: int | None = None
    max_minutes: float | None = None
    """The whole command ends within so many minutes: reading, training, the last validation and what follows
    it. The clock decides, so such a run is not the same twice."""
    batch_tokens: int = 4096
    """Tokens of a batch on its longer side, padding counted."""
    accumulate: int = 1
    """Batches an update, of all processes together; the loss is divided by the target tokens of all of them.
    A run that several processes begin rounds it up to a multiple of them."""
    clip: float = 1.0
    """Largest norm of the gradient; 0 leaves it as it is."""
    ema: float = 0.0
    """Decay of the moving average of the weights, such as 0.999; 0 is off."""
    asgd: int = 0
    """After so many validations without a better result, the weights that are used are the mean of all from
    there on (NT-ASGD, Merity et al. 2018, section 3); 0 is off."""
    log_every: int = 50
    validate_every: int = 500
    validations: int | None = None
    """With max_minutes: about so many validations, each followed by a checkpoint, at equal distances in time,
    in place of validate_every and save_every."""
    validate_sentences: int = 200
    """Sentences of the validation set to translate for bleu, chrf, exact and the samples, and to measure with
    the model's own words; 0 is none."""
    validate_beam: int = 1
    save_every: int = 500
    keep: int = 2
    """Newest checkpoints that stay, beside the best."""
    average: int = 0
    """At the end, try the mean of this many last checkpoints, and take it if it is better; 0 is off."""
    tune_search: bool = False
    """At the end, choose search.beam and search.alpha on the validation set. resolve() switches it on where
    schedule.by is minutes."""
    report: bool = False
    """At the end, write report.md: what was chosen, the learning curve and the kinds of mistakes. resolve()
    switches it on where schedule.by is minutes."""
    metric: Metric = "loss"
    """What the best checkpoint is the best in, on the validation set."""
    patience: int | None = None
    """Stop after this many validations without a better result. Where schedule.by is minutes: after this many
    in which neither the metric nor the loss became better, the rate falls to 0 within a tenth of the budget,
    and the run ends."""
    max_bad_updates: int = 10
    """Stop when so many updates in a row had a loss or gradient that is not finite."""
    amp: Literal["auto", "bf16", "none"] = "auto"
    """bf16: matrix products in bfloat16. auto: bf16 on a CUDA GPU."""
    pack: bool | None = None
    """Batches without padding: their sequences lie one after another. None: on a CUDA GPU, where model and
    objective can."""
    device: str = "auto"
    samples: int = 3
    """Translations to show at a validation."""
    tensorboard: bool = False
    shard: bool = False
    """Of several processes, each keeps a part of weights, gradients and optimizer state: for models that do
    not fit into one GPU."""
    timeout: float = 60.0
    """Seconds that a process waits for the others inside an update before all give up."""

    def __post_init__(self) -> None:
        at_least = dict.fromkeys(("batch_tokens", "accumulate", "log_every", "validate_every"), 1)
        at_least |= {"validate_beam": 1, "save_every": 1, "keep": 2, "max_bad_updates": 1, "patience": 1}
        at_least |= {"max_updates": 1, "max_epochs": 1, "validate_sentences": 0, "average": 0, "samples": 0}
        at_least |= {"asgd": 0, "validations": 1}
        for name, least in at_least.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"{name}: expected a whole number of at least {least}, found {value}")
        if self.max_minutes is not None and not 0 < self.max_minutes < math.inf:
            raise UserError(f"max_minutes: expected a number above 0, found {self.max_minutes}")
        if self.validations is not None and self.max_minutes is None:
            raise UserError(
                f"validations: {self.validations} in how many minutes? Set max_minutes, or use validate_every"
            )
        check_not_negative(self, "clip")
        if not 0 < self.timeout < math.inf:
            raise UserError(f"timeout: expected a number of seconds above 0, found {self.timeout}")
        if not 0 <= self.ema < 1:
            raise UserError(f"ema: expected a number from 0 up to 1, found {self.ema}")
        if self.ema and self.asgd:
            raise UserError(f"asgd: there is one average, and ema is {self.ema}; set one of the two to 0")
        if self.metric in ("bleu", "chrf", "exact") and not self.validate_sentences:
            raise UserError(f"metric: {self.metric} needs validate_sentences above 0")
        if not any(getattr(self, name) for name in ENDS):
            raise UserError(
                "max_updates: nothing ends this run: set it, or max_epochs, max_minutes or patience"
            )


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Everything that a run is made from. `model` holds the kind and all fields of its config."""

    seed: int = 1
    start: str | None = None
    """A run to begin with: its tokenizers, its model and its weights."""
    data: DataConfig
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: dict[str, Any]
    task: TaskConfig | None = None
    """What to learn to say about text; None: nothing but the text itself."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    transfer: TransferConfig = field(default_factory=TransferConfig)
    train: TrainConfig
    search: SearchConfig = field(default_factory=BeamSearch)
    purpose: Purpose | None = None
    """What the trained model is used for. It follows from the objective; None in old run directories."""

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 63:
            raise UserError(f"seed: expected a whole number from 0 up to 2^63, found {self.seed}")
        if self.schedule.by == "minutes" and self.train.max_minutes is None:
            raise UserError("schedule.by: minutes of what? Set train.max_minutes")
        if self.optim.relative and self.train.shard:
            raise UserError(
                "optim.relative: a part of a parameter has no size; set it or train.shard to false"
            )

    @functools.cached_property
    def model_config(self) -> tuple[str, Any]:
        """The model's kind and its config dataclass."""
        return model_section(self.model)

    @property
    def budgeted(self) -> bool:
        """The clock brings the learning rate down and ends the run."""
        return self.schedule.by == "minutes"

    @property
    def counted(self) -> bool:
        """The model is fitted by counting; what is about gradients does not apply."""
        return self.model_config[1].abilities.counts


def read_config(plain: Mapping[str, Any]) -> RunConfig:
    """The configuration of a run directory, which was resolved when the run was made."""
    kind, model = model_section(plain.get("model", {}))
    config = from_dict(RunConfig, {**plain, "model": {"kind": kind, **to_dict(model)}})
    return dataclasses.replace(config, purpose=config.purpose or _purpose_of_old_run(config))


def _purpose_of_old_run(config: RunConfig) -> Purpose:
    """Runs of before version 0.2 do not say it."""
    if config.task is not None:
        return "predict"
    before: dict[str, Purpose] = {"translate": "translate"}
    before |= dict.fromkeys(("causal", "prefix", "unilm"), "generate")
    return before.get(config.objective.name, "read")


def to_yaml(config: RunConfig) -> str:
    return dump_yaml(to_dict(config))


def model_section(section: object) -> tuple[str, Any]:
    return chosen_config(section, config_classes())


def differences(old: RunConfig, new: RunConfig) -> list[tuple[str, object, object]]:
    """The dotted fields in which two configurations differ, with both values."""
    return list(_differences(to_dict(old), to_dict(new), ""))


def training_differences(old: RunConfig, new: RunConfig) -> list[tuple[str, object, object]]:
    """The same, without what a run that has tuned its search chose itself."""
    found = differences(old, new)
    tuned = ("search.beam", "search.alpha", "search.n_best") if new.train.tune_search else ()
    return [each for each in found if each[0] not in tuned]


def _differences(old: object, new: object, where: str) -> list[tuple[str, object, object]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found = []
        for key in [*old, *(k for k in new if k not in old)]:
            found += _differences(old.get(key), new.get(key), f"{where}.{key}" if where else str(key))
        return found
    return [] if old == new else [(where, old, new)]

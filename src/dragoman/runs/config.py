"""The configuration of a run: frozen dataclasses with checked values.

This module defines the fields. Defaults for fields that are not given, and checks between fields, are in
`learning/resolve.py`; a run directory contains the resolved configuration.
"""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from dragoman.config import check_not_negative, dump_yaml, from_dict, to_dict
from dragoman.data.config import DataConfig
from dragoman.data.labelled.config import TaskConfig
from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.errors import UserError, shown
from dragoman.models import chosen_config
from dragoman.models.base import AlignmentGuide
from dragoman.runs.field_names import USUAL_NAMES
from dragoman.runs.objective import ObjectiveConfig
from dragoman.runs.optim import OptimConfig, ScheduleConfig, TransferConfig
from dragoman.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from dragoman.runs.directory import Run

TaskMetric = Literal["f1", "macro_f1", "matthews", "pearson", "spearman", "exact_match", "mse", "mae"]
OutputMetric = Literal["bleu", "chrf", "exact", "rouge", "brackets"]
"""Metrics of outputs that the validation generates."""
ValidationMetric = Literal["loss", "perplexity", "accuracy", OutputMetric, TaskMetric]
LOWER_IS_BETTER = ("loss", "perplexity", "mse", "mae")
ENDS = ("max_updates", "max_epochs", "max_minutes", "patience")
"""Fields of `train` that end a run."""
_MOST_NAMED = 4
"""Differing fields that a message names."""
Purpose = Literal["translate", "generate", "predict", "read"]


@dataclass(frozen=True)
class TrainConfig:
    """Stopping criteria, batch size, validation, checkpoints and logging."""

    max_updates: int | None = None
    max_epochs: int | None = None
    max_minutes: float | None = None
    """The whole command ends within this many minutes: reading, training, the last validation and what
    follows. This depends on wall-clock time, so the run is not reproducible."""
    batch_tokens: int = 4096
    """Batch size: tokens of the longer side, including padding."""
    accumulate: int = 1
    """Gradient accumulation: batches per update over all processes; the loss is divided by the target tokens
    of all of them. Rounded up to a multiple of the number of processes that start the run."""
    clip: float = 1.0
    """Gradient clipping: largest norm; 0: off."""
    ema: float = 0.0
    """Decay of the exponential moving average of the weights, such as 0.999; 0: off."""
    asgd: int = 0
    """After this many validations without improvement, average the weights from there on (NT-ASGD, Merity et
    al. 2018, section 3); 0: off."""
    log_every: int = 50
    validate_every: int = 500
    validations: int | None = None
    """With max_minutes: number of validations, evenly spaced in time, each followed by a checkpoint; replaces
    validate_every and save_every."""
    validate_sentences: int = 200
    """Validation sentences to translate, for bleu, chrf, exact, the samples and the free-running loss; 0:
    none."""
    validate_beam: int = 1
    save_every: int = 500
    keep: int = 2
    """Number of newest checkpoints to keep, besides the best."""
    average: int = 0
    """Checkpoint averaging: at the end, try the average of this many last checkpoints, and use it if it is
    better; 0: off."""
    tune_search: bool = False
    """At the end, choose search.beam and search.alpha on the validation set. resolve() enables it if
    schedule.by is minutes."""
    report: bool = False
    """At the end, write report.md: settings with reasons, learning curve, kinds of errors. resolve() enables
    it if schedule.by is minutes."""
    metric: ValidationMetric = "loss"
    """The validation metric that chooses the best checkpoint."""
    patience: int | None = None
    """Early stopping: stop after this many validations without improvement. If schedule.by is minutes: after
    this many in which neither the metric nor the loss improved, the learning rate falls to 0 within a tenth
    of the budget, and the run ends."""
    max_bad_updates: int = 10
    """Stop after this many consecutive updates with a loss or gradient that is not finite."""
    amp: Literal["auto", "bf16", "none"] = "auto"
    """Mixed precision. bf16: matrix products in bfloat16. auto: bf16 on a CUDA GPU."""
    pack: bool | None = None
    """Packed batches without padding: sequences are concatenated. None: on a CUDA GPU, if model and objective
    support it."""
    device: str = "auto"
    samples: int = 3
    """Sample translations to print at each validation."""
    threads: int | None = None
    """Threads of PyTorch on a CPU. None: as many as it chooses, or OMP_NUM_THREADS says."""
    tensorboard: bool = False
    tracker: Literal["none", "mlflow", "wandb", "trackio"] = "none"
    """An experiment tracker that gets the numbers of metrics.jsonl too."""
    shard: bool = False
    """Sharded training: each process holds a part of weights, gradients and optimizer state, for models that
    do not fit on one GPU."""
    timeout: float = 60.0
    """Timeout in seconds: how long a process waits for the others within an update before all stop."""

    def __post_init__(self) -> None:
        at_least = dict.fromkeys(("batch_tokens", "accumulate", "log_every", "validate_every"), 1)
        at_least |= {"validate_beam": 1, "save_every": 1, "keep": 2, "max_bad_updates": 1, "patience": 1}
        at_least |= {"max_updates": 1, "max_epochs": 1, "validate_sentences": 0, "average": 0, "samples": 0}
        at_least |= {"asgd": 0, "validations": 1, "threads": 1}
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
        if self.metric in get_args(OutputMetric) and not self.validate_sentences:
            raise UserError(f"metric: {self.metric} needs validate_sentences above 0")
        if not any(getattr(self, name) for name in ENDS):
            raise UserError(
                "max_updates: nothing ends this run: set it, or max_epochs, max_minutes or patience"
            )


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The whole configuration of a run. `model` has the kind and all fields of its config."""

    usual_names: ClassVar[Mapping[str, str]] = USUAL_NAMES

    seed: int = 1
    start: str | None = None
    """A run to start from: its tokenizers, its model and its weights."""
    data: DataConfig
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    model: dict[str, Any]
    task: TaskConfig | None = None
    """The task to fine-tune for; None for translation and language modelling."""
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    transfer: TransferConfig = field(default_factory=TransferConfig)
    train: TrainConfig
    search: SearchConfig = field(default_factory=BeamSearch)
    purpose: Purpose | None = None
    """Use of the trained model. It follows from the objective; None in old run directories."""

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
        return chosen_config(self.model)

    @property
    def budgeted(self) -> bool:
        """Whether the learning rate and the end of the run depend on wall-clock time."""
        return self.schedule.by == "minutes"

    @property
    def counted(self) -> bool:
        """Whether the model is fitted by counting, without gradients."""
        return self.model_config[1].abilities.counts


@dataclass(frozen=True)
class InferenceConfig:
    """The part of a run's configuration that using its model needs."""

    data: DataConfig
    search: SearchConfig
    purpose: Purpose
    guided_alignment: AlignmentGuide
    """The attention that was trained to align words."""


def read_inference_config(plain: Mapping[str, Any]) -> InferenceConfig:
    """The same file as `read_config`, without the settings of training."""
    objective = plain.get("objective", {})
    return InferenceConfig(
        from_dict(DataConfig, plain["data"], "data"),
        from_dict(SearchConfig, plain.get("search", {}), "search"),
        plain.get("purpose") or _purpose_of_old_run(plain.get("task"), objective.get("name", "translate")),
        from_dict(AlignmentGuide, objective.get("guided_alignment", {}), "objective.guided_alignment"),
    )


def read_config(plain: Mapping[str, Any]) -> RunConfig:
    """The configuration of a run directory, resolved when the run was created."""
    kind, model = chosen_config(plain.get("model", {}))
    config = from_dict(RunConfig, {**plain, "model": {"kind": kind, **to_dict(model)}})
    purpose = config.purpose or _purpose_of_old_run(config.task, config.objective.name)
    return dataclasses.replace(config, purpose=purpose)


def _purpose_of_old_run(task: object, objective: str) -> Purpose:
    """Runs of versions before 0.2 do not contain it."""
    if task is not None:
        return "predict"
    before: dict[str, Purpose] = {"translate": "translate"}
    before |= dict.fromkeys(("causal", "prefix", "unilm"), "generate")
    return before.get(objective, "read")


def to_yaml(config: RunConfig) -> str:
    return dump_yaml(to_dict(config))


def config_differences(old: RunConfig, new: RunConfig) -> list[tuple[str, object, object]]:
    """The dotted fields in which two configurations differ, with both values."""
    return list(_differences(to_dict(old), to_dict(new), ""))


def training_differences(old: RunConfig, new: RunConfig) -> list[tuple[str, object, object]]:
    """The differences, without search settings that the run has tuned itself."""
    found = config_differences(old, new)
    tuned = ("search.beam", "search.alpha", "search.n_best") if new.train.tune_search else ()
    return [each for each in found if each[0] not in tuned]


def _differences(old: object, new: object, where: str) -> list[tuple[str, object, object]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found = []
        for key in [*old, *(k for k in new if k not in old)]:
            found += _differences(old.get(key), new.get(key), f"{where}.{key}" if where else str(key))
        return found
    return [] if old == new else [(where, old, new)]


def refusal_of_other_config(run: "Run", found: Sequence[tuple[str, object, object]]) -> UserError:
    """The message if the directory exists with another configuration. Different data are named first, because
    everything chosen from them differs too."""
    files = _files(run.config.data.train)
    where = f"{run.directory} is a run on {files}"
    resume = f"dragoman resume {quote(str(run.directory))}"
    advice = "use another directory with  --out runs/NAME"
    if any(field.startswith("data.") for field, _, _ in found):
        return UserError(f"{where}; {advice}, or continue it with  {resume}")
    told = ", ".join(
        f"{field} is {_short(old)} there and {_short(new)} here" for field, old, new in found[:_MOST_NAMED]
    )
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return UserError(
        f"{where} with another configuration ({told}{more}); {advice}, or change it with  "
        f"{resume} field=value"
    )


def _files(sources: Sequence[Any]) -> str:
    names = [file for source in sources for file in source.files]
    return ", ".join(names[:4]) + (" and others" if len(names) > 4 else "")


def _short(value: object) -> str:
    return value if isinstance(value, str) else shown(value, 40)

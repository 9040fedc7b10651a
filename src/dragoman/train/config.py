"""A run as one YAML: frozen dataclasses, presets, dotted overrides, every number checked."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from dragoman.config import apply_overrides, check_not_negative, check_shares, dump_yaml, from_dict, to_dict
from dragoman.data.config import DataConfig
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.noise import NoiseConfig
from dragoman.decode.config import SearchConfig
from dragoman.errors import UserError
from dragoman.models import MODELS, READERS
from dragoman.models.base import CountedConfig
from dragoman.models.presets import chosen_config
from dragoman.objectives import AlignmentGuide, ForcingSchedule, TeacherForcing
from dragoman.text.tokenizer import TokenizerConfig
from dragoman.train.optim import OptimConfig
from dragoman.train.schedule import ScheduleConfig, paper_rate
from dragoman.train.task import check_task, named_objective, settled
from dragoman.train.text import check_text, with_specials, without_smoothing
from dragoman.train.transfer import TransferConfig

TaskMetric = Literal["f1", "macro_f1", "matthews", "pearson", "spearman", "exact_match"]
Metric = Literal["loss", "perplexity", "accuracy", "bleu", "chrf", "exact", TaskMetric]
LOWER_IS_BETTER = ("loss", "perplexity")
_ENDS = ("max_updates", "max_epochs", "max_minutes", "patience")


ObjectiveName = Literal[
    "translate", "causal", "masked", "spans", "denoise", "bidirectional", "prefix", "unilm", "task"
]


@dataclass(frozen=True)
class ObjectiveConfig:
    name: ObjectiveName = "translate"
    """`translate` learns from pairs, `task` from labelled examples, all others from text."""
    block: int = 128
    """Pieces of text in an example."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    next_sentence: bool = True
    """masked: two texts, and whether the second follows the first."""
    mask_shares: tuple[float, ...] = (1.0, 1.0, 1.0)
    """unilm: how often text is read from both sides, from left to right, and as source and target."""
    label_smoothing: float = 0.1
    """Where nothing is said, none with text."""
    teacher_forcing: float = 1.0
    """Share of the decoder's inputs that come from the data; the others are its own words."""
    teacher_forcing_end: float | None = None
    teacher_forcing_schedule: ForcingSchedule = "constant"
    teacher_forcing_updates: int | None = None
    """Updates over which the share falls to its end."""
    r_drop: float = 0.0
    """Weight of R-Drop (Liang et al. 2021): two passes with other dropout shall say the same; 0 is off."""
    carry: bool = False
    """causal, with ulmfit: text is read in its order, and the state goes on from block to block."""
    activation_penalty: float = 0.0
    """On the size of what the last layer gives (AR), for ulmfit; 0 is off."""
    temporal_penalty: float = 0.0
    """On how much that changes from a piece to the next (TAR)."""
    guided_alignment: AlignmentGuide = field(default_factory=AlignmentGuide)

    def __post_init__(self) -> None:
        check_shares(self, "label_smoothing")
        if self.block < 2:
            raise UserError(f"block: expected a whole number of at least 2, found {self.block}")
        if (
            len(self.mask_shares) != 3
            or min(self.mask_shares) < 0
            or not 0 < sum(self.mask_shares) < math.inf
        ):
            raise UserError(
                "mask_shares: expected three numbers of 0 or more, for both sides, left to right, and source "
                f"and target, found {list(self.mask_shares)}"
            )
        check_not_negative(self, "r_drop", "activation_penalty", "temporal_penalty")
        guided = self.guided_alignment.weight
        if self.carry and (self.name != "causal" or self.forcing().samples or self.r_drop):
            raise UserError(
                "carry: a state goes on in plain causal language models alone; set it to false, or name to "
                "causal, and leave teacher_forcing and r_drop as they are"
            )
        if self.forcing().samples and self.r_drop:
            raise UserError(
                "r_drop: two passes can only agree on the data's words; leave teacher_forcing at 1"
            )
        if self.penalised and (self.forcing().samples or self.r_drop or guided):
            raise UserError(
                "activation_penalty: penalties go with plain teacher forcing alone, not with teacher_forcing "
                "below 1, r_drop or guided_alignment; set activation_penalty and temporal_penalty to 0"
            )
        if self.r_drop and guided:
            raise UserError(
                f"guided_alignment.weight: it does not go with r_drop; set one of them to 0, found {guided}"
            )
        if self.forcing().samples and guided:
            raise UserError(
                "guided_alignment.weight: links are about the words of the data, which are not all fed with "
                f"teacher_forcing below 1; set it to 0, found {guided}"
            )

    @property
    def penalised(self) -> bool:
        return bool(self.activation_penalty or self.temporal_penalty)

    def forcing(self) -> TeacherForcing:
        return TeacherForcing(
            self.teacher_forcing,
            self.teacher_forcing_end,
            self.teacher_forcing_schedule,
            self.teacher_forcing_updates,
        )


@dataclass(frozen=True)
class TrainConfig:
    """When to stop, how much to learn from at once, and what to look at on the way."""

    max_updates: int | None = None
    max_epochs: int | None = None
    max_minutes: float | None = None
    """The clock decides: such a run is not the same twice."""
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
    validate_sentences: int = 200
    """Sentences of the validation set to translate for bleu, chrf, exact and the samples, and to measure with
    the model's own words; 0 is none."""
    validate_beam: int = 1
    save_every: int = 500
    keep: int = 2
    """Newest checkpoints that stay, beside the best."""
    average: int = 0
    """At the end, try the mean of this many last checkpoints, and take it if it is better; 0 is off."""
    metric: Metric = "loss"
    """What the best checkpoint is the best in, on the validation set."""
    patience: int | None = None
    """Stop after this many validations without a better result."""
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
        at_least |= {"asgd": 0}
        for name, least in at_least.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise UserError(f"{name}: expected a whole number of at least {least}, found {value}")
        if self.max_minutes is not None and not 0 < self.max_minutes < math.inf:
            raise UserError(f"max_minutes: expected a number above 0, found {self.max_minutes}")
        check_not_negative(self, "clip")
        if not 0 < self.timeout < math.inf:
            raise UserError(f"timeout: expected a number of seconds above 0, found {self.timeout}")
        if not 0 <= self.ema < 1:
            raise UserError(f"ema: expected a number from 0 up to 1, found {self.ema}")
        if self.ema and self.asgd:
            raise UserError(f"asgd: there is one average, and ema is {self.ema}; set one of the two to 0")
        if self.metric in ("bleu", "chrf", "exact") and not self.validate_sentences:
            raise UserError(f"metric: {self.metric} needs validate_sentences above 0")
        if not any(getattr(self, name) for name in _ENDS):
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
    search: SearchConfig = field(default_factory=SearchConfig)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 63:
            raise UserError(f"seed: expected a whole number from 0 up to 2^63, found {self.seed}")
        if self.optim.relative and self.train.shard:
            raise UserError(
                "optim.relative: a part of a parameter has no size; set it or train.shard to false"
            )

    @property
    def model_config(self) -> tuple[str, Any]:
        """The model's kind and its config dataclass."""
        return _model_config(self.model)

    @property
    def counted(self) -> bool:
        """The model is fitted by counting; what is about gradients does not apply."""
        return isinstance(self.model_config[1], CountedConfig)


def resolve(data: Mapping[str, Any], overrides: Sequence[str] = ()) -> RunConfig:
    """Plain data, as YAML holds it, with overrides: every default, preset and derived number filled in."""
    plain = apply_overrides(data, overrides)
    kind, model = _model_config(plain.get("model", {}))
    plain["model"] = {"kind": kind, **to_dict(model)}
    plain.setdefault("train", {})
    plain["objective"] = without_smoothing(named_objective(plain))
    if isinstance(model, CountedConfig):
        plain["train"] = _with_an_end(plain["train"])
    config = from_dict(RunConfig, plain)
    if config.task is not None:
        config = dataclasses.replace(config, task=settled(config.task, model))
        check_task(config, model)
    else:
        check_text(config, model)
    config = dataclasses.replace(config, tokenizer=with_specials(config))
    if isinstance(model, CountedConfig):
        return config
    if config.objective.guided_alignment.weight and not any(s.alignment for s in config.data.train):
        raise UserError(
            "objective.guided_alignment.weight: no corpus of data.train has an alignment; make one with  "
            "dragoman align-corpus SRC TGT --output FILE  and name it under data.train[].alignment"
        )
    optim, schedule = config.optim, config.schedule
    if optim.rate is None:
        if schedule.name != "inverse_sqrt" or not hasattr(model, "model_dim"):
            raise UserError("optim.rate: only the schedule inverse_sqrt has a rate of its own; set one")
        optim = dataclasses.replace(optim, rate=paper_rate(model.model_dim, schedule.warmup))
    if schedule.needs_total and schedule.total is None:
        if config.train.max_updates is None or config.train.max_updates <= schedule.rise:
            raise UserError(
                f"schedule.total: {schedule.name} has to know its end: set it, or train.max_updates, "
                f"to more than the warm-up's {schedule.rise} updates"
            )
        schedule = dataclasses.replace(schedule, total=config.train.max_updates)
    return dataclasses.replace(config, optim=optim, schedule=schedule)


def _with_an_end(train: object) -> object:
    """Counting ends by itself, after one pass over the data; nobody has to say so."""
    if not isinstance(train, Mapping) or any(train.get(name) is not None for name in _ENDS):
        return train
    return {**train, "max_epochs": 1}


def to_yaml(config: RunConfig) -> str:
    return dump_yaml(to_dict(config))


def _model_config(section: object) -> tuple[str, Any]:
    return chosen_config(section, {kind: config for kind, (config, _) in {**MODELS, **READERS}.items()})


def differences(old: RunConfig, new: RunConfig) -> list[tuple[str, object, object]]:
    """The dotted fields in which two configurations differ, with both values."""
    return list(_differences(to_dict(old), to_dict(new), ""))


def _differences(old: object, new: object, where: str) -> list[tuple[str, object, object]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        found = []
        for key in [*old, *(k for k in new if k not in old)]:
            found += _differences(old.get(key), new.get(key), f"{where}.{key}" if where else str(key))
        return found
    return [] if old == new else [(where, old, new)]

"""The `objective` section of a configuration."""

import math
from dataclasses import dataclass, field
from typing import Literal

from dragoman.config import check_not_negative, check_shares
from dragoman.data.noise import NoiseConfig
from dragoman.errors import UserError
from dragoman.models.base import AlignmentGuide

ForcingSchedule = Literal["constant", "linear", "exponential", "inverse_sigmoid"]


@dataclass(frozen=True)
class TeacherForcing:
    """The share of decoder inputs that are reference tokens; the others are the model's own output.

    Scheduled sampling (Bengio et al. 2015, section 2.4), a pure function of the update u. With x = u /
    updates, at most 1, the share goes from `begin` to `end` by

        linear            begin + (end − begin) · x
        exponential       begin · (end / begin)^x
        inverse_sigmoid   k / (k + exp(u / k)), stretched to both ends; k puts its middle at half of `updates`
    """

    begin: float = 1.0
    end: float | None = None
    schedule: ForcingSchedule = "constant"
    updates: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.begin <= 1:
            raise UserError(f"teacher_forcing: expected a share from 0 to 1, found {self.begin}")
        for name, value in (("end", self.end), ("updates", self.updates)):
            if self.schedule == "constant" and value is not None:
                raise UserError(
                    f"teacher_forcing_{name}: a constant share has none, found {value}; "
                    "set teacher_forcing_schedule, or leave it out"
                )
            if self.schedule != "constant" and value is None:
                raise UserError(f"teacher_forcing_{name}: the schedule {self.schedule} needs it; set it")
        if self.end is not None and not 0 <= self.end <= self.begin:
            raise UserError(
                f"teacher_forcing_end: expected a share from 0 to teacher_forcing, which is {self.begin}, "
                f"found {self.end}"
            )
        if self.schedule == "exponential" and not self.end:
            raise UserError("teacher_forcing_end: an exponential never reaches 0; choose a share above it")
        if self.updates is not None and self.updates < 1:
            raise UserError(
                f"teacher_forcing_updates: expected a whole number of at least 1, found {self.updates}"
            )

    @property
    def samples(self) -> bool:
        """Whether the decoder is ever fed its own output."""
        return self.begin < 1 or (self.end is not None and self.end < 1)

    def share(self, update: int) -> float:
        if self.end is None or self.updates is None:
            return self.begin
        x = min(1.0, update / self.updates)
        if self.schedule == "linear":
            return self.begin + (self.end - self.begin) * x
        if self.schedule == "exponential":
            return self.begin * (self.end / self.begin) ** x
        return self.end + (self.begin - self.end) * _inverse_sigmoid(x, self.updates)


ALWAYS = TeacherForcing()


def _inverse_sigmoid(x: float, updates: int) -> float:
    """From 1 at x = 0 to 0 at x = 1. Bengio's curve k / (k + exp(u / k)) has its middle at u = k·ln k, and is
    k / (k + 1) at its beginning and 1 / (k + 1) at twice its middle."""
    k = 1 + updates / 2
    for _ in range(50):  # Newton's method for k·ln k = updates / 2
        k = (k + updates / 2) / (math.log(k) + 1)
    height = 1 / (1 + math.exp(x * updates / k - math.log(k)))
    return (height * (k + 1) - 1) / (k - 1)


@dataclass(frozen=True)
class ObjectiveConfig:
    name: str = "translate"
    """A training objective: one of `learning.LEARNING`."""
    block: int = 128
    """For text: tokens per example."""
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    next_sentence: bool = True
    """masked: also learn next-sentence prediction."""
    mask_shares: tuple[float, ...] = (1.0, 1.0, 1.0)
    """unilm: relative frequency of the bidirectional, left-to-right and sequence-to-sequence mask."""
    label_smoothing: float = 0.1
    """Default for text: 0."""
    teacher_forcing: float = 1.0
    """Share of the decoder inputs that are reference tokens (scheduled sampling)."""
    teacher_forcing_end: float | None = None
    teacher_forcing_schedule: ForcingSchedule = "constant"
    teacher_forcing_updates: int | None = None
    """Updates over which the share decreases to its final value."""
    r_drop: float = 0.0
    """Weight of R-Drop (Liang et al. 2021): penalises disagreement between two passes with different dropout;
    0: off."""
    carry: bool = False
    """causal, with ulmfit: read the text in order and carry the recurrent state from block to block."""
    activation_penalty: float = 0.0
    """Weight of activation regularisation (AR), for ulmfit; 0: off."""
    temporal_penalty: float = 0.0
    """Weight of temporal activation regularisation (TAR)."""
    guided_alignment: AlignmentGuide = field(default_factory=AlignmentGuide)
    every: int = 1
    """translate: learn from every n-th training pair alone, to see what the others are worth."""
    invented: int = 0
    """translate: invented pairs for every real one in an epoch, for few pairs of words; 0 is off."""
    source_noise: float = 0.0
    """translate: share of the pairs of an epoch whose source is written carelessly: upper case, typing
    errors, no accents, other quotation marks; 0 is off."""
    terms: float = 0.0
    """translate: share of the pairs of an epoch whose source has terms beside its words, so that a glossary
    works by annotation; 0 is off."""
    fuzzy: float = 0.0
    """translate: pairs with a source so similar in the corpus, in percent such as 50, are read a second time
    with that one's target beside the source, so that a memory works; 0 is off."""

    def __post_init__(self) -> None:
        check_shares(self, "label_smoothing", "source_noise", "terms")
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
        check_not_negative(self, "r_drop", "activation_penalty", "temporal_penalty", "invented")
        if self.every < 1:
            raise UserError(f"every: expected a whole number of at least 1, found {self.every}")
        if self.every > 1 and self.name != "translate":
            raise UserError(f"every: it is for translate alone, found name {self.name}; set it to 1")
        if self.invented and self.name != "translate":
            raise UserError(
                f"invented: pairs are invented for translate alone, found name {self.name}; set it to 0"
            )
        if self.source_noise and self.name != "translate":
            raise UserError(f"source_noise: it is for translate alone, found name {self.name}; set it to 0")
        for name in ("terms", "fuzzy"):
            if getattr(self, name) and self.name != "translate":
                raise UserError(f"{name}: it is for translate alone, found name {self.name}; set it to 0")
        if not 0 <= self.fuzzy < 100:
            raise UserError(f"fuzzy: expected a percentage from 0 up to 100, found {self.fuzzy:g}")
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

"""Teacher forcing: which of its inputs a decoder is given from the data, and how it goes on from its own."""

import math
from dataclasses import dataclass
from typing import Literal

import torch

from dragoman.data.batch import PairBatch
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.shapes import Bool, Float, Int, Tensor

ForcingSchedule = Literal["constant", "linear", "exponential", "inverse_sigmoid"]


@dataclass(frozen=True)
class TeacherForcing:
    """Which share of its inputs a decoder is given from the data; the others are its own words.

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
        """Whether the decoder is ever fed its own words."""
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


def decode_own_words(
    model: EncoderDecoder, batch: PairBatch, given: Bool[Tensor, "B T"]
) -> Float[Tensor, "B T D"]:
    """Position by position over the length of the data: where `given`, the decoder is fed the data's word,
    elsewhere the one it found best at the position before. It begins with `<s>` in any case."""
    state = model.start(model.encode(batch.src_ids, batch.src_mask))
    given = given | ~batch.tgt_mask  # padding is not worth a word
    hidden: list[Tensor] = []
    for t in range(batch.tgt_in.size(1)):
        last = batch.tgt_in[:, t]
        if hidden:
            last = torch.where(given[:, t], last, _best_words(model, hidden[-1]))
        out, state = model.step(last, state)
        hidden.append(out)
    return torch.stack(hidden, dim=1)


def _best_words(model: EncoderDecoder, hidden: Float[Tensor, "N D"]) -> Int[Tensor, "N"]:
    """As a greedy search would choose: neither padding nor a second beginning."""
    logits = model.project(hidden.detach()).detach()
    logits[:, model.vocab.pad_id] = -torch.inf
    logits[:, model.vocab.bos_id] = -torch.inf
    return logits.argmax(dim=-1)


def _inverse_sigmoid(x: float, updates: int) -> float:
    """From 1 at x = 0 to 0 at x = 1. Bengio's curve k / (k + exp(u / k)) has its middle at u = k·ln k, and is
    k / (k + 1) at its beginning and 1 / (k + 1) at twice its middle."""
    k = 1 + updates / 2
    for _ in range(50):  # Newton's method for k·ln k = updates / 2
        k = (k + updates / 2) / (math.log(k) + 1)
    height = 1 / (1 + math.exp(x * updates / k - math.log(k)))
    return (height * (k + 1) - 1) / (k - 1)

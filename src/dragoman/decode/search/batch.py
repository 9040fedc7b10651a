"""The sentences of one search as tensors, and the constraints that apply to them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from dragoman.data.batch import pad
from dragoman.decode.rules.lexical import Required
from dragoman.decode.rules.rules import Rules, rules_for
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Job, never
from dragoman.models.base import Vocab
from dragoman.shapes import Bool, Int, Tensor


@dataclass(frozen=True)
class SearchBatch:
    jobs: tuple[Job, ...]
    src_ids: Int[Tensor, "B S"]
    src_mask: Bool[Tensor, "B S"]
    limits: Int[Tensor, "B"]
    """Maximum length of each translation in tokens, including `</s>`."""
    shortest: Int[Tensor, "B"]
    """Minimum number of tokens of each before `</s>`."""
    rules: Rules
    required: Required | None
    """The required phrases."""

    @classmethod
    def of(
        cls, jobs: Sequence[Job], config: SearchConfig, vocab: Vocab, device: torch.device
    ) -> "SearchBatch":
        src_ids, src_mask = (part.to(device, non_blocking=True) for part in pad([job.source for job in jobs]))
        limits = torch.tensor([job.longest(config) for job in jobs], device=device)
        shortest = torch.tensor([job.shortest(config) for job in jobs], device=device)
        required = None
        if any(job.constraints.required for job in jobs):
            required = Required(vocab, [job.constraints for job in jobs], limits)
        rules = rules_for(config, vocab, jobs, shortest, limits, required)
        return cls(tuple(jobs), src_ids, src_mask, limits, shortest, rules, required)

    @property
    def can_be_cancelled(self) -> bool:
        return any(job.cancelled is not never for job in self.jobs)

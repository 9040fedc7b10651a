"""Validation of a model that predicts masked tokens."""

import copy
from collections.abc import Callable
from typing import Any

import torch

from dragoman.data.batch import TextBatch
from dragoman.data.corpus import Prepared
from dragoman.learning.base import Learning
from dragoman.learning.loss import Answers
from dragoman.learning.measured import measured, per_token
from dragoman.learning.validation import SequenceValidator, Validation
from dragoman.models import Network
from dragoman.nn.loss import widest
from dragoman.runs.config import RunConfig


class AnswerValidator(SequenceValidator):
    """For a model that predicts masked tokens: its loss and accuracy."""

    def __init__(
        self,
        learning: Learning,
        config: RunConfig,
        prepared: Prepared,
        device: torch.device,
        answer: Callable[[Any, TextBatch], Answers],
    ) -> None:
        super().__init__(learning, config, prepared, device)
        self._answer = answer

    def run(self, model: Network, autocast: torch.autocast) -> Validation:
        """Validate; the model stays in training mode."""
        model.eval()
        with autocast:
            metrics = self._measured(model)
        model.train()
        return Validation(metrics, [])

    def estimated_seconds(
        self, model: Network, autocast: torch.autocast, now: Callable[[], float]
    ) -> float | None:
        if not len(self):
            return None
        part, seconds = copy.copy(self), 0.0
        part._batches, more = self._some_batches()
        for _ in range(2):  # the first time, kernels are loaded too
            began = now()
            part.run(model, autocast)
            seconds = (now() - began) * more
        return seconds

    @torch.inference_mode()
    def _measured(self, model: Network) -> dict[str, float]:
        sums = torch.zeros(2, dtype=widest(self.device), device=self.device)
        tokens = rows = right = 0
        for batch in self._load(self._batches):
            assert isinstance(batch, TextBatch)
            found = self._answer(model, batch)
            sums += measured(model, found.hidden, found.targets)
            tokens += batch.num_tokens
            if batch.follows is not None and found.follows is not None:
                said = found.follows.argmax(dim=-1) == 0
                right += int((said == batch.follows).sum())
                rows += len(said)
        return per_token(sums, tokens) | ({"next_sentence": right / rows} if rows else {})

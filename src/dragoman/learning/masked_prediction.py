"""Objectives in which a model predicts masked or hidden tokens of a text.

masked           BERT, Devlin et al. 2019
bidirectional    ELMo, Peters et al. 2018
unilm            UniLM, Dong et al. 2019
"""

import copy
from collections.abc import Callable
from typing import Any

import torch

from dragoman.data.batch import TextBatch
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.learning.base import TRACKS, Learning
from dragoman.learning.cross_entropy import loss_and_correct, per_token
from dragoman.learning.loss import Answers, Loss, Objective
from dragoman.learning.text import FromText, other_model
from dragoman.learning.validation import SequenceValidator, Validation
from dragoman.models import Network
from dragoman.models.abilities import Abilities
from dragoman.nn.loss import projected_cross_entropy, widest
from dragoman.runs.config import RunConfig

_WITHOUT_EFFECT = {
    "label_smoothing": 0.0,
    "r_drop": 0.0,
    "teacher_forcing": 1.0,
    "activation_penalty": 0.0,
    "temporal_penalty": 0.0,
}
"""Fields without a meaning for these objectives, and their neutral values."""


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
            sums += loss_and_correct(model, found.hidden, found.targets)
            tokens += batch.num_tokens
            if batch.follows is not None and found.follows is not None:
                said = found.follows.argmax(dim=-1) == 0
                right += int((said == batch.follows).sum())
                rows += len(said)
        return per_token(sums, tokens) | ({"next_sentence": right / rows} if rows else {})


class HiddenPieces(FromText):
    def fits(self, abilities: Abilities) -> bool:
        """Whether a model supports this objective."""
        raise NotImplementedError

    def answer(self, model: Any, batch: TextBatch) -> Answers:
        """The model's outputs for the hidden tokens."""
        raise NotImplementedError

    def check_model(self, config: RunConfig, abilities: Abilities) -> None:
        if not self.fits(abilities):
            raise other_model(config)
        for field, neutral in _WITHOUT_EFFECT.items():
            if (found := getattr(config.objective, field)) != neutral:
                raise UserError(
                    f"objective.{field}: it does nothing for {self.name}, found {found}; leave it out"
                )

    def objective(self, config: RunConfig, model: Any, processes: int) -> Objective:  # noqa: ARG002
        return AnsweredPieces(self)

    def validator(
        self,
        config: RunConfig,
        prepared: Prepared,
        device: torch.device,
        tracks: int = TRACKS,  # noqa: ARG002
    ) -> AnswerValidator:
        return AnswerValidator(self, config, prepared, device, self.answer)


class AnsweredPieces(Objective):
    """−log p of the tokens to predict.

    bidirectional   −Σ_k log p(t_k | t_1 … t_{k−1}) + log p(t_k | t_{k+1} … t_N)   Peters et al. 2018, 3.1
    unilm           −Σ_k log p(t_k | the tokens visible under its mask)            Dong et al. 2019, 2.3
    """

    def __init__(self, learning: HiddenPieces) -> None:
        self.answer = learning.answer

    def __call__(self, model: Any, batch: TextBatch, update: int = 0) -> Loss:  # noqa: ARG002
        answers, projection = self.answer(model, batch), model.projection
        total, nll = projected_cross_entropy(
            answers.hidden, projection.weight, projection.bias, answers.targets, model.vocab.pad_id
        )
        return Loss(total, nll, batch.num_tokens)

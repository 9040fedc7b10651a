"""Objectives in which a model predicts masked or hidden tokens of a text.

masked           BERT, Devlin et al. 2019
bidirectional    ELMo, Peters et al. 2018
unilm            UniLM, Dong et al. 2019
"""

from typing import Any

import torch

from dragoman.data.batch import TextBatch
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.learning.answer_validation import AnswerValidator
from dragoman.learning.base import TRACKS
from dragoman.learning.loss import Answers, Loss, Objective
from dragoman.learning.text import FromText, other_model
from dragoman.models.abilities import Abilities
from dragoman.nn.loss import projected_cross_entropy
from dragoman.runs.config import RunConfig

_WITHOUT_EFFECT = {
    "label_smoothing": 0.0,
    "r_drop": 0.0,
    "teacher_forcing": 1.0,
    "activation_penalty": 0.0,
    "temporal_penalty": 0.0,
}
"""Fields without a meaning for these objectives, and their neutral values."""


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

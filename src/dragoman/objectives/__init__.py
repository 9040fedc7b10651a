"""What training minimises: Objective(model, batch, update) -> a summed loss and its count.

    pairs       cross-entropy, R-Drop            forcing     what a decoder is fed meanwhile
    alignment   one head is told where to look, beside another objective
    causal      penalties, and a state that is carried from block to block
    asked       pieces that were hidden or left out: BERT, ELMo, UniLM
    labels      classes and scores: fine-tuning, ViT

Losses are sums over target tokens; the training loop divides once per update by the tokens of the whole
update, so that accumulation and several processes give what one large batch gives.
"""

from dragoman.objectives.alignment import AlignmentGuide, GuidedAlignment, alignment_loss
from dragoman.objectives.asked import (
    ANSWERS,
    Answers,
    AskedPieces,
    MaskedLanguageModel,
    answer_blanks,
    answer_both_ways,
)
from dragoman.objectives.causal import CarriedCausal, CarriedState, PenalisedCausal, TellsDropout
from dragoman.objectives.forcing import ALWAYS, ForcingSchedule, TeacherForcing, decode_own_words
from dragoman.objectives.labels import TaskLoss, VectorLabels, task_loss
from dragoman.objectives.loss import Loss, Objective
from dragoman.objectives.pairs import CrossEntropy, RDrop

__all__ = [
    "ALWAYS",
    "ANSWERS",
    "AlignmentGuide",
    "Answers",
    "AskedPieces",
    "CarriedCausal",
    "CarriedState",
    "CrossEntropy",
    "ForcingSchedule",
    "GuidedAlignment",
    "Loss",
    "MaskedLanguageModel",
    "Objective",
    "PenalisedCausal",
    "RDrop",
    "TaskLoss",
    "TeacherForcing",
    "TellsDropout",
    "VectorLabels",
    "alignment_loss",
    "answer_blanks",
    "answer_both_ways",
    "decode_own_words",
    "task_loss",
]

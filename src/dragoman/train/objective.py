"""What a run minimises, by its configuration and its network."""

from dragoman.errors import UserError
from dragoman.models import Network
from dragoman.models.base import EncoderDecoder
from dragoman.models.heads import TaskNetwork
from dragoman.objectives import (
    AskedPieces,
    CarriedCausal,
    CrossEntropy,
    GuidedAlignment,
    MaskedLanguageModel,
    Objective,
    PenalisedCausal,
    RDrop,
    TaskLoss,
    TellsDropout,
)
from dragoman.train.config import ObjectiveConfig, RunConfig
from dragoman.train.distributed import Crew


def make_objective(config: RunConfig, model: Network | TaskNetwork, crew: Crew) -> Objective:
    if isinstance(model, TaskNetwork):
        return TaskLoss(config.objective.label_smoothing)
    if config.objective.name in ("bidirectional", "unilm"):
        return AskedPieces(config.objective.name)
    if not isinstance(model, EncoderDecoder):
        return MaskedLanguageModel()
    forcing = config.objective.forcing()
    if forcing.samples and not model.differentiable_steps:
        raise UserError(
            "objective.teacher_forcing: this model's decoder cannot learn step by step, and so not from its "
            "own words; leave it at 1, or choose a recurrent decoder (model.kind rnn, or mixed with one)"
        )
    if config.objective.r_drop:
        return RDrop(config.objective.r_drop, config.objective.label_smoothing)
    if config.objective.carry:
        return _carried(config.objective, crew)
    if config.objective.penalised:
        return _penalised(config.objective, model)
    objective = CrossEntropy(config.objective.label_smoothing, forcing)
    guide = config.objective.guided_alignment
    return GuidedAlignment(objective, guide, model) if guide.weight else objective


def _carried(config: ObjectiveConfig, crew: Crew) -> CarriedCausal:
    if crew.size > 1:
        raise UserError(
            "objective.carry: the batches of a text that is read in order cannot be dealt to several "
            "processes; start one, or set it to false"
        )
    return CarriedCausal(config.activation_penalty, config.temporal_penalty, config.label_smoothing)


def _penalised(config: ObjectiveConfig, model: EncoderDecoder) -> PenalisedCausal:
    if not isinstance(model.decoder, TellsDropout):
        raise UserError(
            "objective.activation_penalty: penalties are for model.kind ulmfit, whose decoder tells what it "
            "gives from what dropout leaves of it; set activation_penalty and temporal_penalty to 0"
        )
    return PenalisedCausal(config.activation_penalty, config.temporal_penalty, config.label_smoothing)

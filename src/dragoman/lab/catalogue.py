"""All experiments, by name."""

from dragoman.errors import UserError, did_you_mean
from dragoman.lab.experiment import Experiment
from dragoman.lab.experiments import (
    alignment,
    architectures,
    beam_curse,
    bottleneck,
    bpe_by_hand,
    copy_or_reverse,
    dot_variance,
    ensemble,
    exposure_bias,
    forgetting,
    gradient_distance,
    head_pruning,
    heads,
    label_smoothing,
    longer_than_training,
    markov,
    masks,
    norms_by_hand,
    one_hot,
    optimisers,
    order,
    permutation,
    position_similarity,
    positions_by_hand,
    positions_picture,
    pre_training,
    reach,
    saturation,
    scaled,
    scores,
    search_engine,
    search_errors,
    self_attention_by_hand,
    size_scaling,
    softmax_scale,
    step_time,
    subwords,
    teacher_forcing,
    transformer_picture,
    transition_matrix,
    warm_up,
)

_MODULES = (
    alignment,
    architectures,
    beam_curse,
    bottleneck,
    bpe_by_hand,
    copy_or_reverse,
    dot_variance,
    ensemble,
    exposure_bias,
    forgetting,
    gradient_distance,
    head_pruning,
    heads,
    label_smoothing,
    longer_than_training,
    markov,
    masks,
    norms_by_hand,
    one_hot,
    optimisers,
    order,
    permutation,
    position_similarity,
    positions_by_hand,
    positions_picture,
    pre_training,
    reach,
    saturation,
    scaled,
    scores,
    search_engine,
    search_errors,
    self_attention_by_hand,
    size_scaling,
    softmax_scale,
    step_time,
    subwords,
    teacher_forcing,
    transformer_picture,
    transition_matrix,
    warm_up,
)


def all_experiments() -> dict[str, Experiment]:
    """By name, in the order of lectures; those without training first."""
    experiments = sorted(
        (module.EXPERIMENT for module in _MODULES), key=lambda each: (each.lecture, each.trains, each.name)
    )
    return {experiment.name: experiment for experiment in experiments}


def experiment_named(name: str) -> Experiment:
    known = all_experiments()
    if name not in known:
        advice = did_you_mean(name, known) or "; list them with  dragoman lab"
        raise UserError(f"there is no experiment '{name}'{advice}")
    return known[name]

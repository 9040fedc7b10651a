"""What a configuration has to say, and may not say, where a run is fine-tuned for a task."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dragoman.data.labelled.config import LABELLED, TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.read import labels_of
from dragoman.errors import UserError
from dragoman.models.base import CountedConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.heads import HeadConfig

if TYPE_CHECKING:
    from dragoman.train.config import RunConfig

METRICS: dict[str, tuple[str, ...]] = {
    "classify": ("accuracy", "macro_f1", "f1", "matthews", "loss"),
    "pair": ("accuracy", "macro_f1", "f1", "matthews", "loss"),
    "similarity": ("pearson", "spearman", "loss"),
    "tag": ("f1", "accuracy", "loss"),
    "span": ("f1", "exact_match", "loss"),
    "choice": ("accuracy", "loss"),
}
"""What a task is judged by; the first where nobody says."""
_RATE, _RATE_FROM_SCRATCH = 5e-5, 5e-4
_EPOCHS, _EPOCHS_FROM_SCRATCH = 4, 10
_EXAMPLES_AT_ONCE = 32


def named_objective(plain: Mapping[str, Any]) -> object:
    """The objective of a task is the task."""
    objective = plain.get("objective", {})
    if plain.get("task") is None or not isinstance(objective, Mapping):
        return objective
    return {"name": "task", **objective}


def settled(task: TaskConfig, model: object) -> TaskConfig:
    """GPT reads a pair from left to right, so where none of the texts is the first it reads both orders."""
    if task.both_orders is not None:
        return task
    return dataclasses.replace(task, both_orders=task.kind == "similarity" and isinstance(model, GptConfig))


def head_config(task: TaskConfig) -> HeadConfig:
    labels = len(task.labels) if task.kind in LABELLED else 1
    both_orders = bool(task.both_orders)
    return HeadConfig(task.kind, labels, task.pooling, task.dropout, both_orders, task.layers, task.recurrent)


def check_task(config: "RunConfig", model: object) -> None:
    task, objective = config.task, config.objective
    assert task is not None, "it is checked where there is one"
    if objective.name != "task":
        raise UserError(
            f"objective.name: a task is learnt from its labels, found {objective.name}; leave it out"
        )
    if isinstance(model, CountedConfig):
        raise UserError("model.kind: a model that counts has no vectors; choose another one for a task")
    if objective.r_drop or objective.guided_alignment.weight or objective.forcing().samples:
        raise UserError(
            "objective: r_drop, guided_alignment and teacher_forcing are for pairs; leave them out"
        )
    if config.data.text:
        raise UserError("data.train: text has no labels; give a table of labelled examples")
    if config.data.shards.pairs is not None:
        raise UserError("data.shards: labelled examples are kept in memory, not in shards; leave it out")
    if config.train.metric not in METRICS[task.kind]:
        raise UserError(
            f"train.metric: the task {task.kind} has no {config.train.metric}; choose one of "
            f"{', '.join(METRICS[task.kind])}"
        )
    if config.train.metric == "f1" and task.kind in ("classify", "pair") and len(task.labels) > 2:
        raise UserError(
            f"train.metric: f1 is for 2 labels, and there are {len(task.labels)}; choose macro_f1"
        )
    if not config.tokenizer.joint or config.tokenizer.dropout:
        raise UserError(
            "tokenizer: a task has one side and one segmentation; leave joint and dropout as they are"
        )
    if task.kind in LABELLED and not task.labels:
        raise UserError("task.labels: a list of labels is required; dragoman finetune finds it in the data")
    if task.kind == "similarity" and not task.scores:
        raise UserError("task.scores: the lowest and the highest score are required; finetune finds them")
    _check_length(task, model)


def _check_length(task: TaskConfig, model: object) -> None:
    places = getattr(model, "max_positions", None)
    limited = not hasattr(model, "positions") or getattr(model, "positions", None) == "learned"
    if places is not None and limited and task.max_length > places:
        raise UserError(
            f"task.max_length: sequences of {task.max_length} pieces are longer than model.max_positions, "
            f"which is {places}; lower it"
        )


def found_in(examples: Sequence[Example], task: TaskConfig) -> dict[str, Any]:
    """Fields of the task that its training examples tell."""
    if task.kind in LABELLED and not task.labels:
        return {"labels": list(labels_of(examples, task))}
    if task.kind == "similarity" and not task.scores:
        scores = [example.target for example in examples if isinstance(example.target, float)]
        if min(scores) == max(scores):
            raise UserError(
                f"{examples[0].origin}: all examples have the score {scores[0]:g}; nothing can be learnt"
            )
        return {"scores": [min(scores), max(scores)]}
    return {}


def choose_for_task(
    examples: Sequence[Example], task: TaskConfig, max_updates: int | None, begun: bool
) -> dict[str, Any]:
    """The sections of a configuration that are not given. From a pre-trained network a few epochs at a low
    rate (Devlin et al. 2019, appendix A.3), from scratch more at a higher one."""
    pieces = sum(len(text) for example in examples for text in example.texts) // 4
    mean = min(task.max_length, max(8, pieces // len(examples) + 3))
    a_batch = max(1, min(_EXAMPLES_AT_ONCE, len(examples) // 8))
    widest = task.max_length * (max(len(e.texts) for e in examples) if task.kind == "choice" else 2)
    epochs = _EPOCHS if begun else _EPOCHS_FROM_SCRATCH
    updates = max_updates or max(50, epochs * len(examples) // a_batch)
    every = max(1, min(updates, max(20, updates // 10)))
    return {
        "tokenizer": {
            "vocab_size": 1000 if len(examples) < 2000 else 4000 if len(examples) < 20_000 else 8000
        },
        "model": {"preset": "bert-tiny"},
        "objective": {},
        "optim": {"name": "adamw", "rate": _RATE if begun else _RATE_FROM_SCRATCH, "weight_decay": 0.01},
        "schedule": {"name": "linear", "warmup": min(max(1, updates // 10), updates - 1), "total": updates},
        "train": {
            "max_updates": updates,
            "batch_tokens": max(a_batch * mean, widest),
            "log_every": max(1, every // 4),
            "validate_every": every,
            "save_every": every,
            "metric": METRICS[task.kind][0],
        },
    }

"""Fine-tuning: training on labelled examples for a task."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from dragoman.data.labelled.config import LABELLED, SCORED, VECTORS, TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.examples import Labelled
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.labelled.read import labels_of
from dragoman.errors import UserError
from dragoman.learning.base import TRACKS, Examples, Learning, Validator
from dragoman.learning.labels import TaskLoss
from dragoman.learning.loss import Objective
from dragoman.learning.task_validation import TaskValidator
from dragoman.models.abilities import Abilities
from dragoman.models.task_heads import HeadConfig
from dragoman.runs.config import Purpose, RunConfig

METRICS_OF_TASK: dict[str, tuple[str, ...]] = {
    "classify": ("accuracy", "macro_f1", "f1", "matthews", "loss"),
    "pair": ("accuracy", "macro_f1", "f1", "matthews", "loss"),
    "similarity": ("pearson", "spearman", "loss"),
    "regress": ("pearson", "spearman", "mse", "loss"),
    "tag": ("f1", "accuracy", "loss"),
    "span": ("f1", "exact_match", "loss"),
    "choice": ("accuracy", "loss"),
    "image": ("accuracy", "macro_f1", "f1", "matthews", "loss"),
    "series": ("accuracy", "macro_f1", "f1", "matthews", "loss"),
    "caption": ("exact", "bleu", "loss"),
    "forecast": ("mse", "mae", "loss"),
}
"""The metrics of each task; the first is the default."""
_RATE, _RATE_FROM_SCRATCH = 5e-5, 5e-4
_EPOCHS, _EPOCHS_FROM_SCRATCH = 4, 10
_EXAMPLES_AT_ONCE = 32
_SHOWN = 8


class LabelledTask(Learning):
    name = "task"
    learns_from = "labels"
    purpose: Purpose = "predict"
    next_step = "use it with:  dragoman predict {run}"
    unit = "targets"
    has_perplexity = False

    def run_name(self, config: RunConfig) -> str:
        return task_of(config).kind

    def settle(self, config: RunConfig, abilities: Abilities) -> RunConfig:
        """A left-to-right model reads both orders of a pair if the texts have no order."""
        task = task_of(config)
        if task.both_orders is not None:
            return config
        both = task.kind == "similarity" and abilities.pooling == "last"
        return dataclasses.replace(config, task=dataclasses.replace(task, both_orders=both))

    def check(self, config: RunConfig, abilities: Abilities) -> None:
        task, objective = config.task, config.objective
        if task is None:
            raise UserError("objective.name: task needs a section task; set task.kind, or choose another one")
        if abilities.counts:
            raise UserError("model.kind: a model that counts has no vectors; choose another one for a task")
        if objective.r_drop or objective.guided_alignment.weight or objective.forcing().samples:
            raise UserError(
                "objective: r_drop, guided_alignment and teacher_forcing are for pairs; leave them out"
            )
        if config.data.text:
            raise UserError("data.train: text has no labels; give a table of labelled examples")
        if config.data.shards.pairs is not None:
            raise UserError("data.shards: labelled examples are kept in memory, not in shards; leave it out")
        if config.train.metric not in METRICS_OF_TASK[task.kind]:
            raise UserError(
                f"train.metric: the task {task.kind} has no {config.train.metric}; choose one of "
                f"{', '.join(METRICS_OF_TASK[task.kind])}"
            )
        if config.train.metric == "f1" and task.kind != "tag" and len(task.labels) > 2:
            raise UserError(
                f"train.metric: f1 is for 2 labels, and there are {len(task.labels)}; choose macro_f1"
            )
        if not config.tokenizer.joint or config.tokenizer.dropout:
            raise UserError(
                "tokenizer: a task has one side and one segmentation; leave joint and dropout as they are"
            )
        if task.kind in LABELLED and not task.labels:
            raise UserError(
                "task.labels: a list of labels is required; dragoman finetune finds it in the data"
            )
        if task.kind in SCORED and not task.scores:
            raise UserError("task.scores: the lowest and the highest score are required; finetune finds them")
        self.check_lengths(task, abilities)

    def check_lengths(self, task: TaskConfig, abilities: Abilities) -> None:
        """Refuse a model that cannot read the examples."""
        if task.kind in VECTORS:
            raise UserError(f"objective.name: the task {task.kind} is learnt by vectors, found {self.name}")
        if abilities.vectors is not None:
            raise UserError(f"model.kind: this model reads vectors, and the task {task.kind} is about text")
        places = abilities.max_length
        if places is not None and task.max_length > places:
            raise UserError(
                f"task.max_length: sequences of {task.max_length} pieces are longer than "
                f"model.max_positions, which is {places}; lower it"
            )

    def head(self, config: RunConfig) -> HeadConfig:
        task = task_of(config)
        return HeadConfig(
            task.kind,
            len(task.labels) if task.kind in LABELLED else 1,
            task.pooling,
            task.dropout,
            bool(task.both_orders),
            task.layers,
            task.recurrent,
        )

    def examples(self, config: RunConfig, prepared: PreparedTask) -> Examples:
        return Labelled(prepared.train, task_of(config), prepared.tgt_tokenizer, prepared.corpora)

    def objective(self, config: RunConfig, model: Any, processes: int) -> Objective:  # noqa: ARG002
        return TaskLoss(config.objective.label_smoothing)

    def validator(
        self,
        config: RunConfig,
        prepared: PreparedTask,
        device: torch.device,
        tracks: int = TRACKS,  # noqa: ARG002
    ) -> Validator:
        return TaskValidator(config, task_of(config), prepared, device)

    def notes(self, examples: Examples) -> list[str]:
        if not isinstance(examples, Labelled) or not examples.cut:
            return []
        most = examples.task.max_length
        return [f"{examples.cut:,} of {len(examples):,} examples are cut to task.max_length, {most} pieces"]

    def plan_rows(self, config: RunConfig) -> list[tuple[str, str]]:
        task = task_of(config)
        shown = ", ".join(task.labels[:_SHOWN]) + (" …" if len(task.labels) > _SHOWN else "")
        rows = [("task", task.kind)]
        if task.labels:
            rows.append(("labels", f"{len(task.labels)}: {shown}"))
        if task.scores:
            rows.append(("scores", f"{task.scores[0]:g} to {task.scores[1]:g}"))
        return rows


def task_of(config: RunConfig) -> TaskConfig:
    assert config.task is not None, "the configuration is checked before"
    return config.task


def found_in(examples: Sequence[Example], task: TaskConfig) -> dict[str, Any]:
    """Fields of the task that follow from its training examples."""
    if task.kind in LABELLED and not task.labels:
        return {"labels": list(labels_of(examples, task))}
    if task.kind in SCORED and not task.scores:
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
    """Defaults of missing sections. A pre-trained network: few epochs with a low learning rate (Devlin et al.
    2019, appendix A.3); from scratch: more epochs with a higher one."""
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
            "metric": METRICS_OF_TASK[task.kind][0],
        },
    }

"""Validation of a fine-tuned network: its loss, and the metrics of its task."""

from collections.abc import Sequence
from typing import Any

import torch

from dragoman.data.labelled.config import SCORED, TaskConfig
from dragoman.data.labelled.example import AnswerSpan, Example
from dragoman.data.labelled.examples import Labelled, collate_rows
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.decode.predict import Prediction, PredictionCombiner
from dragoman.decode.search.job import by_length
from dragoman.evaluate.labels import (
    accuracy,
    answer_f1,
    entity_scores,
    exact_answer,
    f1_of,
    macro_f1,
    matthews,
    pearson,
    spearman,
    squared_error,
)
from dragoman.learning.base import Validator
from dragoman.learning.labels import task_loss
from dragoman.learning.validation import Validation
from dragoman.runs.config import RunConfig
from dragoman.runs.records import Sample


class TaskValidator(Validator):
    def __init__(
        self, config: RunConfig, task: TaskConfig, prepared: PreparedTask, device: torch.device
    ) -> None:
        self.task, self.device, self.samples = task, device, config.train.samples
        self.labelled = Labelled(prepared.valid, task, prepared.tgt_tokenizer)
        lengths = [item.length for item in self.labelled.items]
        self._batches = list(by_length(lengths, config.train.batch_tokens))

    def __len__(self) -> int:
        return len(self.labelled)

    @torch.inference_mode()
    def run(self, model: Any, autocast: torch.autocast) -> Validation:
        """Validate; the model stays in training mode."""
        model.eval()
        examples = self.labelled.examples
        answers, total, count = PredictionCombiner(examples, self.task), 0.0, 0
        for numbers in self._batches:
            items = [self.labelled.items[number] for number in numbers]
            batch = collate_rows(items, self.task).to(self.device)
            with autocast:
                scores = model(batch)
            total += float(task_loss(scores, batch, 0.0))
            count += batch.num_tokens
            answers.hear(items, scores)
        model.train()
        found = answers.predictions()
        metrics = {"loss": total / count} | task_metrics(found, examples, self.task) | model.mixture()
        return Validation(
            metrics, [_sample(*both) for both in list(zip(found, examples, strict=True))[: self.samples]]
        )


def task_metrics(
    found: Sequence[Prediction], examples: Sequence[Example], task: TaskConfig
) -> dict[str, float]:
    """Metrics of predictions for examples with known targets."""
    said, given = [prediction.value for prediction in found], [example.target for example in examples]
    if task.kind in SCORED:
        scores = [[float(value) for value in side if isinstance(value, float)] for side in (said, given)]
        own = {"mse": squared_error(*scores)} if task.kind == "regress" else {}
        return {"pearson": pearson(*scores), "spearman": spearman(*scores)} | own
    if task.kind == "choice":
        return {"accuracy": accuracy(said, given)}
    if task.kind == "span":
        return _of_answers(list(map(str, said)), examples)
    if task.kind == "tag":
        tags = [
            [list(map(str, value)) for value in side if isinstance(value, tuple)] for side in (said, given)
        ]
        return _of_tags(tags[0], tags[1], task)
    return _of_labels(list(map(str, said)), list(map(str, given)), task.labels)


def _of_labels(said: Sequence[str], given: Sequence[str], labels: Sequence[str]) -> dict[str, float]:
    """With two labels, F1 is that of the second."""
    metrics = {"accuracy": accuracy(said, given)}
    if len(labels) == 2:
        metrics["f1"] = f1_of(labels[1], said, given)
    return metrics | {"macro_f1": macro_f1(said, given, labels), "matthews": matthews(said, given)}


def _of_tags(said: Sequence[list[str]], given: Sequence[list[str]], task: TaskConfig) -> dict[str, float]:
    """F1 of entities; for other tags the mean over tags."""
    flat = [[tag for tags in side for tag in tags] for side in (said, given)]
    scores = entity_scores(said, given) if task.bio else {"f1": macro_f1(flat[0], flat[1], task.labels)}
    return scores | {"accuracy": accuracy(flat[0], flat[1])}


def _of_answers(said: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    targets = [example.target if isinstance(example.target, tuple) else () for example in examples]
    given = [[answer.text for answer in target if isinstance(answer, AnswerSpan)] for target in targets]
    size = max(1, len(given))
    return {
        "f1": sum(map(answer_f1, said, given)) / size,
        "exact_match": sum(map(exact_answer, said, given)) / size,
    }


def _sample(found: Prediction, example: Example) -> Sample:
    said = " ".join(map(str, found.value)) if isinstance(found.value, tuple) else _short(found.value)
    target = example.target
    if isinstance(target, tuple):
        target = " ".join(t.text if isinstance(t, AnswerSpan) else str(t) for t in target)
    words = " ".join if isinstance(example.target, tuple) and not isinstance(found.value, str) else " | ".join
    return Sample(words(example.texts), _short(target), said)


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)

"""Inference with a fine-tuned network: examples in, predictions out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from dragoman.data.labelled.config import SCORED, TaskConfig
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.examples import Labelled, collate_rows
from dragoman.data.labelled.layout import NOWHERE, Item
from dragoman.decode.search.job import by_length
from dragoman.models.task_heads import TaskNetwork
from dragoman.shapes import Float, Tensor
from dragoman.text.tokenizer import Tokenizer

BATCH_TOKENS = 4096
_LONGEST_ANSWER = 30
"""Largest number of tokens in an answer."""


@dataclass(frozen=True)
class Prediction:
    value: str | float | int | tuple[str, ...]
    """classify, pair: a label; similarity, regress: a score; choice: an index from 0; tag: a label for every
    word; span: the answer, empty if there is none."""
    probabilities: dict[str, float] = field(default_factory=dict)
    """Probability of every label, or of every choice by its index."""
    confidence: float | None = None
    """Probability of the prediction; for tags the mean. None for scores."""
    start: int | None = None
    """span: character offsets in the context, the end exclusive; None if there is no answer."""
    end: int | None = None

    def record(self, kind: str) -> dict[str, Any]:
        """The prediction as a JSON record, with the field name for this kind of task."""
        names = {"tag": "tags", "span": "answer", "choice": "choice", **dict.fromkeys(SCORED, "score")}
        value = list(self.value) if isinstance(self.value, tuple) else self.value
        found: dict[str, Any] = {names.get(kind, "label"): value}
        if self.confidence is not None:
            found["probability"] = self.confidence
        if self.probabilities:
            found["probabilities"] = self.probabilities
        if kind == "span":
            found |= {"start": self.start, "end": self.end}
        return found


@dataclass
class _Span:
    """The best answer so far over all parts of a context."""

    probability: float = -1.0
    start: int | None = None
    end: int | None = None


class Predictor:
    """The network of a run with its tokenizer and task."""

    def __init__(
        self, model: TaskNetwork, tokenizer: Tokenizer, task: TaskConfig, device: torch.device
    ) -> None:
        self.model, self.tokenizer, self.task, self.device = model, tokenizer, task, device

    def predict(self, examples: Sequence[Example], batch_tokens: int = BATCH_TOKENS) -> list[Prediction]:
        """Predictions, in the order of the examples."""
        labelled = Labelled(examples, self.task, self.tokenizer)
        answers = PredictionCombiner(examples, self.task)
        lengths = [item.length for item in labelled.items]
        with torch.inference_mode():
            for numbers in by_length(lengths, batch_tokens):
                items = [labelled.items[number] for number in numbers]
                answers.hear(items, self.model(collate_rows(items, self.task).to(self.device)))
        return answers.predictions()


class PredictionCombiner:
    """Combines the outputs for items (parts of long texts) into predictions for examples."""

    def __init__(self, examples: Sequence[Example], task: TaskConfig) -> None:
        self.examples, self.task = examples, task
        self._whole: list[Prediction | None] = [None] * len(examples)
        self._tags: dict[tuple[int, int], tuple[int, float]] = {}
        self._spans = [_Span() for _ in examples]

    def hear(self, items: Sequence[Item], scores: Tensor) -> None:
        scores = scores.float().cpu()
        if self.task.kind == "tag":
            self._hear_tags(items, scores)
        elif self.task.kind == "span":
            for item, row in zip(items, scores.log_softmax(dim=-1).exp(), strict=True):
                self._hear_span(item, row.numpy())
        elif self.task.kind in SCORED:
            low, high = self.task.scores
            for item, share in zip(items, scores.tolist(), strict=True):
                self._whole[item.example] = Prediction(low + share * (high - low))
        else:
            for item, row in zip(items, scores.softmax(dim=-1).tolist(), strict=True):
                self._whole[item.example] = self._labelled(item, row)

    def predictions(self) -> list[Prediction]:
        if self.task.kind == "tag":
            return [self._tagged(number, example) for number, example in enumerate(self.examples)]
        if self.task.kind == "span":
            return [
                self._answer(example, span) for example, span in zip(self.examples, self._spans, strict=True)
            ]
        return [prediction for prediction in self._whole if prediction is not None]

    def _labelled(self, item: Item, row: Sequence[float]) -> Prediction:
        best = int(np.argmax(row))
        if self.task.kind == "choice":
            named = {str(number): row[number] for number in range(len(item.rows))}
            return Prediction(best, named, row[best])
        named = dict(zip(self.task.labels, row, strict=True))
        return Prediction(self.task.labels[best], named, row[best])

    def _hear_tags(self, items: Sequence[Item], scores: Float[Tensor, "A C"]) -> None:
        found = scores.softmax(dim=-1).max(dim=-1)
        heard = zip(found.indices.tolist(), found.values.tolist(), strict=True)
        for item in items:
            for word in item.words:
                self._tags[item.example, word] = next(heard)

    def _tagged(self, number: int, example: Example) -> Prediction:
        """A word without tokens gets the first label, which is O for entities."""
        heard = [self._tags.get((number, word), (0, 0.0)) for word in range(len(example.texts))]
        mean = sum(probability for _, probability in heard) / len(heard)
        return Prediction(tuple(self.task.labels[label] for label, _ in heard), confidence=mean)

    def _hear_span(self, item: Item, row: np.ndarray) -> None:
        """The most probable first and last token of an answer, in order and not too far apart."""
        span = self._spans[item.example]
        nothing = float(row[0, NOWHERE] * row[1, NOWHERE])
        if self.task.no_answer and nothing > span.probability:
            self._spans[item.example] = _Span(nothing)
        if not len(item.places):
            return
        begins, ends = row[0, item.places], row[1, item.places]
        both = np.triu(begins[:, None] * ends[None, :])
        both = both - np.triu(both, _LONGEST_ANSWER)
        first, last = np.unravel_index(int(both.argmax()), both.shape)
        if both[first, last] > self._spans[item.example].probability:
            start, end = item.context[first].start, item.context[last].end
            self._spans[item.example] = _Span(float(both[first, last]), start, end)

    def _answer(self, example: Example, span: _Span) -> Prediction:
        if span.start is None or span.end is None:
            return Prediction("", confidence=span.probability)
        text = example.texts[1][span.start : span.end]
        return Prediction(text, confidence=span.probability, start=span.start, end=span.end)

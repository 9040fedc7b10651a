"""The task that a network is fine-tuned for, on text, images or series: the `task` part of a run's
configuration."""

from dataclasses import dataclass, field
from typing import Literal

from dragoman.config import LEFT_OUT
from dragoman.data.vectors.config import ImageInput, SeriesInput
from dragoman.errors import UserError

TaskKind = Literal[
    "classify",
    "pair",
    "similarity",
    "regress",
    "tag",
    "span",
    "choice",
    "image",
    "series",
    "forecast",
    "caption",
]
Pooling = Literal["auto", "pooler", "first", "last", "mean", "max", "concat"]
Layers = Literal["last", "embeddings", "mix"]
Column = str | int | None
LABELLED: tuple[TaskKind, ...] = ("classify", "pair", "tag", "image", "series")
"""Kinds whose answers are named labels."""
VECTORS: tuple[TaskKind, ...] = ("image", "series", "forecast", "caption")
"""Kinds whose input is vectors, not text."""
SCORED: tuple[TaskKind, ...] = ("similarity", "regress")
"""Kinds whose answers are numbers."""


@dataclass(frozen=True)
class TaskConfig:
    kind: TaskKind
    labels: tuple[str, ...] = ()
    """The labels of the task, in the order of their numbers. Taken from the training data if empty."""
    scores: tuple[float, ...] = ()
    """similarity, regress: the lowest and the highest score. Taken from the training data if empty."""
    pooling: Pooling = "auto"
    """How the vectors of a text become one. auto: the network's own default."""
    layers: Layers = "last"
    """Which layers the head reads. mix: all of them, with learned weights (ELMo)."""
    recurrent: int = 0
    """Width of a bidirectional LSTM between the network and the head. 0: no LSTM."""
    dropout: float = 0.1
    """Dropout before the last layer and before the LSTM."""
    max_length: int = 128
    """Largest number of pieces in a sequence, marks included. Longer texts are cut; words and contexts are
    divided into several sequences."""
    overlap: int | None = None
    """span: number of pieces shared by two neighbouring parts of a long context. None: a quarter of
    max_length."""
    both_orders: bool | None = None
    """pair, similarity: whether both orders of the texts are read and added up. None: yes for similarity with
    a causal network, else no."""
    no_answer: bool = False
    """span: whether a question may have no answer."""
    text: Column = None
    """Column or field of the text, the first text or the question. A number counts columns from 1."""
    second: Column = None
    """Column or field of the second text or the context."""
    label: Column = None
    image: ImageInput | None = field(default=None, metadata=LEFT_OUT)
    series: SeriesInput | None = field(default=None, metadata=LEFT_OUT)

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise UserError(f"dropout: expected a share from 0 up to 1, found {self.dropout}")
        if self.recurrent < 0 or self.recurrent % 2:
            raise UserError(f"recurrent: expected an even number, half for each side, found {self.recurrent}")
        if self.max_length < 8:
            raise UserError(f"max_length: expected a whole number of at least 8, found {self.max_length}")
        if self.overlap is not None and not 0 <= self.overlap <= self.max_length // 2:
            raise UserError(
                f"overlap: expected a number from 0 to half of max_length, which is {self.max_length}, "
                f"found {self.overlap}"
            )
        self._check_labels()
        for name, kinds in (("image", ("image", "caption")), ("series", ("series", "forecast"))):
            if getattr(self, name) is not None and self.kind not in kinds:
                raise UserError(f"{name}: it is not for the task {self.kind}; leave it out")
        for name in ("text", "second", "label"):
            column = getattr(self, name)
            if isinstance(column, int) and column < 1:
                raise UserError(f"{name}: columns are counted from 1, found {column}")

    def _check_labels(self) -> None:
        if self.labels and self.kind not in LABELLED:
            raise UserError(f"labels: the task {self.kind} has none, found {list(self.labels)}; leave it out")
        doubled = [label for label in self.labels if self.labels.count(label) > 1]
        if doubled:
            raise UserError(f"labels: '{doubled[0]}' stands there more than once")
        if self.scores and self.kind not in SCORED:
            raise UserError(f"scores: the task {self.kind} has none; leave it out")
        if self.scores and not (len(self.scores) == 2 and self.scores[0] < self.scores[1]):
            raise UserError(f"scores: expected the lowest and the highest score, found {list(self.scores)}")
        if self.both_orders and self.kind not in ("pair", "similarity"):
            raise UserError(f"both_orders: the task {self.kind} has no two orders; leave it out")

    @property
    def vectors(self) -> ImageInput | SeriesInput:
        """The input configuration of a task that reads vectors."""
        if self.kind in ("series", "forecast"):
            return self.series or SeriesInput()
        return self.image or ImageInput()

    @property
    def bio(self) -> bool:
        """Whether the tags mark entities: O, B-… and I-…."""
        return self.kind == "tag" and all(
            label == "O" or label.startswith(("B-", "I-")) for label in self.labels
        )

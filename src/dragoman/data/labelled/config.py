"""What a network is fine-tuned to say about text, images or series: the `task` part of a run's
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
"""Kinds whose answers are labels by name."""
VECTORS: tuple[TaskKind, ...] = ("image", "series", "forecast", "caption")
"""Kinds that read vectors, not text."""
SCORED: tuple[TaskKind, ...] = ("similarity", "regress")
"""Kinds whose answers are numbers."""


@dataclass(frozen=True)
class TaskConfig:
    kind: TaskKind
    labels: tuple[str, ...] = ()
    """Of all kinds that have some, in the order of their numbers. Found in the training data where none are
    given."""
    scores: tuple[float, ...] = ()
    """similarity, regress: the lowest and the highest. Found in the same way."""
    pooling: Pooling = "auto"
    """How the vectors of a text become one; auto: as the network is used to."""
    layers: Layers = "last"
    """Which layers of the network the head reads; mix: all, each by a share that is learnt (ELMo)."""
    recurrent: int = 0
    """Width of an LSTM from both sides between the network and the head; 0: none."""
    dropout: float = 0.1
    """Before the last layer, and before the LSTM."""
    max_length: int = 128
    """Pieces of a sequence, marks counted. Longer texts are cut; words and contexts go into several."""
    overlap: int | None = None
    """span: pieces that two neighbouring parts of a long context share. None: a quarter of max_length."""
    both_orders: bool | None = None
    """pair, similarity: read both orders and add them up. None: for similarity, if the network is causal."""
    no_answer: bool = False
    """span: a question may have none."""
    text: Column = None
    """Column or field of the text, of the first of two, of the question; a number counts columns from 1."""
    second: Column = None
    """Of the second text, or of the context."""
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
        """Of a kind that reads vectors."""
        if self.kind in ("series", "forecast"):
            return self.series or SeriesInput()
        return self.image or ImageInput()

    @property
    def bio(self) -> bool:
        """Whether the tags are those of entities: O, B-… and I-…."""
        return self.kind == "tag" and all(
            label == "O" or label.startswith(("B-", "I-")) for label in self.labels
        )

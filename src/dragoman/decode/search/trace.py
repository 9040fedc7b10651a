"""The trace of a beam search: the candidates of each step and their fate. Plain Python, JSON-compatible.

    step 1      step 2        step 3
    ┌ A kept ─┬ AB pruned   ┌ AC</s> ended
    │         └ AC kept ────┴ ACA stopped
    └ B pruned

The extensions that a step ranks are recorded: the 2K best of each sentence. All others are worse.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

Fate = Literal["kept", "ended", "pruned", "cut", "stopped"]
Extension = tuple[int, int, float, float]
"""The row that is extended, the token, its log-probability, and the sum."""


@dataclass(frozen=True)
class Candidate:
    """One extension of a live hypothesis."""

    parent: int
    """Index of the candidate of the previous step that it extends; −1 in the first step."""
    token: int
    piece: str | None
    """The token as text; None without a tokenizer."""
    log_prob: float
    sum: float
    """Sum of the log-probabilities from the start."""
    fate: Fate
    """kept: it continued. ended: with `</s>`, among the K best. pruned: not among the K best. cut: ended by
    the length limit. stopped: it would have continued, but the search of the sentence had ended."""


@dataclass
class Trace:
    steps: list[list[Candidate]] = field(default_factory=list)

    def path(self, step: int, index: int) -> list[Candidate]:
        """A candidate with its ancestors, from the first step on."""
        found: list[Candidate] = []
        while step >= 0:
            found.append(self.steps[step][index])
            step, index = step - 1, found[-1].parent
        return found[::-1]

    def with_pieces(self, pieces: Callable[[Sequence[int]], Sequence[str]]) -> "Trace":
        """The trace with the text of every token."""
        texts = [pieces([found.token for found in step]) for step in self.steps]
        told = (zip(step, names, strict=True) for step, names in zip(self.steps, texts, strict=True))
        return Trace([[replace(found, piece=name) for found, name in step] for step in told])

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class TraceRecorder:
    """Builds the traces of a batch while a beam search runs."""

    count: int
    width: int
    eos_id: int

    def __post_init__(self) -> None:
        self.traces = [Trace() for _ in range(self.count)]
        self._held = [[-1] for _ in range(self.count)]  # for each sentence: the candidate in each of its rows
        self._closed: set[int] = set()

    def extend(self, sentence: int, ranked: Iterable[Extension], rows: list[int], done: bool) -> None:
        """The extensions of a step, best first; `rows` gives the extension that each row holds from now
        on."""
        goes_on: Fate = "stopped" if done else "kept"
        fates: list[tuple[Extension, Fate]] = []
        for rank, extension in enumerate(ranked):
            if extension[1] == self.eos_id:
                fates.append((extension, "ended" if rank < self.width else "pruned"))
            else:
                fates.append((extension, goes_on if rank in rows else "pruned"))
        self._add(sentence, fates, done)
        self._held[sentence] = rows

    def cut(self, sentence: int, extensions: Iterable[Extension]) -> None:
        """The length limit ends every live hypothesis."""
        self._add(sentence, [(extension, "cut") for extension in extensions], done=True)

    def _add(self, sentence: int, fates: list[tuple[Extension, Fate]], done: bool) -> None:
        if sentence in self._closed:  # its rows stay idle until they leave the batch
            return
        held = self._held[sentence]
        self.traces[sentence].steps.append(
            [
                Candidate(held[row], token, None, log_prob, total, fate)
                for (row, token, log_prob, total), fate in fates
                if total > -math.inf
            ]
        )
        if done:
            self._closed.add(sentence)

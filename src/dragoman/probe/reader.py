"""The network of a run that reads (BERT, ELMo, anything fine-tuned), opened once and asked about many texts.

A text may have gaps, written `<mask>`. A pre-trained network guesses what stands there; a fine-tuned one is
asked about the text without them.
"""

from collections.abc import Mapping, Sequence

import torch

from dragoman.data.labelled.config import TaskConfig
from dragoman.decode.predict import Predictor
from dragoman.errors import UserError
from dragoman.probe.fill import GAP, Filler
from dragoman.probe.guess import Guesser, MaskedGuesser
from dragoman.probe.heads import head_counts, mask_heads
from dragoman.probe.inside import LikelyPieces
from dragoman.probe.reading import Read, read_example, read_text
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_predictor

_TEXTS = {"classify": 1, "regress": 1, "pair": 2, "similarity": 2, "span": 2}
"""Number of texts per example, by task."""


class RunReader:
    def __init__(self, run: Run, which: str = "best", device: str = "auto") -> None:
        self.predictor: Predictor | None = None
        self.filler: Filler | None = None
        if run.config.purpose == "predict":
            self.predictor = open_predictor(run, which, device)
            self.network: torch.nn.Module = self.predictor.model
            self.tokenizer = self.predictor.tokenizer
        else:
            self.filler = Filler(run, which, device)
            self.network, self.tokenizer = self.guesser.network, self.filler.tokenizer

    @property
    def task(self) -> TaskConfig | None:
        return None if self.predictor is None else self.predictor.task

    @property
    def guesser(self) -> Guesser:
        assert self.filler is not None and self.filler.guesser is not None, "it guesses"
        return self.filler.guesser

    def read(self, text: str, steps: int = 64) -> Read:
        """`steps` are the points of the integral for what each word contributes; 0 leaves it out."""
        if self.predictor is not None:
            return read_example(self.predictor, texts_of(GAP.sub("", text), self.predictor.task), steps)
        assert self.filler is not None
        return read_text(self.guesser, text, self.filler.source(text))

    def score(self, read: Read) -> float:
        """log p of what was read: of the label that was said, or of all pieces, each given the others."""
        if read.said is None:
            return sum(read.seen.token_scores)
        return 0.0 if read.log_prob is None else read.log_prob

    def importance(self, text: str) -> dict[str, list[float]]:
        """For every head by how much the score falls when it alone is off."""
        whole = self.read(text, steps=0)
        found: dict[str, list[float]] = {}
        for name, count in head_counts(self.network).items():
            for head in range(count):
                without = self.without(text, {name: [head]}, whole)
                found.setdefault(name, []).append(self.score(whole) - self.score(without))
        return found

    def without(self, text: str, heads: Mapping[str, Sequence[int]], whole: Read) -> Read:
        """Read the text with heads switched off; `log_prob` is that of the full network's answer."""
        with mask_heads(self.network, heads):
            read = self.read(text, steps=0)
        return read if whole.said is None else read.about(whole.said)

    def layers(self, text: str, place: int, count: int = 5) -> list[LikelyPieces]:
        """Predictions at a position from each layer's output, the embedding first (the logit lens,
        nostalgebraist 2020). Only for networks that predict masked pieces."""
        guesser = self.guesser
        if not isinstance(guesser, MaskedGuesser):
            raise UserError("layers: only for networks that guess what is masked, such as BERT")
        assert self.filler is not None
        ids = self.filler.source(text)
        if not 0 <= place < len(ids):
            raise UserError(f"place: {place} is not there; the text has {len(ids)} pieces")
        best = guesser.layers(ids, place).topk(count, dim=1)
        return [
            tuple(zip(pieces, values, strict=True))
            for pieces, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]


def texts_of(text: str, task: TaskConfig) -> list[str]:
    """Split the input of a task: one text, two separated by a tab, or words."""
    texts = text.split() if task.kind == "tag" else text.split("\t")
    needed = _TEXTS.get(task.kind)
    if needed is not None and len(texts) != needed:
        raise UserError(
            f"this run expects {needed} text{'s' * (needed > 1)} with a tab between them, found {text!r:.60}"
            if needed > 1
            else f"this run expects one text without a tab, found {text!r:.60}"
        )
    return texts

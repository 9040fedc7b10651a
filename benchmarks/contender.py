"""A model that learns from batches and translates them: one of ours, or a peer's in the same clothes."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from common import SMOOTHING, interleave, median, stepper
from dragoman.data.batch import PairBatch, unpadded
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import Job
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import search
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.models import build_model
from dragoman.models.base import Vocab

DROPOUT = 0.1
FORCED = 20
"""Pieces of every translation: weights are random, so no model would end where a sentence ends."""
BEAMS = (4, 1)


@dataclass(frozen=True)
class Contender:
    model: nn.Module
    learn: Callable[[PairBatch], None]
    decode: Callable[[PairBatch, int], object]
    """Translations of a batch with a beam of the given width, `FORCED` pieces and the end."""

    @property
    def num_parameters(self) -> int:
        return count_parameters(self.model)

    def training_speed(self, batches: Sequence[PairBatch]) -> float:
        """Target tokens a second."""
        self.model.train().requires_grad_(True)
        began = time.perf_counter()
        for batch in batches:
            self.learn(batch)
        return sum(batch.num_tokens for batch in batches) / (time.perf_counter() - began)

    def decoding_speed(self, batches: Sequence[PairBatch], beam: int) -> float:
        """Sentences a second, with weights that are frozen, as those of a loaded model are."""
        self.model.eval().requires_grad_(False)
        began = time.perf_counter()
        for batch in batches:
            self.decode(batch, beam)
        return sum(len(batch.src_ids) for batch in batches) / (time.perf_counter() - began)


def count_parameters(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def ours(kind: str, config: object, vocab: Vocab) -> Contender:
    """A model of the package. One that has no gradients learns by counting, which is timed alike."""
    model = build_model(kind, config, vocab)
    count = getattr(model, "count", None)
    objective = CrossEntropy(SMOOTHING)
    settings = {
        beam: BeamSearch(beam=beam, max_ratio=0, max_extra=FORCED + 1, min_length=FORCED, loop_guard=False)
        for beam in BEAMS
    }
    return Contender(
        model,
        stepper(model, lambda batch: objective(model, batch).total)
        if count is None
        else lambda batch: count([batch]),
        lambda batch, beam: search(
            Scorer([model]),
            [Job(tuple(source)) for source in unpadded(batch.src_ids, batch.src_mask)],
            settings[beam],
        ),
    )


def measure(
    contenders: dict[str, Contender],
    training: Sequence[PairBatch],
    decoding: Sequence[PairBatch],
    rounds: int,
) -> dict[str, list[float]]:
    """For each contender the medians of training speed and of decoding speed with each of `BEAMS`."""
    found: dict[str, list[float]] = {name: [] for name in contenders}

    def take(title: str, speed_of: Callable[[Contender], float]) -> None:
        print(title, flush=True)
        for contender in contenders.values():
            speed_of(contender)  # warm up
        turns = {name: lambda it=it: speed_of(it) for name, it in contenders.items()}
        for name, speeds in interleave(rounds, turns).items():
            found[name].append(median(speeds))

    take("training, target tokens/s", lambda it: it.training_speed(training))
    for beam in BEAMS:
        take(f"decoding, beam {beam}, sentences/s", lambda it, beam=beam: it.decoding_speed(decoding, beam))
    return found

"""The loss of a model that only knows token frequencies."""

from collections.abc import Iterator

import numpy as np

from dragoman.data.batch import PairBatch, TextBatch
from dragoman.data.packed import Batch
from dragoman.learning.base import Examples

_EXAMPLES = 20_000
_AT_ONCE = 1_000


def frequency_loss(train: Examples, valid: Examples, vocab_size: int) -> float:
    """The loss of predicting token frequencies alone, in nats per token:

        −1/n Σ_i log p(y_i),   y of the validation set, p the token frequencies of the training data

    Every network learns these frequencies first. A deep one with too high a learning rate, too short a warm-
    up or too much dropout may get stuck there: its loss stays at this value. For long data, evenly spaced
    examples are used; frequencies are smoothed.
    """
    counts = np.ones(vocab_size)
    for ids in _asked(train):
        counts += np.bincount(ids, minlength=vocab_size)
    surprise = np.log(counts.sum()) - np.log(counts)
    asked = np.concatenate(list(_asked(valid)))
    return float(surprise[asked].mean())


def _asked(examples: Examples) -> Iterator[np.ndarray]:
    numbers = np.unique(np.linspace(0, len(examples) - 1, _EXAMPLES).astype(np.int64))
    for begin in range(0, len(numbers), _AT_ONCE):
        yield _targets(examples.batch(numbers[begin : begin + _AT_ONCE], epoch=0))


def _targets(batch: Batch) -> np.ndarray:
    if isinstance(batch, PairBatch):
        return batch.tgt_out[batch.tgt_mask].numpy()
    assert isinstance(batch, TextBatch), "labels have no frequencies of pieces"
    return batch.targets.numpy()

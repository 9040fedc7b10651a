"""What to train where nobody has said: a pure function of the corpus and the machine.

| pairs     | model on a GPU | on a CPU | pieces | dropout |
|-----------|----------------|----------|--------|---------|
| < 2,000   | tiny           | tiny     |  1,000 | 0.3     |
| < 10,000  | tiny           | tiny     |  4,000 | 0.3     |
| < 100,000 | tiny           | tiny     |  8,000 | 0.3     |
| < 500,000 | small          | small    | 16,000 | 0.2     |
| < 20 M    | base           | small    | 32,000 | 0.1     |
| more      | big            | small    | 32,000 | 0.1     |

A small corpus wants a small, well-regularised model and many epochs (Araabi & Monz 2020); a large one is
limited by what the machine can do in the time.
"""

import os
from dataclasses import dataclass
from typing import Any

from dragoman.data.config import DataConfig
from dragoman.data.formats import read_pairs
from dragoman.data.formats.lines import metered
from dragoman.data.scan import REPORT_EVERY, Progress
from dragoman.learning import LEARNING, Learning

_GIB = 1 << 30
_PAIRS = LEARNING["translate"]


@dataclass(frozen=True)
class CorpusStats:
    pairs: int
    characters: int
    """Of the longer side."""
    longest: int = 0
    """Characters of the longest sentence."""

    @property
    def tokens(self) -> int:
        """A rough number of pieces: what a vocabulary of some thousand makes of text."""
        return max(1, self.characters // 4) + self.pairs


@dataclass(frozen=True)
class Machine:
    cores: int
    gpu_bytes: int = 0
    """0 where there is no GPU."""


@dataclass(frozen=True)
class _Size:
    preset: str
    rate: float
    batch_tokens: int
    """Tokens that one update learns from."""
    gpu_bytes_per_token: int
    """Memory that one token of a batch takes in training, in bf16 with some room to spare."""


_SIZES = {
    "tiny": _Size("transformer-tiny", 2e-3, 4096, 100_000),
    "small": _Size("transformer-small", 1e-3, 8192, 200_000),
    "base": _Size("transformer-base", 7e-4, 25_000, 600_000),
    "big": _Size("transformer-big", 5e-4, 25_000, 1_500_000),
}
_VOCABULARY = ((2_000, 1000), (10_000, 4000), (100_000, 8000), (500_000, 16_000))
_DROPOUT = ((100_000, 0.3), (500_000, 0.2))
_EPOCHS = ((10_000, 200), (100_000, 100), (500_000, 40), (5_000_000, 20))
_MOST_UPDATES = {"gpu": 100_000, "cpu": 20_000}


def measure(data: DataConfig, progress: Progress | None = None) -> CorpusStats:
    """Count the training corpora, in one pass over their files."""
    pairs = src = tgt = longest = 0
    read = 0
    with metered(file for source in data.train for file in source.files) as meter:
        for source in data.train:
            found = 0
            for pair in read_pairs(source, data.src_lang, data.tgt_lang):
                found += 1
                src += len(pair.src)
                tgt += len(pair.tgt)
                longest = max(longest, len(pair.src), len(pair.tgt))
                if progress and (read + found) % REPORT_EVERY == 0:
                    progress("reading the corpus", read + found, meter.expected(read + found))
            read += found
            pairs += round(found * source.weight)
    return CorpusStats(pairs, max(src, tgt), longest)


def this_machine(device: str = "auto") -> Machine:
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if device == "cpu" or not torch.cuda.is_available():
        return Machine(cores)
    return Machine(cores, torch.cuda.get_device_properties(0).total_memory)


def choose(
    stats: CorpusStats, machine: Machine, max_updates: int | None = None, learning: Learning = _PAIRS
) -> dict[str, Any]:
    """The sections of a configuration that are not given, as plain data.

    Where the number of updates is given, what depends on it follows: warm-up, validation, averaging.
    """
    size = _SIZES[_model_size(stats.pairs, machine)]
    batch_tokens, accumulate = _batch(size, stats, machine)
    updates_per_epoch = max(1, stats.tokens // (batch_tokens * accumulate))
    epochs = _step(_EPOCHS, stats.pairs, 10)
    most = _MOST_UPDATES["gpu" if machine.gpu_bytes else "cpu"]
    updates = max_updates or _round(min(most, max(500, epochs * updates_per_epoch)))
    every = _round(min(max(100, updates // 20), 5000, -(-updates // 2)))
    warmup = min(max(100, updates // 10), 4000, updates // 2)
    chosen = {
        "tokenizer": {"vocab_size": _step(_VOCABULARY, stats.pairs, 32_000)},
        "model": {"preset": size.preset, "dropout": _step(_DROPOUT, stats.pairs, 0.1)},
        "objective": {"label_smoothing": 0.1},
        "optim": {"name": "adam", "rate": size.rate},
        "schedule": {"name": "inverse_sqrt", "warmup": _round(warmup)},
        "train": {
            "max_updates": updates,
            "batch_tokens": batch_tokens,
            "accumulate": accumulate,
            "ema": 0.999 if updates >= 5000 else 0.99,
            "log_every": max(1, min(100, every // 10)),
            "validate_every": every,
            "save_every": every,
            "metric": "bleu",
            "patience": 10,
        },
    }
    if learning.learns_from != "pairs":
        if preset := learning.preset(gpu=bool(machine.gpu_bytes)):
            chosen["model"] = {"preset": preset}
        chosen["objective"] = {}
        chosen["train"]["metric"] = "loss"
    return chosen


def _model_size(pairs: int, machine: Machine) -> str:
    if pairs < 100_000:
        return "tiny"
    if not machine.gpu_bytes or pairs < 500_000:
        return "small"
    return "big" if pairs >= 20_000_000 and machine.gpu_bytes >= 40 * _GIB else "base"


def _batch(size: _Size, stats: CorpusStats, machine: Machine) -> tuple[int, int]:
    """Tokens a batch and batches an update: what fits into memory, and about fifty updates an epoch."""
    wanted = min(size.batch_tokens, max(1024, stats.tokens // 50))
    fits = machine.gpu_bytes // (2 * size.gpu_bytes_per_token) if machine.gpu_bytes else 4096
    accumulate = -(-wanted // max(1024, fits))
    return _round(wanted // accumulate), accumulate


def _step(table: tuple[tuple[int, Any], ...], pairs: int, otherwise: Any) -> Any:
    return next((value for limit, value in table if pairs < limit), otherwise)


def _round(number: int) -> int:
    """Two leading digits: 13,742 becomes 13,000."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return number // unit * unit

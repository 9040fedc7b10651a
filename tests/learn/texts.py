"""Texts that a small model of the Transformer's kin can learn, and runs that learn them."""

from pathlib import Path
from typing import Any

from dragoman.data.corpus import prepare
from dragoman.learning.resolve import resolve
from dragoman.runs.directory import Run
from dragoman.training.display import Quiet
from dragoman.training.session import train_run

SMALL = {
    "num_layers": 1,
    "model_dim": 32,
    "num_heads": 2,
    "ff_dim": 64,
    "max_positions": 32,
    "dropout": 0,
    "attention_dropout": 0,
}
WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]


def stretches_of_one_word(directory: Path) -> Path:
    """A stretch of text has one word for everything: what is hidden is what is seen."""
    text = directory / "text.txt"
    stretches = [WORDS[(3 * n + n // 8) % 8] for n in range(75)]
    text.write_text("".join(f"{word} {word} {word} {word}\n" * 16 for word in stretches), "utf-8")
    return text


def learnt(
    directory: Path, data: dict[str, Any], kind: str, objective: dict[str, Any], updates: int, batch: int
) -> Run:
    """A small model of this kind after so many updates, validated once at their end."""
    config = resolve(
        {
            "data": data,
            "tokenizer": {"kind": "word", "vocab_size": 300},
            "model": {"kind": kind, **SMALL},
            "objective": objective,
            "optim": {"rate": 1e-2},
            "schedule": {"name": "cosine", "warmup": 20},
            "train": {
                "max_updates": updates,
                "batch_tokens": batch,
                "validate_every": updates,
                "device": "cpu",
            },
        }
    )
    prepared = prepare(config.data, config.tokenizer, seed=1, cache=directory / "cache")
    run = Run.create(directory / "run", config, prepared)
    train_run(run, Quiet())
    return run


def text_source(text: Path) -> dict[str, Any]:
    return {"files": [str(text)], "format": "text"}


def learnt_stretches(directory: Path, kind: str, objective: dict[str, Any], updates: int) -> Run:
    """One that has to guess what the words of a stretch are."""
    data = {"train": [text_source(stretches_of_one_word(directory))], "valid_size": 120}
    return learnt(directory, data, kind, {"block": 24, **objective}, updates, batch=1024)


def accuracy_of(run: Run) -> float:
    (valid,) = [record for record in run.metrics if record["kind"] == "valid"]
    return valid["accuracy"]

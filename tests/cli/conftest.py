"""A small task, and runs that are really trained on it."""

from collections.abc import Callable
from pathlib import Path

import pytest

import dragoman

WORDS = ["red", "blue", "old", "new", "cat", "dog", "fish", "hill"]
SETTINGS = {
    "tokenizer.vocab_size": 320,
    "model.num_layers": 1,
    "model.model_dim": 32,
    "model.dropout": 0.0,
    "train.max_updates": 120,
    "train.validate_every": 120,
    "train.batch_tokens": 400,
    "optim.rate": 0.005,
    "schedule.warmup": 10,
}
TRANSFORMER = {"model.num_heads": 2, "model.ff_dim": 64}


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    texts = [f"the {a} {b} and a {c}" for a in WORDS[:4] for b in WORDS[4:] for c in WORDS[4:]]
    return [(text, text.upper()) for text in texts]


@pytest.fixture(scope="session")
def train_small(pairs: list[tuple[str, str]]) -> Callable[..., Path]:
    """A function that trains a run below a directory, a Transformer unless it is told another model."""

    def train(directory: Path, name: str = "run", **model: object) -> Path:
        table = directory / "pairs.tsv"
        table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
        chosen = {f"model.{field}": value for field, value in model.items()} or TRANSFORMER
        trained = dragoman.train(table, out=directory / name, overrides=SETTINGS | chosen, quiet=True)
        return trained.directory

    return train

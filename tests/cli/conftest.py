"""A small task, words in capitals, and runs for it. The Transformer has given weights, so what it says does
not depend on how this machine rounds; other models are hardly trained, and no test asks what they learnt."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import dragoman
from drafted import make_config
from dragoman.training.display import NoDisplay
from given import MODEL, STILL, begin

WORDS = ["red", "blue", "old", "new", "cat", "dog", "fish", "hill"]
SETTINGS = {
    "tokenizer.vocab_size": 320,
    "train.max_updates": 12,
    "train.validate_every": 6,
    "train.log_every": 4,
    "train.batch_tokens": 400,
    "schedule.warmup": 10,
}
GIVEN = {f"model.{name}": value for name, value in MODEL.items()}
GIVEN |= {"optim.rate": STILL["rate"], "train.ema": 0}
OTHER = {"model.model_dim": 32, "model.dropout": 0.0, "optim.rate": 0.005}


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    texts = [f"the {a} {b} and a {c}" for a in WORDS[:4] for b in WORDS[4:] for c in WORDS[4:]]
    return [(text, text.upper()) for text in texts]


@pytest.fixture(scope="session")
def train_small(pairs: list[tuple[str, str]]) -> Callable[..., Path]:
    """A function that trains a run below a directory: a Transformer with given weights unless it is told
    another model. That one is trained once, and copied."""
    trained: list[Path] = []

    def train(directory: Path, name: str = "run", **model: object) -> Path:
        table = directory / "pairs.tsv"
        table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
        chosen = OTHER | {f"model.{field}": value for field, value in model.items()}
        overrides = SETTINGS | (chosen if model else GIVEN)
        if not model and trained:
            return shutil.copytree(trained[0], directory / name)
        if not model:
            config = make_config([str(table)], overrides=overrides, valid=[], display=NoDisplay())
            overrides["start"] = str(begin(directory / f"{name}-given", config, pairs))
        run = dragoman.train(table, out=directory / name, overrides=overrides, quiet=True).directory
        if not model:
            trained.append(run)
        return run

    return train

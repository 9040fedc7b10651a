"""A toy corpus (words, and the same letters backwards in capitals) and a Transformer that is as small."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.config import apply_overrides
from dragoman.data.corpus import Prepared, prepare
from dragoman.train.config import RunConfig, resolve
from dragoman.train.display import Quiet
from dragoman.train.run import Run
from dragoman.train.session import train_run

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Tensors this small only wait for each other in two threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def toy_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        words = [
            "".join(chance.choices("abcde", k=chance.randint(1, 3))) for _ in range(chance.randint(1, 4))
        ]
        text = " ".join(words)
        found[text] = text[::-1].upper()
    return list(found.items())


def write_pairs(directory: Path, pairs: list[tuple[str, str]], stem: str = "a") -> tuple[str, str]:
    paths = directory / f"{stem}.en", directory / f"{stem}.de"
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("\n".join(side) + "\n", encoding="utf-8")
    return str(paths[0]), str(paths[1])


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_pairs(tmp_path_factory.mktemp("corpus"), toy_pairs(160))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="session")
def plain(corpus: tuple[str, str]) -> dict[str, Any]:
    """A whole configuration as YAML would hold it."""
    return {
        "seed": 5,
        "data": {"train": [{"files": list(corpus)}], "src_lang": "en", "tgt_lang": "de", "valid_size": 16},
        "tokenizer": {"vocab_size": 300},
        "model": {"num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 32, "dropout": 0.1},
        "optim": {"rate": 3e-3},
        "schedule": {"warmup": 10},
        "train": {
            "max_updates": 20,
            "batch_tokens": 200,
            "log_every": 4,
            "validate_every": 8,
            "save_every": 5,
            "validate_sentences": 4,
            "device": "cpu",
        },
    }


@pytest.fixture(scope="session")
def make_config(plain: dict[str, Any]) -> MakeConfig:
    def make(*overrides: str) -> RunConfig:
        return resolve(apply_overrides(plain, overrides))

    return make


@pytest.fixture(scope="session")
def prepared(make_config: MakeConfig, cache: Path) -> Prepared:
    config = make_config()
    return prepare(config.data, config.tokenizer, seed=config.seed, cache=cache)


@pytest.fixture
def make_run(tmp_path: Path, make_config: MakeConfig, prepared: Prepared) -> MakeRun:
    """A new run in its own directory; trained unless told otherwise."""

    def make(*overrides: str, name: str = "run", train: bool = True) -> Run:
        run = Run.create(tmp_path / name, make_config(*overrides), prepared)
        if train:
            train_run(run, Quiet())
        return run

    return make

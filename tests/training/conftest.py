"""Runs on the toy corpus."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.config import apply_overrides
from dragoman.data.corpus import Prepared, prepare
from dragoman.learning.resolve import resolve_config
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from toy import toy_config, toy_pairs, write_pairs

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Tensors this small only wait for each other in two threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return write_pairs(tmp_path_factory.mktemp("corpus"), toy_pairs(160))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prepared")


@pytest.fixture(scope="session")
def plain(corpus: tuple[str, str]) -> dict[str, Any]:
    """A whole configuration as YAML would hold it."""
    return toy_config(corpus)


@pytest.fixture(scope="session")
def make_config(plain: dict[str, Any]) -> MakeConfig:
    def make(*overrides: str) -> RunConfig:
        return resolve_config(apply_overrides(plain, overrides))

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
            train_run(run, NoDisplay())
        return run

    return make

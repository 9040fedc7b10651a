"""The smallest run there is, trained once, and everything that writes beside it."""

from collections.abc import Callable, Iterator
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
TINY = {
    "tokenizer": {"vocab_size": 280},
    "model": {"num_layers": 1, "model_dim": 8, "num_heads": 2, "ff_dim": 8, "position_layout": "halves"},
    "search": {"beam": 1, "max_ratio": 1.0, "max_extra": 1},
    "train": {
        "max_updates": 4,
        "batch_tokens": 120,
        "log_every": 1,
        "validate_every": 2,
        "save_every": 1,
        "validate_sentences": 2,
        "device": "cpu",
    },
}


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A whole configuration as YAML would hold it."""
    return toy_config(write_pairs(tmp_path_factory.mktemp("corpus"), toy_pairs(40))) | TINY


@pytest.fixture(scope="session")
def make_config(plain: dict[str, Any]) -> MakeConfig:
    return lambda *overrides: resolve_config(apply_overrides(plain, overrides))


@pytest.fixture(scope="session")
def prepared(make_config: MakeConfig, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    config = make_config()
    cache = tmp_path_factory.mktemp("prepared")
    return prepare(config.data, config.tokenizer, seed=config.seed, cache=cache)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory, make_config: MakeConfig, prepared: Prepared) -> Run:
    """To be copied, not changed."""
    run = Run.create(tmp_path_factory.mktemp("trained") / "run", make_config(), prepared)
    train_run(run, NoDisplay())
    return run

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import pairs, train_small

__all__ = ["pairs", "train_small"]


@pytest.fixture(scope="session")
def small_run(train_small: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_small(tmp_path_factory.mktemp("cluster"))

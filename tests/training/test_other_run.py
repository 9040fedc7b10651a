"""A second experiment in the directory of the first is told what is there, in words."""

from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.training.api import train
from toy import toy_config, toy_pairs, write_pairs


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    config = toy_config(write_pairs(folder, toy_pairs(60)))
    config["train"] |= {"max_updates": 1, "validate_sentences": 0}
    train(config, out=folder / "run", quiet=True)
    return folder


def test_other_data_are_named(run: Path, tmp_path: Path) -> None:
    other = toy_config(write_pairs(tmp_path, toy_pairs(60, seed=2), "b"))
    with pytest.raises(UserError, match=r"run is a run on .*a\.en, .*a\.de; use another directory") as told:
        train(other, out=run / "run", quiet=True)
    assert "{" not in str(told.value) and "dragoman resume" in str(told.value)


def test_other_fields_are_listed(run: Path) -> None:
    other = toy_config((str(run / "a.en"), str(run / "a.de")))
    other["train"] |= {"max_updates": 1, "validate_sentences": 0}
    other["model"] |= {"num_layers": 2, "dropout": 0.3}
    told = r"model\.num_layers is 1 there and 2 here, model\.dropout is 0\.1 there and 0\.3 here"
    with pytest.raises(UserError, match=told):
        train(other, out=run / "run", quiet=True)

"""Beam and length penalty of a published model: taken over where they mean something here."""

import json
from pathlib import Path
from typing import Any

import pytest

from checkpoint.huggingface.published import save
from dragoman.checkpoint.huggingface.read import read_model


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("published")
    save("bart", directory)
    return directory


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        ({"num_beams": 5, "length_penalty": 0.6}, {"beam": 5, "alpha": 0.6}),
        ({"num_beams": 1, "length_penalty": 0}, {"alpha": 0.0}),
        ({"num_beams": 2, "length_penalty": 20.0}, {"beam": 2}),
        ({"num_beams": 2, "early_stopping": True}, {"beam": 2, "stop": "complete"}),
        ({"num_beams": 2, "early_stopping": False}, {"beam": 2}),
        ({"num_beams": 2, "early_stopping": "never"}, {"beam": 2, "stop": "bound"}),
        ({"length_penalty": -1.0}, {}),  # short ones are favoured without a limit: there is no such alpha
    ],
)
def test_what_is_taken_over(published: Path, said: dict[str, Any], taken: dict[str, Any]) -> None:
    (published / "generation_config.json").write_text(json.dumps(said))
    assert read_model(published).search == taken


def test_what_is_said_of_generation_goes_before_what_is_said_of_the_model(published: Path) -> None:
    path = published / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_beams": 7, "length_penalty": 0.1}))
    (published / "generation_config.json").write_text(json.dumps({"num_beams": 5}))
    assert read_model(published).search == {"beam": 5, "alpha": 0.1}

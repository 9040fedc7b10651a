"""Files of a model that are replaced or damaged while it is served: the model that was loaded goes on, and
the next start says which file is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.cli.translators import open_directed
from dragoman.errors import UserError
from dragoman.serve.service import Served, Service
from dragoman.training.api import train
from serve.exported import small_export
from serve.standin import client_of
from toy import toy_config, toy_pairs, write_pairs

TEXTS = ["the cat sat on the mat", "a dog ran", "abc de ab", "under the red mat"]


@pytest.fixture(scope="module", params=["export", "run"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    if request.param == "export":
        return small_export(folder / "export")
    config = toy_config(write_pairs(folder, toy_pairs(40)))
    config["train"] |= {"max_updates": 1, "validate_every": 1, "save_every": 1, "validate_sentences": 2}
    train(config | {"search": {"min_length": 3}}, out=folder / "run", quiet=True)
    return folder / "run"


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def other_bytes(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(bytes(byte ^ 0xFF for byte in data[:4096]) + data[4096:])


def removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [emptied, other_bytes, removed])
def test_the_model_that_was_loaded_goes_on(model: Path, damage: Callable[[Path], None]) -> None:
    files = {path: path.read_bytes() for path in model.rglob("*") if path.is_file()}
    opened = open_directed(model, [], "best", "cpu")
    service = Service([Served(opened.languages, opened.translator)])
    source, target = opened.languages
    asked = {"source": source, "target": target}
    try:
        with client_of(service) as client:
            before = client.post("/translate", json={**asked, "q": TEXTS[:1]}).json()
            for path in files:
                damage(path)
            after = client.post("/translate", json={**asked, "q": TEXTS}).json()
            assert after["translatedText"][:1] == before["translatedText"]
            assert len(after["translatedText"]) == len(TEXTS)
            for path, data in files.items():
                if path.name not in ("model.bin", "model.safetensors"):
                    path.write_bytes(data)
            with pytest.raises(UserError, match=r"model\.(bin|safetensors)"):
                open_directed(model, [], "best", "cpu")
    finally:
        for path, data in files.items():
            path.write_bytes(data)
    assert len(open_directed(model, [], "best", "cpu").translator.translate(TEXTS)) == len(TEXTS)

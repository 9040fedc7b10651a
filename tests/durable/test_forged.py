"""Runs and exports whose files say something else than they did: with matching hashes, and without."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from checkpoint.huggingface.published import save
from dragoman import checkpoint
from dragoman.checkpoint.huggingface import export_huggingface
from dragoman.checkpoint.huggingface.files import MANIFEST, NOT_VERIFIED
from dragoman.checkpoint.huggingface.read import read_model
from dragoman.checkpoint.model import load_model, load_network
from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.runs.directory import Run
from limited import within


def forge(run: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """The newest checkpoint with another state, and hashes that fit it."""
    saved = checkpoint.load_checkpoint(run / "checkpoints" / checkpoint.names(run / "checkpoints")[-1])
    state = json.loads(json.dumps(saved.state))
    change(state)
    tensors = {part: saved.read(part) for part in saved.parts}
    (run / "best.json").unlink(missing_ok=True)
    shutil.rmtree(run / "checkpoints")
    checkpoint.save(run / "checkpoints", saved.name, tensors, state)


@pytest.mark.parametrize("value", [10**6, 10**9, 10**12, 10**20])
@pytest.mark.parametrize(
    ("part", "name"),
    [
        ("config", "model_dim"),
        ("config", "num_layers"),
        ("config", "ff_dim"),
        ("vocab", "src_size"),
        ("vocab", "tgt_size"),
    ],
)
def test_a_model_takes_no_memory_for_sizes_that_its_tensors_do_not_have(
    trained: Run, tmp_path: Path, part: str, name: str, value: int
) -> None:
    run = shutil.copytree(trained.directory, tmp_path / "run")
    forge(run, lambda state: state["model"][part].update({name: value}))

    def opened() -> str:
        try:
            load_model(run)
        except UserError as error:
            return str(error)
        return ""

    told = within(400, opened)
    assert told and "\n" not in told


@pytest.mark.parametrize("kind", ["marian", "bart"])
@pytest.mark.parametrize(
    "fields",
    [
        {"vocab_size": 10**9, "decoder_vocab_size": 10**9},
        {"encoder_layers": 10**8, "decoder_layers": 10**8},
        {"d_model": 10**7},
        {"encoder_ffn_dim": 10**12, "decoder_ffn_dim": 10**12},
        {"encoder_attention_heads": 10**9, "decoder_attention_heads": 10**9},
        {"model_type": ["marian"]},
        {"model_type": {}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_published_model_takes_no_memory_for_what_its_configuration_says(
    tmp_path: Path, kind: str, fields: dict[str, Any]
) -> None:
    save(kind, tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))

    def opened() -> str:
        try:
            read_model(tmp_path)
        except UserError as error:
            return str(error)
        return ""

    told = within(400, opened)
    assert told and "\n" not in told


@pytest.fixture(scope="module")
def exported(trained: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("exported") / "hf"
    return export_huggingface(load_network(trained.directory), out)


def test_no_changed_file_of_an_export_is_imported(exported: Path, tmp_path: Path) -> None:
    files = [path.relative_to(exported) for path in sorted(exported.rglob("*")) if path.is_file()]
    assert len(files) > 5
    for name in files:
        copy = shutil.copytree(exported, tmp_path / "hf")
        data = bytearray((copy / name).read_bytes())
        data[len(data) // 2] ^= 1
        (copy / name).write_bytes(data)
        done = CliRunner().invoke(app, ["import", str(copy), "--out", str(tmp_path / "run")])
        assert isinstance(done.exception, UserError), name
        assert str(name) in str(done.exception)
        assert not (tmp_path / "run").exists()
        shutil.rmtree(copy)


def test_without_hashes_an_import_says_that_it_could_not_verify(exported: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(exported, tmp_path / "hf")
    command = ["import", str(copy), "--out"]
    assert NOT_VERIFIED not in CliRunner().invoke(app, [*command, str(tmp_path / "one")]).output
    (copy / MANIFEST).unlink()
    assert NOT_VERIFIED in CliRunner().invoke(app, [*command, str(tmp_path / "two")]).output

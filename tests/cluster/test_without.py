"""Without the extra: one sentence, which says what to install. Without PyTorch: exports on a cluster."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.cluster.on_ray import open_cluster
from dragoman.cluster.storage import StoragePlace
from dragoman.errors import UserError


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("ray", "fsspec"):
        monkeypatch.setitem(sys.modules, module, None)
    with (
        pytest.raises(UserError, match=r"--cluster needs the package 'ray': install it with  pip .*cluster"),
        open_cluster("local", print),
    ):
        pass
    with pytest.raises(UserError, match=r"s3://b/run needs the package 'fsspec': install it with  pip .*"):
        StoragePlace("s3://b/run")


PROGRAM = """
import contextlib, sys
sys.modules["torch"] = None
from dragoman.cluster import on_ray
class Here:
    def device(self, device):
        return "cpu"
    def map(self, work, chunks, device, begun):
        return map(work.open(), chunks)
on_ray.open_cluster = lambda address, tell: contextlib.nullcontext(Here())
from dragoman.cli.main import app
app(sys.argv[1:])
"""
"""A cluster without Ray: what a worker does, without PyTorch."""


def test_an_export_needs_no_pytorch(small_run: Path, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2")
    export, text = tmp_path / "export", tmp_path / "text"
    result = CliRunner().invoke(app, ["export", str(small_run), "--out", str(export)])
    assert result.exit_code == 0, result.output
    text.write_text("the red cat and a dog\nthe old fish\n", encoding="utf-8")
    command = ["translate", str(export), "--input", str(text), "--cluster", "here", "--out"]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command, str(tmp_path / "out")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out").read_text("utf-8").splitlines()) == 2

"""`dragoman doctor`: it fits on a screen, needs no torch, and its advice follows from what it found."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dragoman.cli import doctor
from dragoman.cli.main import app
from dragoman.extras import EXTRAS, extra_of

ROOT = Path(__file__).parents[2]
WITHOUT_TORCH = "import sys; sys.modules['torch'] = None\nfrom dragoman.cli.main import main\nmain()"


def test_one_screen_of_80_columns() -> None:
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert len(lines) <= 45
    assert [line for line in lines if len(line) > 80 and "pip install" not in line] == []
    for name in ("versions", "extras", "CPU", "GPU", "temp", "cache", "open files"):
        assert any(line.startswith(name) for line in lines), name


def test_json_has_the_kernels_with_their_reasons() -> None:
    found = json.loads(CliRunner().invoke(app, ["doctor", "--json"]).output)
    chosen = {(each["use"], each["operation"]): each for each in found["kernels"]}
    assert set(chosen) == {
        *(("train", name) for name in ("attention", "linear", "feed-forward", "norm", "loss")),
        *(("translate", name) for name in ("attention", "linear", "feed-forward", "norm", "beam search")),
    }
    if found["torch"]["device"] == "cpu":
        assert chosen["translate", "attention"]["kernel"] == "one query"
        assert chosen["train", "norm"]["refused"] == {"fused": "it needs an NVIDIA GPU"}
        assert chosen["train", "linear"]["refused"]["onednn"] == "the weight is trained"
        assert "padded" not in chosen["train", "attention"]["refused"], "it is not there for speed"
    assert found["versions"]["python"] and found["cpu"]["usable_cores"] >= 1


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_without_torch_the_rest_is_shown(options: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, "doctor", *options], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "[train]'" in done.stdout and "training needs PyTorch" in done.stdout
    if options:
        found = json.loads(done.stdout)
        assert found["torch"] is None and found["kernels"] == []
        assert "torch" in found["extras"]["train"]["missing"]


def machine(**changes: Any) -> dict[str, Any]:
    """A machine without anything to mend."""
    found: dict[str, Any] = {
        "versions": {"triton": "3"},
        "extras": {name: {"missing": [], "install": f"install {name}"} for name in EXTRAS},
        "cpu": {"usable_cores": 4},
        "gpus": [{"name": "GPU", "memory": 1 << 34}],
        "torch": {"cuda": "12.8", "threads": 4},
        "directories": {"temp": {"path": "tmp", "writable": True, "free": 1 << 40}},
        "open_files": {"soft": 65536, "hard": None},
    }
    return found | changes


def test_a_machine_without_fault_gets_no_advice() -> None:
    assert doctor.advice(machine()) == []


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"versions": {"triton": None}}, "the GPU's kernels need Triton: pip install triton"),
        ({"open_files": {"soft": 256, "hard": None}}, "only 256 files may be open at once: ulimit -n 4096"),
        (
            {"directories": {"temp": {"path": "tmp", "writable": False, "free": 0}}},
            "the temp directory tmp cannot be written",
        ),
        (
            {"directories": {"temp": {"path": "tmp", "writable": True, "free": 1 << 29}}},
            "the temp directory has only 0.5 GiB left; set TMPDIR to another directory",
        ),
    ],
)
def test_advice(changes: dict[str, Any], advice: str) -> None:
    assert doctor.advice(machine(**changes)) == [advice]


def test_advice_for_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    few = machine(gpus=[], torch={"cuda": None, "threads": 1})
    monkeypatch.setattr(doctor, "_has_nvidia", lambda: True)
    assert doctor.advice(few) == [
        "this machine has an NVIDIA GPU, but this torch is built without CUDA",
        "torch uses 1 of 4 cores: set OMP_NUM_THREADS=4",
        "on a CPU an export translates faster than its run: dragoman export RUN",
    ]
    monkeypatch.setattr(doctor, "_has_nvidia", lambda: False)
    few["extras"]["fast"]["missing"] = ["ctranslate2"]
    assert doctor.advice(few)[1:] == ["CTranslate2 translates faster on a CPU: install fast"]


def test_the_extras_are_those_of_the_package() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(EXTRAS) == set(declared) - {"all"}
    imported = {"python-multipart": "multipart", "pillow": "PIL", "rouge-score": "rouge_score"}
    for name, needs in declared.items():
        for need in needs:
            package = need.split(">")[0]
            if name == "all" or package.startswith("dragoman"):
                continue
            assert imported.get(package, package) in EXTRAS[name].modules, f"{name}: {package}"


@pytest.mark.parametrize(
    ("module", "extra"),
    [("torch", "train"), ("fastapi", "serve"), ("ctranslate2", "fast"), ("babel", "demo"), ("os", None)],
)
def test_a_module_has_the_smallest_extra(module: str, extra: str | None) -> None:
    assert extra_of(module) == extra

"""Every notebook runs from its first cell to its last in an empty directory, with few updates of training."""

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
sys.path.insert(0, str(ROOT / "docs" / "site_tools"))
from notebooks import run_cell, run_notebook  # noqa: E402


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    if "matplotlib" in path.read_text("utf-8"):
        pytest.importorskip("matplotlib")
    notebook = json.loads(path.read_text("utf-8"))
    run_notebook(notebook, tmp_path, lambda code: re.sub(r"UPDATES = \d+", "UPDATES = 10", code))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stored_and_name_no_place_of_a_machine(path: Path) -> None:
    notebook = json.loads(path.read_text("utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert sum(len(cell["outputs"]) for cell in code) >= 3
    assert not re.search(r"/(?:home|root|tmp|work|Users)/|[A-Z]:\\\\", json.dumps(notebook))


def test_what_a_cell_gives() -> None:
    names: dict[str, object] = {}
    assert run_cell("x = 2", names, 1) == []
    printed = {"output_type": "stream", "name": "stdout", "text": ["2\n"]}
    assert run_cell("print(x)", names, 2) == [printed]
    (result,) = run_cell("x + 1", names, 3)
    assert result["data"] == {"text/plain": ["3"]} and result["execution_count"] == 3

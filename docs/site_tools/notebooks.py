"""Run the notebooks without Jupyter, and store their outputs:

    python docs/site_tools/notebooks.py notebooks/*.ipynb

Cells are plain Python. What a cell prints, the value of its last line and open figures become its outputs.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run_notebook(notebook: dict[str, Any], directory: Path, change: Callable[[str], str] = str) -> None:
    """Run all cells in a directory, and put their outputs into the notebook. `change` may rewrite code."""
    names: dict[str, Any] = {"__name__": "__main__"}
    number = 0
    with contextlib.chdir(directory):
        for cell in notebook["cells"]:
            if cell["cell_type"] != "code":
                continue
            number += 1
            cell["execution_count"] = number
            cell["outputs"] = run_cell(change("".join(cell["source"])), names, number)


def run_cell(code: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"<cell {number}>", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"<cell {number}>", "eval"), names)  # type: ignore[attr-defined]
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    outputs += [{"output_type": "display_data", "metadata": {}, "data": data} for data in _figures()]
    if value is not None and not outputs:
        data = {"text/plain": _lines(repr(value))}
        outputs.append(
            {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}
        )
    return outputs


def _figures() -> list[dict[str, str]]:
    """Open figures of matplotlib, which are closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    found = []
    for figure in [pyplot.figure(number) for number in pyplot.get_fignums()] if pyplot else []:
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=80, bbox_inches="tight")
        found.append({"image/png": base64.b64encode(buffer.getvalue()).decode()})
    if pyplot:
        pyplot.close("all")
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "Agg")
    for path in map(Path, sys.argv[1:]):
        found = json.loads(path.read_text("utf-8"))
        with tempfile.TemporaryDirectory() as temporary:
            run_notebook(found, Path(temporary))
        path.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")

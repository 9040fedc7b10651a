"""Recipes and benchmarks are scripts: what they import is there, and what a person can mend, they tell in one
sentence."""

import ast
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPES = ROOT / "recipes"
SCRIPTS = [path for folder in ("recipes", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.py")]


def names_of(module: str) -> set[str] | None:
    """The names that a module or a package binds, with its submodules; None if there is no such module."""
    path = ROOT.joinpath("src", *module.split("."))
    files = [path / "__init__.py"] if path.is_dir() else [path.with_suffix(".py")]
    if not files[0].is_file():
        return None
    names = {child.stem for child in path.iterdir()} if path.is_dir() else set()
    for node in ast.walk(ast.parse(files[0].read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_script_imports_is_there(script: Path) -> None:
    missing = []
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dragoman":
            known = names_of(node.module or "")
            if node.module == "dragoman" and known is not None:
                known |= {"train", "load", "resume"}  # made when they are asked for
            missing += [f"{node.module}.{a.name}" for a in node.names if known is None or a.name not in known]
    assert missing == []


@pytest.mark.parametrize("recipe", sorted(RECIPES.glob("*.py")), ids=lambda path: path.stem)
def test_a_recipe_that_uses_dragoman_ends_as_a_command_does(recipe: Path) -> None:
    text = recipe.read_text(encoding="utf-8")
    if "__main__" in text and re.search(r"^(import|from) dragoman", text, re.MULTILINE):
        assert text.endswith('if __name__ == "__main__":\n    run_script(main)\n')


def test_a_run_without_a_checkpoint_is_told_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, texts = str(tmp_path / "run"), str(tmp_path / "test.en")
    monkeypatch.setattr("sys.argv", ["confidence.py", run, "--source", texts, "--reference", texts])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(RECIPES / "confidence.py"), run_name="__main__")
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"dragoman: {run}: there is no such run directory\n"

"""Recipes are scripts: what a person can mend, they tell in one sentence."""

import re
import runpy
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "recipes"


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

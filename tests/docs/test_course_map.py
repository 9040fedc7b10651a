"""The course map is true: its experiments, pictures, lessons and pages exist, its commands are understood."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from dragoman.cli.main import app
from dragoman.config import apply_overrides, check_given
from dragoman.lab.catalogue import all_experiments
from dragoman.models import chosen_config
from dragoman.models.presets import PRESETS
from dragoman.runs.config import RunConfig
from dragoman.studio.lessons import lessons
from dragoman.training.draft import split_arguments

WHOLE: Any = typer.main.get_command(app)
DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "course-map.md").read_text("utf-8")
HEADING = r"^\| topic \| run \| picture \| page \| lesson \|\n\|[-|]+\|\n"
TABLE = re.compile(rf"{HEADING}((?:\|.*\n)+)", re.MULTILINE)
ROWS = [
    [cell.strip() for cell in line[1:-1].split("|")]
    for table in TABLE.findall(PAGE)
    for line in table.splitlines()
]
EXPERIMENT = re.compile(r"\[\*\*([\w-]+)\*\*\]\(([^)#]+)#([^)]+)\)")
COMMANDS = sorted(set(re.findall(r"`(dragoman [^`]+)`", PAGE)) - {"dragoman lab NAME"})


def test_all_five_lectures_have_rows_of_five_cells() -> None:
    assert len(TABLE.findall(PAGE)) == 5 and len(ROWS) > 100
    assert [row for row in ROWS if len(row) != 5] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_a_row_has_something_to_run_and_a_page(row: list[str]) -> None:
    _topic, run, picture, page, lesson = row
    found = EXPERIMENT.search(run)
    assert found or "`dragoman " in run or run.startswith("not built in")
    assert picture or run.startswith("not built in")
    assert re.fullmatch(r"\[[^\]]+\]\([^)]+\)", page)
    if lesson:
        assert lesson.strip("`") in lessons()
    if found:
        name, chapter, anchor = found.groups()
        experiment = all_experiments()[name]
        assert (chapter, anchor) == (f"book/lecture-{experiment.lecture}.md", name)
        assert f"\n## {name}\n" in (DOCS / chapter).read_text("utf-8")
        assert (DOCS / "book" / "images" / f"{name}.png").is_file()
        assert run.endswith("·") is not experiment.trains


def test_every_experiment_and_every_lesson_has_a_row() -> None:
    assert {found[0] for found in EXPERIMENT.findall(PAGE)} == set(all_experiments())
    assert {row[4].strip("`") for row in ROWS if row[4]} == set(lessons())


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_are_understood(line: str) -> None:
    """The command line parses, and fields that it sets exist; nothing is run."""
    _, name, *words = shlex.split(line)
    assert name in WHOLE.commands, f"there is no command {name}"
    if not words:
        return  # the name of a command in prose
    with WHOLE.commands[name].make_context(name, list(words)):
        pass
    _, fields = split_arguments([word for word in words if not word.startswith("-")])
    plain = apply_overrides({}, fields)
    if "model" in plain:
        preset = words[words.index("--model") + 1] if "--model" in words else None
        chosen_config({**({"preset": preset} if preset else {}), **plain["model"]})
    check_given(RunConfig, {key: value for key, value in plain.items() if key != "model"})
    if "--model" in words:
        assert words[words.index("--model") + 1] in PRESETS
    if name == "lab":
        assert {word for word in words if word in all_experiments()}

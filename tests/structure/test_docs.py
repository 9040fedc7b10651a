"""The documentation says what the code does: every field with its default, every link, command and option."""

import ast
import dataclasses
import importlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest

from dragoman.config import to_dict
from dragoman.data.config import SourceConfig
from dragoman.data.documents import SUFFIXES
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.noise import NoiseConfig
from dragoman.data.vectors.config import ImageInput, SeriesInput
from dragoman.decode.search.config import VARIANTS
from dragoman.learning import LEARNING
from dragoman.models import MODELS, READERS
from dragoman.models.base import AlignmentGuide
from dragoman.models.presets import PRESETS
from dragoman.nn.scores import SCORES
from dragoman.runs.config import RunConfig, TrainConfig
from dragoman.runs.objective import ObjectiveConfig
from dragoman.runs.optim import OptimConfig, ScheduleConfig
from dragoman.text.context import ContextConfig
from dragoman.text.tokenizer import TokenizerConfig

ROOT = Path(__file__).parents[2]
ALL_MODELS = {**MODELS, **READERS}
PAGES = [
    ROOT / "README.md",
    ROOT / "SECURITY.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def fields_of(config: type, prefix: str) -> dict[str, str]:
    """Every field below a dataclass by its dotted name, with its default as YAML writes it."""
    found: dict[str, str] = {}
    for field in dataclasses.fields(config):
        name = f"{prefix}{field.name}"
        default = field.default_factory if field.default is dataclasses.MISSING else field.default
        if name == "model":
            continue  # each kind has a table of its own
        if name == "train":
            found |= fields_of(TrainConfig, "train.")
        elif name == "task":
            found |= {name: "null"} | fields_of(TaskConfig, "task.")
            found |= fields_of(ImageInput, "task.image.") | fields_of(SeriesInput, "task.series.")
        elif name == "data.context":
            found |= {name: "null"} | fields_of(ContextConfig, "data.context.")
        elif name == "search":
            for method in reversed(VARIANTS.values()):
                found |= fields_of(method, "search.")
        elif name == "data":
            found |= fields_of(field.type if isinstance(field.type, type) else object, "data.")
        elif isinstance(default, type) and dataclasses.is_dataclass(default):
            found |= fields_of(default, f"{name}.")
        else:
            found[name] = shown(default)
    return found


def shown(default: object) -> str:
    if default is dataclasses.MISSING:
        return "required"
    if default is None or isinstance(default, bool):
        return "null" if default is None else str(default).lower()
    return "[]" if default == () else str(default)


def sections_of_models() -> dict[str, str]:
    """For each kind of model, the part of the page that is about it."""
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    return dict(re.findall(r"^### `kind: (\w+)`\n(.*?)(?=^##)", text, re.MULTILINE | re.DOTALL))


def documented(text: str) -> dict[str, str]:
    rows = re.findall(r"^\| `([a-z_\[\].0-9]+)` \| ([^|]*?) \|", text, re.MULTILINE)
    assert len({name for name, _ in rows}) == len(rows)
    return {name: default for name, default in rows if name not in PRESETS}


def test_every_field_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    for section in sections_of_models().values():
        text = text.replace(section, "")
    assert documented(text) == fields_of(RunConfig, "") | fields_of(SourceConfig, "data.train[].")


def test_every_field_of_every_model_is_documented_with_its_default() -> None:
    found = {kind: documented(section) for kind, section in sections_of_models().items()}
    assert found == {kind: fields_of(config, "model.") for kind, (config, _) in ALL_MODELS.items()}


def test_every_choice_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    sections = [("train.", TrainConfig, page), ("tokenizer.", TokenizerConfig, page)]
    sections += [("optim.", OptimConfig, page), ("schedule.", ScheduleConfig, page)]
    sections += [("search.", method, page) for method in VARIANTS.values()]
    sections += [("objective.", ObjectiveConfig, page)]
    sections += [("objective.guided_alignment.", AlignmentGuide, page)]
    models = sections_of_models()
    missing = set(ALL_MODELS) - set(models)
    assert not missing, f"docs/configuration.md: no section '### `kind: …`' for {missing}"
    sections += [("objective.noise.", NoiseConfig, page), ("task.", TaskConfig, page)]
    sections += [("task.series.", SeriesInput, page)]
    sections += [("model.", config, models[kind]) for kind, (config, _) in ALL_MODELS.items()]
    for prefix, config, text in sections:
        for name, hint in get_type_hints(config).items():
            if dataclasses.is_dataclass(hint):
                continue  # a section of its own
            row = re.search(rf"^\| `{re.escape(prefix + name)}` \|.*$", text, re.MULTILINE)
            assert row is not None, f"docs/configuration.md: no row for {prefix}{name}"
            for choice in get_args(hint) if get_origin(hint) is Literal else ():
                assert re.search(rf"\b{choice}\b", row[0]), f"{prefix}{name}: {choice}"


HEADINGS = {
    "layers": "num_layers",
    "width": "model_dim",
    "heads": "num_heads",
    "feed-forward": "ff_dim",
    "positions": "max_positions",
    "kernel": "kernel_width",
    "hidden": "hidden_dim",
    "cells": "hidden_dim",
    "highway": "num_highway",
    "weight dropout": "weight_dropout",
}
"""Columns of the tables of presets that are not called as their field is."""


def test_the_presets_are_documented() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    found: dict[str, dict[str, str]] = {}
    for table in re.findall(r"^\| preset \|.*(?:\n\|.*)+", text, re.MULTILINE):
        heading, _, *rows = ([cell.strip(" `") for cell in row[1:-1].split("|")] for row in table.split("\n"))
        found |= {name: dict(zip(heading[1:], cells, strict=True)) for name, *cells in rows}
    missing = set(PRESETS) - set(found)
    assert not missing, f"docs/configuration.md: no table whose first column is 'preset' has {missing}"
    for name, cells in found.items():
        numbers = to_dict(PRESETS[name].make())
        if "num_decoder_layers" in numbers:
            encoder = numbers["num_layers"]
            numbers["num_layers"] = f"{encoder} + {numbers['num_decoder_layers'] or encoder}"
        assert cells == {heading: str(numbers[HEADINGS.get(heading, heading)]) for heading in cells}, name


def test_every_name_of_a_registry_is_documented() -> None:
    """Scores, ways of learning and kinds of documents are text in a configuration, or suffixes: their types
    do not tell them."""
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    documents = (ROOT / "docs" / "documents.md").read_text("utf-8")
    scored = [row for row in re.findall(r"^\| `model\.attention` .*$", page, re.MULTILINE) if "score" in row]
    (objective,) = re.findall(r"^\| `objective\.name` .*$", page, re.MULTILINE)
    assert scored
    for row in scored:
        assert [name for name in SCORES if not re.search(rf"\b{name}\b", row)] == [], row
    assert [name for name in LEARNING if not re.search(rf"\b{name}\b", objective)] == []
    assert [suffix for suffix in SUFFIXES if f"`{suffix}`" not in documents] == []


def test_every_room_is_on_the_map_in_the_order_of_imports() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rooms = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", page, re.MULTILINE)
    package = ROOT / "src" / "dragoman"
    there = {path.stem for path in package.iterdir() if path.suffix in ("", ".py")}
    assert set(rooms) == {name for name in there if not name.startswith("__")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = [re.findall(r"dragoman\.(\w+)", layer) for layer in reversed(contracts[0]["layers"])]
    heights = {name: height for height, layer in enumerate(layers) for name in layer}
    assert [heights[room] for room in rooms] == sorted(heights.values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_that_the_pages_import_exist(page: Path) -> None:
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dragoman"):
                module = importlib.import_module(node.module or "")
                assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_the_page_of_commands_names_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "--help"], capture_output=True, text=True, check=True
    )
    commands = re.findall(r"^  ([a-z-]+) {2,}\S", done.stdout.split("Train:")[1], re.MULTILINE)
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert len(commands) >= 8
    assert [name for name in commands if f"| `dragoman {name}" not in page] == []


def test_the_readme_is_short() -> None:
    """A picture and some output first, then links; everything else is on pages of its own."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert len(readme.split()) <= 450
    assert 0 < readme.index("![") < readme.index("$ dragoman ") < readme.index("## For whom")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_that_the_pages_name_exist(page: Path) -> None:
    """Every `dragoman COMMAND … --option` in a page is an option of that command."""
    for command, rest in re.findall(r"dragoman ([a-z]+(?:-[a-z]+)*)\b([^\n`]*)", page.read_text("utf-8")):
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest.split("#")[0]):
            assert option in help_of(command), f"dragoman {command} {option}"


@cache
def help_of(command: str) -> str:
    arguments = [sys.executable, "-m", "dragoman", command, "--help"]
    return subprocess.run(arguments, capture_output=True, text=True).stdout

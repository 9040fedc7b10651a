"""Every promise in SECURITY.md and docs/reliability.md names the tests that hold it, and they exist."""

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["SECURITY.md", "docs/reliability.md"]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@cache
def named_tests(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("page", PAGES)
def test_every_named_test_exists(page: str) -> None:
    named = NAMED.findall((ROOT / page).read_text("utf-8"))
    assert len(named) > 40
    assert [f"{path}::{name}" for path, name in named if name not in named_tests(ROOT / path)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_promise_has_a_test(page: str) -> None:
    """A row of a table of promises, or of faults of earlier versions, ends with at least one."""
    text = (ROOT / page).read_text("utf-8")
    tables = re.findall(r"^\| (?:promise|fault) \| test \|\n\|---\|---\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if not NAMED.search(row.rpartition(" | ")[2])] == []


def test_libraries_with_known_holes_are_not_taken() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for extra in ("serve", "studio"):
        least = dict(re.findall(r"^([\w-]+)>=([\d.]+)", "\n".join(extras[extra]), re.MULTILINE))
        found = {name: tuple(map(int, version.split("."))) for name, version in least.items()}
        assert found["h11"] >= (0, 16)  # chunks that others read otherwise
        assert found["starlette"] >= (0, 49, 1)  # ranges that take quadratic time

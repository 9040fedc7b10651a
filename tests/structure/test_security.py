"""Every promise in SECURITY.md names the tests that hold it, and they exist."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


@cache
def named_tests(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_every_named_test_exists() -> None:
    named = NAMED.findall((ROOT / "SECURITY.md").read_text("utf-8"))
    assert len(named) > 40
    assert [f"{path}::{name}" for path, name in named if name not in named_tests(ROOT / path)] == []


def test_every_promise_has_a_test() -> None:
    """A row of a table of promises ends with at least one."""
    page = (ROOT / "SECURITY.md").read_text("utf-8")
    tables = re.findall(r"^\| promise \| test \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    rows = [row for table in tables for row in table.splitlines()]
    assert len(rows) > 20
    assert [row for row in rows if not NAMED.search(row.rpartition(" | ")[2])] == []

"""Files are moved and forced to disk in one place, so that nobody does half of it."""

import ast
from pathlib import Path

import pytest

import dragoman

SOURCE = Path(dragoman.__file__).parent
ALLOWED = {
    "files.py",
    "unfinished.py",
    "data/cache.py",
    "data/shards.py",  # moves what is damaged out of the way
    "serve/glossaries.py",
}
OF_OS = ("replace", "rename", "renames", "fsync", "fdatasync", "sync")


def moves_and_syncs(text: str) -> list[str]:
    """Calls of `os` and `shutil` that move or force to disk, and of paths that move."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, owner = node.func.attr, ast.unparse(node.func.value)
        of_module = (owner == "os" and name in OF_OS) or (owner == "shutil" and name == "move")
        # Texts, dates and dataclasses are replaced with two arguments or with names.
        of_path = name in ("rename", "replace") and len(node.args) == 1 and not node.keywords
        if of_module or of_path:
            found.append(ast.unparse(node))
    return found


@pytest.mark.parametrize(
    "text",
    ["os.replace(a, b)", "os.fsync(f.fileno())", "path.rename(x)", "Path(a).replace(b)", "shutil.move(a, b)"],
)
def test_such_calls_are_found(text: str) -> None:
    assert moves_and_syncs(text) == [text]


@pytest.mark.parametrize(
    "text", ["t.replace('a', 'b')", "now.replace(hour=1)", "replace(done, finished=True)"]
)
def test_others_are_not(text: str) -> None:
    assert moves_and_syncs(text) == []


def test_files_are_moved_in_one_place() -> None:
    found = {
        str(path.relative_to(SOURCE)): moves_and_syncs(path.read_text("utf-8"))
        for path in SOURCE.rglob("*.py")
    }
    assert {name: calls for name, calls in found.items() if calls and name not in ALLOWED} == {}
    assert found["files.py"] and found["unfinished.py"]

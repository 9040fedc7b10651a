"""Files and functions stay short enough to be read, a class has a name of its own, and nothing tracked names
a place on one machine."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 360, 70


def python_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def tracked_files() -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_files_are_short() -> None:
    lengths = {
        str(p.relative_to(ROOT)): len(p.read_text("utf-8").splitlines())
        for p in python_files("src", "benchmarks")
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def test_functions_are_short() -> None:
    """Bodies are counted: the options of a command are a list, not something to follow. What Triton compiles
    is one kernel however long it is: its parts share registers, not names."""
    long = {}
    for path in python_files("src", "benchmarks"):
        if path.parent.name == "kernels":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
                if lines > MOST_LINES_OF_A_FUNCTION:
                    long[f"{path.relative_to(ROOT)}:{node.name}"] = lines
    assert long == {}


def public_types(path: Path) -> set[str]:
    """Classes of a module and its names for types. `Annotated` names declare an option of a command or a
    field of a request, and are called like it."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and not ast.unparse(node.value).startswith("Annotated["):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in names if name[0].isupper() and not name.isupper()}


def test_a_class_has_a_name_of_its_own() -> None:
    """Two classes of one name make every search for it, and every traceback, tell of two things."""
    where: dict[str, list[str]] = {}
    for path in python_files("src"):
        for name in public_types(path):
            where.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


def test_no_unfinished_marks() -> None:
    marks = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
    found = [p for p in python_files("src", "tests", "benchmarks") if marks.search(p.read_text("utf-8"))]
    assert found == []


def test_no_absolute_paths() -> None:
    """Tracked files work on every machine: nothing below a home or a mount is named."""
    folders = ("home", "root", "work", "Users", "mnt", "tmp", "opt", "workspace")
    absolute = re.compile(rb"(?<![\w.:/~}-])/(" + "|".join(folders).encode() + rb")/[\w.]")
    found = []
    for path in tracked_files():
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            if absolute.search(line):
                found.append(
                    f"{path.relative_to(ROOT)}:{number}: {line.decode(errors='replace').strip()[:80]}"
                )
    assert found == []


def test_no_large_or_binary_files() -> None:
    """Data, weights and archives do not belong in the repository; small pictures of results do."""
    pictures = {p for p in tracked_files() if p.suffix == ".png" and p.parent.name in ("results", "images")}
    assert all(p.stat().st_size < 200_000 and p.read_bytes()[:4] == b"\x89PNG" for p in pictures)
    others = [p for p in tracked_files() if p not in pictures]
    found = [p.name for p in others if p.stat().st_size > 1 << 20 or b"\0" in p.read_bytes()[:8192]]
    assert found == []

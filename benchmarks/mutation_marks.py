"""Which lines are executed, by however many processes: one byte a line, in a file that all of them share.

Every statement in a function of the package gets a mark in front of it as it is imported. Forks, processes
that a test starts and those that it kills set theirs too.
"""

import ast
import builtins
import mmap
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOMS = ("nn", "models", "learning", "decode", "data", "checkpoint", "training", "serve")
ROOMS += ("autopilot", "runs", "text")
MAPPED = "mutation_map.json"
"""In a folder on PYTHONPATH: the package whose marks lie there."""
MARKS = "__mutation_marks__"


class Marks:
    """A byte for every line of a package, set where the statement that begins there is executed."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.folder = folder
        self.places: list[tuple[str, int]] = []
        self.first: dict[str, int] = {}
        for path in sorted(each for room in ROOMS for each in (source / room).rglob("*.py")):
            self.first[str(path.resolve())] = len(self.places)
            lines = len(path.read_bytes().splitlines())
            self.places += [(str(path.relative_to(source)), line) for line in range(lines + 2)]
        with (folder / "marks").open("ab") as file:
            file.truncate(len(self.places))
        with (folder / "marks").open("r+b") as file:
            self.bytes = mmap.mmap(file.fileno(), len(self.places))
        setattr(builtins, MARKS, self.bytes)

    def take(self) -> dict[str, str]:
        """The lines that were executed since the last time: for each file a number in hexadecimal, of which
        each line has a bit."""
        executed: dict[str, int] = {}
        for at in (each.start() for each in re.finditer(b"\x01", self.bytes[:])):
            file, line = self.places[at]
            executed[file] = executed.get(file, 0) | 1 << line
            self.bytes[at] = 0
        return {file: f"{bits:x}" for file, bits in executed.items()}

    def put_in(self) -> None:
        """From now on what is imported of the package sets its marks. Bytecode has a place of its own."""
        sys.pycache_prefix, sys.dont_write_bytecode = str(self.folder.parent / "bytecode"), False
        plain = SourceFileLoader.get_data

        def get_data(loader: SourceFileLoader, path: str) -> bytes:
            first = self.first.get(str(path))
            return plain(loader, path) if first is None else self.marked(Path(path), first).encode()

        SourceFileLoader.get_data = get_data  # type: ignore[method-assign]

    def marked(self, path: Path, first: int) -> str:
        """The text of the file with its marks."""
        tree = ast.parse(path.read_bytes())
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for node in ast.walk(function):
                    for name in ("body", "orelse", "finalbody"):
                        block = getattr(node, name, None)
                        if isinstance(block, list) and not isinstance(node, ast.ClassDef):
                            setattr(node, name, list(_with_marks(block, first)))
        return ast.unparse(tree)


def _with_marks(block: list[ast.stmt], first: int) -> Iterator[ast.stmt]:
    for at, statement in enumerate(block):
        text = at == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if not (text or hasattr(statement, "marked") or isinstance(statement, ast.Global | ast.Nonlocal)):
            statement.marked = True  # type: ignore[attr-defined]
            mark = ast.parse(f"{MARKS}[{first + statement.lineno}] = 1").body[0]
            mark.marked = True  # type: ignore[attr-defined]
            yield mark
        yield statement


def beginnings(file: Path, lines: range) -> set[int]:
    """Where the statements begin that are executed with one of these lines: of a block with its head."""
    spans = _spans(file)
    return {*lines, *(begin for begin, end in spans if begin < lines.stop and lines.start < end)}


@cache
def _spans(file: Path) -> list[tuple[int, int]]:
    """Where each statement begins, and the line after it or after its head."""
    found: list[tuple[int, int]] = []
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or node.lineno) + 1
            found.append((node.lineno, max(end, node.lineno + 1)))
    return found

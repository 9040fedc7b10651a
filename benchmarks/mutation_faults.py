"""Small faults in a source file, one at a time: what a tired programmer might have typed.

A fault replaces one span of the text. It is known by its content (file, line, change), not by its line
number, so a list of judged faults outlives edits elsewhere in the file.

Never touched: docstrings and messages (strings, f-strings, what a `raise` carries), logging, type hints,
`__repr__`, code that only a GPU executes.
"""

import ast
import hashlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from mutation_operators import MUTATORS, Signatures

NOT_RUN_HERE = ("training/graph_capture.py",)
"""Recorded CUDA graphs: a CPU never executes them."""
SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "bases", "type_params"}
QUIET_CALLS = {"print", "warn", "log", "info", "debug", "warning", "cast", "TypeVar", "UserError"}
GPU = re.compile(r"cuda|by_kernel")
GPU_CLASSES = {"_ProjectedRDrop", "Replayed"}
DANGEROUS_CALLS = {"kill", "killpg", "rmtree"}
"""A fault in these could reach beyond its test."""


@dataclass(frozen=True)
class Fault:
    file: str
    """Relative to the package."""
    place: str
    """The function or class that it is in, with dots."""
    owner: str | None
    """The outermost function around it, with its class. None for what an import executes."""
    operator: str
    line: str
    """The first line of the changed span, without its indentation."""
    before: str
    after: str
    start: int
    end: int
    """The span in bytes."""
    lines: range
    """The line numbers of the statement that is changed: what a test must execute to notice."""
    scope: range
    """The lines of the function or class around it."""
    by_kernel: bool = False
    """Executed only where a kernel for GPUs is."""
    twin: int = 0
    """Counts the earlier faults of the same content, in files that repeat a line."""

    @property
    def key(self) -> str:
        content = "\0".join((self.file, self.place, self.operator, self.line, self.change, str(self.twin)))
        return hashlib.sha256(content.encode()).hexdigest()[:12]

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]

    @property
    def change(self) -> str:
        return f"{_one_line(self.before)} → {_one_line(self.after)}"

    def applied(self, text: bytes) -> bytes:
        return text[: self.start] + self.after.encode() + text[self.end :]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def find_faults(package: Path, file: Path, signatures: Signatures) -> list[Fault]:
    """Every fault that the operators can make of one file, in the order of the text."""
    text = file.read_bytes()
    walker = _Walker(text, str(file.relative_to(package)), signatures)
    walker.visit(ast.parse(text))
    return _numbered(walker.faults)


def compiles(package: Path, fault: Fault) -> bool:
    text = (package / fault.file).read_bytes()
    try:
        compile(fault.applied(text), fault.file, "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return fault.applied(text) != text


def _numbered(faults: list[Fault]) -> list[Fault]:
    seen: dict[str, int] = {}
    numbered: list[Fault] = []
    for fault in faults:
        twin = seen.get(fault.key, 0)
        seen[fault.key] = twin + 1
        numbered.append(Fault(**{**fault.__dict__, "twin": twin}))
    return numbered


class _Walker(ast.NodeVisitor):
    """Visits what may be changed and asks every operator about it."""

    def __init__(self, text: bytes, file: str, signatures: Signatures) -> None:
        self.file, self.signatures = file, signatures
        self.text = text
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.faults: list[Fault] = []
        self.places: list[str] = []
        self.statement: ast.stmt | None = None
        self.scope = range(1, len(self.starts))
        self.owner: str | None = None
        self.by_kernel = False

    def generic_visit(self, node: ast.AST) -> None:
        if _is_untouched(node):
            return
        outer, by_kernel = self.statement, self.by_kernel
        if isinstance(node, ast.stmt):
            self.statement = node
        self.by_kernel |= _needs_gpu(node)
        self._ask(node)
        for name, value in ast.iter_fields(node):
            if name in SKIPPED_FIELDS or (
                name == "args" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            ):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child)
        self.statement, self.by_kernel = outer, by_kernel

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        if node.name == "__repr__":
            return
        self.places.append(node.name)
        outer = self.scope, self.owner
        self.scope = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        if not isinstance(node, ast.ClassDef):
            self.visit(node.args)  # the defaults: mostly executed when the module is imported
            self.owner = self.owner or ".".join(self.places)
        self.generic_visit(node)
        self.scope, self.owner = outer
        self.places.pop()

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef

    def _ask(self, node: ast.AST) -> None:
        for operator, mutate in MUTATORS.items():
            for target, after in mutate(node, self.signatures):
                self._add(operator, target, after)

    def _add(self, operator: str, target: ast.expr | ast.stmt, after: str) -> None:
        assert target.end_lineno is not None and target.end_col_offset is not None
        start = self.starts[target.lineno - 1] + target.col_offset
        end = self.starts[target.end_lineno - 1] + target.end_col_offset
        line = self.text[self.starts[target.lineno - 1] : self.starts[target.lineno]].decode().strip()
        before, span = self.text[start:end].decode(), (start, end)
        lines = self._executed(target)
        place = ".".join(self.places)
        self.faults.append(
            Fault(
                self.file,
                place,
                self.owner,
                operator,
                line,
                before,
                after,
                *span,
                lines,
                self.scope,
                self.by_kernel,
            )
        )

    def _executed(self, target: ast.expr | ast.stmt) -> range:
        """The lines to be executed: of an expression in a block's head its own ones, not the block's."""
        end = target.end_lineno or target.lineno
        if self.statement is None or hasattr(self.statement, "body"):
            return range(target.lineno, end + 1)
        return range(self.statement.lineno, (self.statement.end_lineno or end) + 1)


def _needs_gpu(node: ast.AST) -> bool:
    """A branch or function that imports kernels, a function or a plain statement that names them or CUDA."""
    if isinstance(node, ast.If):
        return any(_imports_kernels(each) for each in ast.walk(node))
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        named = "kernel" in node.name or node.name in GPU_CLASSES
        return named or any(_imports_kernels(each) for each in node.body)
    return isinstance(node, ast.stmt) and not hasattr(node, "body") and bool(GPU.search(ast.unparse(node)))


def _imports_kernels(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dragoman.kernels")


def _is_untouched(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and "cuda" in ast.unparse(node.test):
        return True
    return isinstance(node, ast.Call) and called(node) in QUIET_CALLS | DANGEROUS_CALLS


def called(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


@cache
def _signatures(package: Path) -> Signatures:
    return Signatures.of(package)


def faults_of(package: Path, room: str) -> list[Fault]:
    """Every fault of a room, file by file."""
    signatures = _signatures(package)
    files = sorted((package / room).rglob("*.py"))
    return [
        fault
        for file in files
        if str(file.relative_to(package)) not in NOT_RUN_HERE
        for fault in find_faults(package, file, signatures)
    ]


def draw(package: Path, faults: list[Fault], count: int, seed: int) -> list[Fault]:
    """`count` of them, always the same ones: the operators in turn, at most one fault a statement."""
    drawn = list(faults)
    Random(seed).shuffle(drawn)
    queues: dict[str, list[Fault]] = {}
    for fault in drawn:
        queues.setdefault(fault.operator, []).append(fault)
    taken: dict[tuple[str, range], Fault] = {}
    while len(taken) < count and any(queues.values()):
        for name in sorted(queues):
            while queues[name]:
                fault = queues[name].pop()
                new = (fault.file, fault.lines) not in taken and not fault.by_kernel
                if new and compiles(package, fault):
                    taken[fault.file, fault.lines] = fault
                    break
    return list(taken.values())[:count]

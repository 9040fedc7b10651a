"""How many steps a function takes: its modules are loaded anew with every operation counted.

No clock: the number is the same on every machine. A step is an operation of Python, a character that a
string operation copies or looks at, an item that a container operation goes through, or a step of a
backtracking regular expression (`regex_steps.py`). An operation in C that is not known here counts as long
as all that it is given and all that it gives back, so that nothing is too cheap by mistake.
"""

import ast
import builtins
import importlib
import operator
import re
import sys
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import FunctionType, MethodType, ModuleType
from typing import Any

from regex_steps import end_of_match

_TAKEN, _MOST = 0, sys.maxsize
"""Steps so far, and how many there may be."""
_OPERATORS = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Mod": operator.mod,
    "BitOr": operator.or_, "BitAnd": operator.and_, "BitXor": operator.xor, "FloorDiv": operator.floordiv,
    "Div": operator.truediv, "LShift": operator.lshift, "RShift": operator.rshift, "Pow": operator.pow,
}  # fmt: skip
_IN_PLACE = {"Add": operator.iadd, "BitOr": operator.ior}
_OF_A_LIST, _OF_A_DICT = {"append", "pop", "appendleft", "popleft"}, {"get", "setdefault", "pop", "items"}
_CHEAP: dict[type, set[str]] = {
    list: _OF_A_LIST, deque: _OF_A_LIST, dict: _OF_A_DICT, Counter: _OF_A_DICT, set: {"add", "discard"},
}  # fmt: skip
_CHEAP_FUNCTIONS = frozenset({
    len, isinstance, issubclass, ord, chr, id, hash, iter, next, getattr, hasattr, setattr, callable, abs,
    divmod, operator.index,
})  # fmt: skip
_CONTAINERS = frozenset({str, list, tuple, dict, set, bytes})
_NUMBERS = frozenset({int, float, bool, type, type(None)})
_IN_PYTHON = frozenset({FunctionType, MethodType})
_COUNTED_HERE = frozenset({"re", "json", "json.decoder", "json.encoder", "html"})
_LAZY = frozenset({map, filter, zip, enumerate, reversed, range})
_HALVING = frozenset({bisect_left, bisect_right})


class TooManySteps(Exception):
    """Instead of waiting for ever."""


def taken(steps: int) -> None:
    global _TAKEN
    _TAKEN += steps
    if _TAKEN > _MOST:
        raise TooManySteps


def steps_of(function: Callable[..., Any], *arguments: Any, most: int = 50_000_000) -> int:
    """Of a function of a module that was loaded by `counting`."""
    global _TAKEN, _MOST
    _TAKEN, _MOST = 0, most
    try:
        function(*arguments)
    finally:
        _MOST = sys.maxsize
    return _TAKEN


def _size(value: object) -> int:
    kind = type(value)
    if kind in _CONTAINERS:
        return len(value)  # type: ignore[arg-type]
    if kind in _NUMBERS:
        return 0
    size = getattr(value, "size", None)  # of an array
    if isinstance(size, int):
        return size
    return len(value) if isinstance(value, Sized) else 0


def _each(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        taken(1)
        yield item


def _call(function: Any, *arguments: Any, **named: Any) -> Any:
    taken(1)
    if type(function) in _IN_PYTHON:
        if function.__module__ in _COUNTED_HERE:
            return _of_a_library(function, arguments, named)
        return function(*arguments, **named)
    owner = getattr(function, "__self__", None)
    if isinstance(owner, str):
        return _of_text(owner, function, arguments)
    if isinstance(owner, re.Pattern):
        return _of_pattern(function, owner, arguments, named)
    if function in _HALVING:
        taken(len(arguments[0]).bit_length())
        return function(*arguments, **named)
    if function in _CHEAP_FUNCTIONS or getattr(function, "__name__", "") in _CHEAP.get(type(owner), ()):
        from_the_front = getattr(function, "__name__", "") == "pop" and arguments == (0,)
        taken(_size(owner) if isinstance(owner, list) and from_the_front else 0)
        return function(*arguments, **named)
    if function in _LAZY or (isinstance(function, type) and function.__module__ != "builtins"):
        return function(*arguments, **named)
    given = [_each(one) if isinstance(one, Iterator) else one for one in arguments]
    result = function(*given, **named)
    taken(sum(map(_size, given)) + _size(result))
    if type(owner) in (list, dict, set) and function.__name__ not in ("extend", "update"):
        taken(len(owner))
    return result


counted_call = _call
"""For what is not called by a module that is counted."""


def _of_a_library(function: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Python's own functions that are written in Python and work on text."""
    if function.__module__ == "re":
        return _of_pattern(function, None, arguments, named)
    result = function(*arguments, **named)
    if function.__name__ == "raw_decode":
        taken(result[1] - arguments[1])
    else:
        taken(sum(map(_size, arguments)) + _size(result))
    return result


def _of_text(text: str, function: Any, arguments: tuple[Any, ...]) -> Any:
    """A method of a string."""
    name = function.__name__
    given = [_each(one) if isinstance(one, Iterator) else one for one in arguments]
    result = function(*given)
    if name in ("startswith", "endswith"):
        taken(max(map(len, given[0])) if isinstance(given[0], tuple) else len(given[0]))
    elif name in ("find", "index", "rfind", "count"):
        start, end, _ = slice(*[*given[1:], None, None][:2]).indices(len(text))
        found = name in ("find", "index") and result >= 0
        taken(result - start + len(given[0]) if found else max(0, end - start))
    elif name in ("strip", "lstrip", "rstrip", "removeprefix", "removesuffix"):
        taken(0 if result is text else len(text))
    elif name == "join":
        taken(len(result))
    else:
        taken(len(text) + _size(result))
    return result


def _of_pattern(function: Any, owner: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    name = function.__name__
    if owner is None:  # re.sub(pattern, …)
        if name in ("compile", "escape"):
            taken(len(str(arguments[0])))
            return function(*arguments, **named)
        pattern, *rest = arguments
        flags = [one for one in rest if isinstance(one, re.RegexFlag)]
        owner = re.compile(pattern, *flags)
        arguments = tuple(one for one in rest if not isinstance(one, re.RegexFlag))
        function = getattr(owner, name)
    text_at = 1 if name in ("sub", "subn") else 0
    text = arguments[text_at]
    if name in ("match", "fullmatch", "search"):
        start = min(arguments[1] if len(arguments) > 1 else 0, len(text))
        text = text[: arguments[2]] if len(arguments) > 2 else text
        places = range(start, len(text) + 1) if name == "search" else range(start, start + 1)
        stop = end_of_match(owner, text, places, name == "fullmatch", taken)
        result = function(*arguments, **named)
        assert stop == (-1 if result is None else result.end()), (owner.pattern, text[:80])
        return result
    at = 0
    for match in owner.finditer(text):
        stop = end_of_match(owner, text, range(at, len(text) + 1), False, taken)
        assert stop == match.end(), (owner.pattern, text[:80])
        taken(match.end() - match.start())
        at = stop + (match.end() == match.start())
    end_of_match(owner, text, range(at, len(text) + 1), False, taken)
    return function(*arguments, **named)


def _item(value: Any, index: Any) -> Any:
    result = value[index]
    taken(1 + (_size(result) if type(index) in (slice, tuple) else 0))
    return result


def _binary(name: str, left: Any, right: Any) -> Any:
    result = _OPERATORS[name](left, right)
    taken(1 + _size(result))
    return result


def _augmented(name: str, left: Any, right: Any) -> Any:
    result = _IN_PLACE.get(name, _OPERATORS[name])(left, right)
    taken(1 + (_size(right) if result is left else _size(result)))
    return result


def _contains(container: Any, item: Any) -> bool:
    if type(container) is str:
        place = container.find(item)
        taken(1 + (len(container) if place < 0 else place + len(item)))
        return place >= 0
    taken(1 + (len(container) if type(container) in (list, tuple, deque) else 0))
    return item in container


def _equal(left: Any, right: Any) -> Any:
    size = _size(left)
    taken(1 + (size if size == _size(right) else 0))
    return left == right


def _sized(value: Any) -> Any:
    taken(1 + _size(value))
    return value


_HOOKS = {
    f"_counted_{one.__name__.strip('_')}": one
    for one in (_each, _call, _item, _binary, _augmented, _contains, _equal, _sized)
}


class _Counting(ast.NodeTransformer):
    """Calls of the hooks in place of operations."""

    def _hook(self, node: ast.AST, name: str, *arguments: ast.expr) -> ast.expr:
        called = ast.Call(ast.Name(f"_counted_{name}", ast.Load()), list(arguments), [])
        return ast.copy_location(called, node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(one) for one in node.body]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        self.generic_visit(node)
        name = ast.Name("_counted_call", ast.Load())
        return ast.copy_location(ast.Call(name, [node.func, *node.args], node.keywords), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        return self._hook(node, "item", node.value, _index(node.slice)) if _loads(node) else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        kind = type(node.op).__name__
        if kind not in _OPERATORS:
            return node
        return self._hook(node, "binary", ast.Constant(kind), node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        node.value = self.visit(node.value)
        kind = type(node.op).__name__
        if kind not in _OPERATORS:
            return node
        before = self.visit(ast.parse(ast.unparse(node.target), mode="eval").body)
        value = self._hook(node, "augmented", ast.Constant(kind), before, node.value)
        return ast.copy_location(ast.Assign([node.target], value), node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.visit(part.value)
        return self._hook(node, "sized", node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        kind, right = node.ops[0], node.comparators[0]
        if len(node.ops) > 1 or not isinstance(kind, ast.In | ast.NotIn | ast.Eq | ast.NotEq):
            return node
        if isinstance(kind, ast.In | ast.NotIn):
            found = self._hook(node, "contains", right, node.left)
        else:
            found = self._hook(node, "equal", node.left, right)
        turned = isinstance(kind, ast.NotIn | ast.NotEq)
        return ast.copy_location(ast.UnaryOp(ast.Not(), found), node) if turned else found

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._hook(node, "each", node.iter)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        node.iter = self._hook(node.iter, "each", node.iter)
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.test = self._hook(node, "sized", ast.IfExp(node.test, ast.Constant(1), ast.Constant(0)))
        return node

    def _display(self, node: ast.List | ast.Tuple | ast.Set) -> ast.AST:
        self.generic_visit(node)
        starred = any(isinstance(one, ast.Starred) for one in node.elts)
        loads = not isinstance(node, ast.List | ast.Tuple) or _loads(node)
        return self._hook(node, "sized", node) if starred and loads else node

    visit_List = visit_Tuple = visit_Set = _display

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        return self._hook(node, "sized", node) if None in node.keys else node


def _loads(node: ast.Subscript | ast.List | ast.Tuple) -> bool:
    return isinstance(node.ctx, ast.Load)


def _index(node: ast.expr) -> ast.expr:
    """`a:b` as an object; of several axes each."""
    if isinstance(node, ast.Slice):
        parts = [ast.Constant(None) if part is None else part for part in (node.lower, node.upper, node.step)]
        return ast.copy_location(ast.Call(ast.Name("slice", ast.Load()), parts, []), node)
    if isinstance(node, ast.Tuple):
        node.elts = [_index(one) for one in node.elts]
    return node


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        tree = _Counting().visit(ast.parse(self.get_data(path), path))
        return builtins.compile(ast.fix_missing_locations(tree), path, "exec")

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(_HOOKS)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = tuple(packages)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not _below(fullname, self._packages):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def _below(name: str, packages: Sequence[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@contextmanager
def counting(*packages: str) -> Iterator[Callable[[str], ModuleType]]:
    """Inside, `load(name)` gives the modules of these packages with their operations counted. Everybody
    else's modules stay as they are."""
    for package in packages:
        importlib.import_module(package)  # so that its parents are there
    kept = {name: module for name, module in sys.modules.items() if _below(name, packages)}
    attributes = [
        (sys.modules[parent], child, getattr(sys.modules[parent], child))
        for parent, _, child in (package.rpartition(".") for package in packages)
        if parent
    ]
    finder = _Finder(packages)
    for name in kept:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield importlib.import_module
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if _below(name, packages)]:
            del sys.modules[name]
        sys.modules.update(kept)
        for parent, child, value in attributes:
            setattr(parent, child, value)

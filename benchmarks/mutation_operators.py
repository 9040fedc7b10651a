"""The operators: each looks at one node of the syntax tree and says which texts could stand in its place."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

Change = tuple[ast.expr | ast.stmt, str]
"""The node whose text is replaced, and what by."""


@dataclass(frozen=True)
class Signatures:
    """For each function name that is defined once: its parameters and their hints, `self` left out."""

    parameters: dict[str, list[str | None]]

    @classmethod
    def of(cls, package: Path) -> "Signatures":
        found: dict[str, list[list[str | None]]] = defaultdict(list)
        for file in sorted(package.rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    arguments = [each for each in node.args.args if each.arg not in ("self", "cls")]
                    hints = [ast.unparse(each.annotation) if each.annotation else None for each in arguments]
                    found[node.name].append(hints)
        return cls({name: all_[0] for name, all_ in found.items() if len(all_) == 1})


COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.Pow: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}
OPPOSITES = {"min": "max", "minimum": "maximum", "amin": "amax", "argmin": "argmax", "floor": "ceil"}
OPPOSITES |= {after: before for before, after in OPPOSITES.items()}


def compare(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """`<` for `<=`, `>=` for `<`, `!=` for `==`."""
    if not isinstance(node, ast.Compare):
        return
    for place, operator in enumerate(node.ops):
        for other in COMPARISONS[type(operator)]:
            ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"


def arithmetic(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """`-` for `+`, `/` for `*`."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _is_text_or_type(node):
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        yield node, f"(({left}) {ARITHMETIC[type(node.op)]} ({right}))"
    if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC and not _is_text(node.value):
        target, value = ast.unparse(node.target), ast.unparse(node.value)
        yield node, f"{target} {ARITHMETIC[type(node.op)]}= {value}"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    )


PATHS = re.compile(r"path|directory|folder|\brun\b|root|cache|aside|source_file", re.IGNORECASE)
TYPES = re.compile(r"(\w+\.)*([A-Z]\w*|None|str|int|float|bytes|bool|list|dict|tuple|type)(\[.*\])?")


def _is_text_or_type(node: ast.BinOp) -> bool:
    """Joined texts, lists and paths (nothing else can be done with them), and unions of types."""
    sides = (node.left, node.right)
    if any(_is_text(side) or (isinstance(side, ast.BinOp) and _is_text_or_type(side)) for side in sides):
        return True
    if isinstance(node.op, ast.Div) and PATHS.search(ast.unparse(node.left)):
        return True
    return isinstance(node.op, ast.BitOr) and any(TYPES.fullmatch(ast.unparse(side)) for side in sides)


def constant(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """A number one more, one less, or twice as large."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        value = node.value
        if isinstance(value, float):
            yield node, repr(value * 2 if value else 1.0)
        else:
            yield node, f"{value + 1}"
            if value:
                yield node, f"{value - 1}"


def negation(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """The condition the other way round. Not of `while`: such a loop mostly never ends."""
    if isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare):
        yield node.test, f"(not ({ast.unparse(node.test)}))"
    if isinstance(node, ast.comprehension):
        for condition in node.ifs:
            yield condition, "True"


def dropped_not(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """`x` for `not x`, `~x` and `-x`."""
    if not isinstance(node, ast.UnaryOp) or isinstance(node.operand, ast.Constant):
        return
    operand = ast.unparse(node.operand)
    yield node, f"bool({operand})" if isinstance(node.op, ast.Not) else f"({operand})"


def connective(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """`or` for `and`."""
    if isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield node, "(" + word.join(f"({ast.unparse(value)})" for value in node.values) + ")"


def deletion(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """A call, an assignment to something that outlives the function, a jump or a check that is left out."""
    if isinstance(node, ast.Lambda | ast.IfExp):
        return
    if getattr(node, "name", None) in ("__init__", "__post_init__") and not isinstance(node, ast.ClassDef):
        return  # without its attributes nothing works: found by anything
    for name in ("body", "orelse", "finalbody"):
        for statement in getattr(node, name, []):
            if _has_effect(statement, node):
                yield statement, "pass"


def _has_effect(statement: ast.stmt, parent: ast.AST) -> bool:
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Call | ast.Await) and not _is_quiet(statement.value)
    if isinstance(statement, ast.Assign):
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in statement.targets)
    if isinstance(statement, ast.Return):
        return isinstance(parent, ast.If)
    return isinstance(statement, ast.AugAssign | ast.Continue | ast.Break | ast.Raise)


def _is_quiet(node: ast.expr) -> bool:
    """Told to a person only; or a constructor of the parent class, without which nothing works."""
    text = ast.unparse(node)
    return text.startswith(("print(", "warnings.", "super().__init__", "console."))


def swapped(node: ast.AST, signatures: Signatures) -> Iterator[Change]:
    """Two neighbouring arguments of the same type, exchanged."""
    if not isinstance(node, ast.Call) or any(isinstance(each, ast.Starred) for each in node.args):
        return
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    hints = signatures.parameters.get(name, [])
    for place, (first, second) in enumerate(pairwise(zip(node.args, hints, strict=False))):
        if first[1] is not None and first[1] == second[1] and ast.dump(first[0]) != ast.dump(second[0]):
            texts = [ast.unparse(each) for each in node.args]
            texts[place], texts[place + 1] = texts[place + 1], texts[place]
            texts += [ast.unparse(each) for each in node.keywords]
            yield node, f"{ast.unparse(node.func)}({', '.join(texts)})"


def axis(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """Another dimension of a tensor."""
    if isinstance(node, ast.keyword) and node.arg in ("dim", "axis"):
        try:
            number = ast.literal_eval(node.value)
        except ValueError:
            return
        if isinstance(number, int):
            yield node.value, "0" if number else "-1"


def opposite(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """`max` for `min`."""
    if not isinstance(node, ast.Call):
        return
    if isinstance(node.func, ast.Name) and node.func.id in OPPOSITES:
        yield node.func, OPPOSITES[node.func.id]
    if isinstance(node.func, ast.Attribute) and node.func.attr in OPPOSITES:
        yield node.func, f"{ast.unparse(node.func.value)}.{OPPOSITES[node.func.attr]}"


def bound(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """A slice or a range that begins or ends one later or earlier."""
    if isinstance(node, ast.Slice):
        for side in (node.lower, node.upper):
            if side is not None and not isinstance(side, ast.Constant):
                yield side, f"({ast.unparse(side)}) + 1"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range":
        last = node.args[min(1, len(node.args) - 1)]
        yield last, f"({ast.unparse(last)}) - 1"


def truth(node: ast.AST, _: Signatures) -> Iterator[Change]:
    """`False` for `True`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node, str(not node.value)


MUTATORS: dict[str, Callable[[ast.AST, Signatures], Iterator[Change]]] = {
    each.__name__: each
    for each in (
        *(compare, arithmetic, constant, negation, dropped_not, connective),
        *(deletion, swapped, axis, opposite, bound, truth),
    )
}

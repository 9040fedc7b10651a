"""No test depends on how fast a machine is: clocks are faked, or events are waited for. A limit on a wait is
only a guard against waiting for ever, and is long."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
CLOCKS = {"time", "perf_counter", "monotonic", "process_time", "thread_time"}
LEAST = 60
"""Seconds: what is guarded by less may fail on a busy machine."""
SLEEPS = {
    "training/crew_runs.py": "chooses the moments at which processes are killed; every moment has to do",
}
"""Files that may sleep outside of a loop that waits for something, and why."""


def name_of(call: ast.Call) -> str:
    """`time.sleep` and `sleep` are both `sleep`."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def number(node: ast.AST | None) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def reads_a_clock(call: ast.Call) -> bool:
    """`time.monotonic()` and the like, but not `datetime.time()`."""
    if isinstance(call.func, ast.Attribute):
        return (
            call.func.attr in CLOCKS
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id == "time"
        )
    return isinstance(call.func, ast.Name) and call.func.id in CLOCKS - {"time"}


def polled(tree: ast.AST) -> set[ast.Call]:
    """The sleeps of loops that go on until something has happened."""
    loops = (node for node in ast.walk(tree) if isinstance(node, ast.While))
    return {call for loop in loops for call in calls(loop)}


def limits(call: ast.Call) -> Iterator[float]:
    """How long a call may wait."""
    given = [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
    if name_of(call) in {"wait", "join"} and call.args:
        given.append(call.args[0])
    return (seconds for seconds in map(number, given) if seconds is not None)


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {str(file.relative_to(TESTS)): ast.parse(file.read_text("utf-8")) for file in FILES}


def test_no_test_reads_a_clock(trees: dict[str, ast.Module]) -> None:
    found = [
        f"{name}:{call.lineno}" for name, tree in trees.items() for call in calls(tree) if reads_a_clock(call)
    ]
    assert not found, f"count steps, or give the code a clock of the test's own: {', '.join(found)}"


def test_no_test_sleeps_but_to_wait_for_something(trees: dict[str, ast.Module]) -> None:
    found = [
        f"{name}:{call.lineno}"
        for name, tree in trees.items()
        if name not in SLEEPS
        for call in set(calls(tree)) - polled(tree)
        if name_of(call) == "sleep" and number(call.args[0]) != 0
    ]
    assert not found, f"wait for an event, or for what it does: {', '.join(found)}"


def test_limits_are_only_guards(trees: dict[str, ast.Module]) -> None:
    found = [
        f"{name}:{call.lineno} ({seconds:g} s)"
        for name, tree in trees.items()
        for call in calls(tree)
        for seconds in limits(call)
        if seconds < LEAST
    ]
    assert not found, f"a busy machine may need longer: {', '.join(found)}"

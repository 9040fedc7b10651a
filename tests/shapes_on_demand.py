"""jaxtyping's checks of shapes, switched on for some tests and without any cost for all others.

jaxtyping replaces every function by one that first asks whether it is to check. The tests of what is built
upon the models would spend a third of their time on that question. So a function stays what it is. While a
test checks, it gets the code of another one, which calls a checked copy of it.
"""

import builtins
import inspect
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, ClassVar, TypeGuard

import jaxtyping

CHECKED = "__shape_checked__"
"""The checked copies, by number, where code of any module finds them."""
_jaxtyped: Callable[..., Any] = jaxtyping.jaxtyped
"""jaxtyping's own, which `install` puts `Switched` in the place of."""


class Switched:
    """A function whose shapes are checked while `on`."""

    all: ClassVar[list["Switched"]] = []
    on: ClassVar[bool] = False

    def __init__(self, function: FunctionType, checker: Any) -> None:
        self.function, self.checker = function, checker
        self.plain: FunctionType | None = None
        self.detour = _detour(function.__code__, len(self.all))
        self.all.append(self)
        if self.on:
            self.switch_on()

    def switch_on(self) -> None:
        function = self.function
        self.code, self.defaults = function.__code__, (function.__defaults__, function.__kwdefaults__)
        if self.plain is not None:
            self.plain.__code__ = self.code
        function.__defaults__ = function.__kwdefaults__ = None
        function.__code__ = self.detour

    def switch_off(self) -> None:
        self.function.__code__ = self.code
        self.function.__defaults__, self.function.__kwdefaults__ = self.defaults

    def checked(self) -> Callable[..., Any]:
        old = self.function
        defaults, named = self.defaults
        self.plain = FunctionType(self.code, old.__globals__, old.__name__, defaults, old.__closure__)
        self.plain.__kwdefaults__ = named
        self.plain.__annotations__ = dict(old.__annotations__)
        self.plain.__qualname__, self.plain.__module__ = old.__qualname__, old.__module__
        return _jaxtyped(self.plain, typechecker=self.checker)


def _detour(code: CodeType, number: int) -> CodeType:
    """Code that calls a checked copy. A function keeps its cells, so it has the free variables of `code`."""
    free = code.co_freevars
    text = f"""
def outer():
    {" = ".join([*free, "_"])} = None
    def {code.co_name if code.co_name.isidentifier() else "detour"}(*given_, **named_):
        if 0: {", ".join(free) or "pass"}
        return {CHECKED}[{number}](*given_, **named_)
"""
    outer = next(each for each in compile(text, code.co_filename, "exec").co_consts if _is_code(each))
    detour = next(each for each in outer.co_consts if _is_code(each))
    assert detour.co_freevars == free
    return detour


def _is_code(constant: object) -> TypeGuard[CodeType]:
    return isinstance(constant, CodeType)


class _Copies(dict[int, Callable[..., Any]]):
    """Each is made when it is called for the first time."""

    def __missing__(self, number: int) -> Callable[..., Any]:
        self[number] = Switched.all[number].checked()
        return self[number]


def switch(on: bool) -> None:
    if on != Switched.on:
        Switched.on = on
        for each in Switched.all:
            each.switch_on() if on else each.switch_off()


def install(modules: Sequence[str], checker: str) -> None:
    """From now on what is imported of these modules can be checked, by the checker of this name."""
    setattr(builtins, CHECKED, _Copies())
    jaxtyping.jaxtyped = _decorator
    jaxtyping.install_import_hook(modules, checker)


def _decorator(typechecker: Any) -> Callable[[Any], Any]:
    def decorate(what: Any) -> Any:
        function = vars(what).get("__init__") if isinstance(what, type) else what
        if not isinstance(function, FunctionType):
            return what
        if function is not what and function.__code__.co_filename != "<string>":
            return what  # no dataclass has made it: it is decorated by itself
        if "<locals>" in function.__qualname__:  # made anew at every call of what is around it
            return _jaxtyped(what, typechecker=typechecker) if Switched.on else what
        if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
            return _jaxtyped(what, typechecker=typechecker)  # its kind would not fit that of the other code
        Switched(function, typechecker)
        return what

    return decorate

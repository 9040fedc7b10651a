"""A fault without a changed file: another text for an import, another body for a function that is there."""

import gc
import sys
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType

FAULT = "mutation_fault.json"
"""In a folder on PYTHONPATH: which file of the package is faulty, and where its text is."""


def put_in(file: Path, text: bytes) -> None:
    """From now on an import of `file` compiles `text`. Its cached bytecode is neither read nor written."""
    target = str(file.resolve())
    plain_data, plain_stats = SourceFileLoader.get_data, SourceFileLoader.path_stats

    def get_data(self: SourceFileLoader, path: str) -> bytes:
        return text if str(path) == target else plain_data(self, path)

    def path_stats(self: SourceFileLoader, path: str):
        if str(path) == target:
            raise OSError("a faulty module has no date, so that no bytecode is kept of it")
        return plain_stats(self, path)

    SourceFileLoader.get_data = get_data  # type: ignore[method-assign]
    SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign]


class NotReplaced(Exception):
    """The function cannot be changed where it is: the module has to be imported with the fault."""


def replace_function(file: Path, text: bytes, name: str) -> None:
    """Give the living function of this qualified name the body that it has in `text`, wrapped or not."""
    path = str(file.resolve())
    if not any(getattr(module, "__file__", None) == path for module in list(sys.modules.values())):
        return  # imported later, with the fault
    new = [
        code for code in _codes(compile(text, path, "exec", dont_inherit=True)) if code.co_qualname == name
    ]
    old = [
        each
        for each in gc.get_objects()
        if type(each) is FunctionType
        and each.__code__.co_filename == path
        and each.__code__.co_qualname == name
    ]
    if len(new) != 1 or not old:
        raise NotReplaced(name)
    for function in old:
        if function.__code__.co_freevars != new[0].co_freevars:
            raise NotReplaced(name)
        function.__code__ = new[0]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)

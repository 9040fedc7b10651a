"""The mistakes that a person can mend. Everything else that is raised is a bug in dragoman."""

import errno
import os
import reprlib
import sys
from collections.abc import Callable, Iterable

from dragoman.extras import install_command


class UserError(ValueError):
    """Bad input, told in one sentence that names the file, line or field and the value.

    Commands print the sentence and exit with status 2; they never show a traceback for it.
    """


def run_script(main: Callable[[], None]) -> None:
    """Call the main function of a script. A `UserError` ends it as it ends a command."""
    try:
        main()
    except UserError as error:
        print(f"dragoman: {error}", file=sys.stderr)
        sys.exit(2)


_NO_MEMORY = ("can't allocate memory", "not enough memory", "std::bad_alloc", "CUDA out of memory")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means out of memory: in Python, the system, a CPU allocator (torch raises a plain
    RuntimeError) or a GPU."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, RuntimeError):
        return any(sign in str(error) for sign in _NO_MEMORY)
    return isinstance(error, MemoryError)


def missing_extra(module: str, extra: str, purpose: str) -> UserError:
    """The error to raise where an optional dependency is not installed."""
    return UserError(f"{purpose} needs the package '{module}': install it with  {install_command(extra)}")


def missing_package(module: str, purpose: str) -> UserError:
    """The error to raise where a package that comes with dragoman is not there."""
    return UserError(f"{purpose} needs the package '{module}': install it with  pip install {module}")


def shown(value: object, width: int = 60) -> str:
    """A value for an error message, shortened however large or deep it is."""
    try:
        text = _SHORT.repr(value)
    except ValueError:  # Python writes out no number of thousands of digits
        text = "a huge number"
    return text if len(text) <= width else text[: width - 3] + "..."


_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxdict, _SHORT.maxlist, _SHORT.maxtuple, _SHORT.maxset = 6, 20, 40, 40, 40
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 1000


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about a mistyped word: what it looks like, or nothing."""
    import difflib

    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


_MOST_NAMES = 10_000
"""Largest number of names in a directory that is searched for a similar name."""


def no_such_file(path: str | os.PathLike[str], kind: str = "file") -> UserError:
    """The error for a file that is not there; it names one beside it that is called almost the same."""
    folder, name = os.path.split(os.fspath(path))
    if kind == "file" and os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113
        return UserError(f"{path}: this is not a file; it may be a directory, a named pipe or a device")
    try:
        names = [entry.name for entry in os.scandir(folder or ".") if entry.name != name]
    except OSError:
        names = []
    advice = did_you_mean(name, names) if name and len(names) <= _MOST_NAMES else ""
    return UserError(f"{path}: there is no such {kind}{advice}")

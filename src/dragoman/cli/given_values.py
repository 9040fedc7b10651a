"""What no command may be given: a number that is none, an empty address, and an output that takes the place
of an input."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import UserError

_OUT = ("output", "out")
"""Names of the parameters that say where a result goes."""


def check_values(command: str, values: dict[str, Any]) -> None:
    """Refuse NaN, the address of an unset variable, and an output file that is read as well."""
    for name, value in values.items():
        if isinstance(value, float) and math.isnan(value):
            raise UserError(f"{command} --{name.replace('_', '-')}: expected a number, found nan")
    if values.get("cluster") == "":
        raise UserError("--cluster: the address is empty; give HOST:PORT, or local")
    out = next((values[name] for name in _OUT if values.get(name) is not None), None)
    if isinstance(out, Path):
        read = _texts(value for name, value in values.items() if name not in _OUT)
        refuse_overwriting([out], read)


def refuse_overwriting(written: Sequence[Path], read: Iterable[str]) -> None:
    """Refuse to write a file that is among those that are read: it would be lost."""
    kept = [path for path in written if path.is_file()]
    if not kept:
        return
    for text in read:
        name = Path(text.removeprefix("@"))
        for path in kept:
            if _is_same(path, name):
                raise UserError(f"--out {path}: this file is read as well, and would be lost; choose another")


def _is_same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except (OSError, ValueError):  # no file, a name that is too long, or no name at all
        return False


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str | Path):
            yield str(value)
        elif isinstance(value, list | tuple):
            yield from _texts(value)

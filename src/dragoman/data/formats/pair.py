"""A sentence pair, and the checks on text that does not come from `read_lines`."""

from dataclasses import dataclass

from dragoman.errors import UserError


@dataclass(frozen=True, slots=True)
class Pair:
    """Both sides of a translation, and the 1-based line (or row) at which they begin."""

    src: str
    tgt: str
    line: int
    links: tuple[int, ...] = ()
    """Words that belong together, where a file says so: source, target, source, target …, counted from 0."""
    document: str = ""
    """Names the document, where the file tells documents apart."""


def check_text(value: object, where: str, name: str) -> str:
    """`value` as text that the rest of the package accepts. Otherwise an error with place and field."""
    if not isinstance(value, str):
        kind = "null" if value is None else type(value).__name__
        raise UserError(f"{where}: expected text in '{name}', found {kind}")
    if "\0" in value:
        raise UserError(f"{where}: NUL in '{name}'; expected text")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        found = f"U+{ord(value[error.start]):04X}"
        raise UserError(f"{where}: half a surrogate pair ({found}) in '{name}'; expected text") from None
    return value

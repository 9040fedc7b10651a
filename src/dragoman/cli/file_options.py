"""Options that take files: `--valid dev.en dev.de` is `--valid dev.en --valid dev.de`."""

from pathlib import Path, PurePath
from typing import Any

_FILES = ("--valid", "--test")
_WHOLE = (".tsv", ".csv", ".jsonl", ".ndjson", ".parquet", ".tmx", ".xlf", ".xliff", ".po", ".mo", ".zip")
"""Suffixes of files that hold both languages."""
_ONE_LANGUAGE = ("pretrain", "finetune")
"""Commands whose files do not come in pairs."""


def gather_files(command: str, arguments: list[str], parameters: list[Any]) -> list[str]:
    """The arguments, with the option repeated for each file that belongs to it.

    An option that stands after the files of the command takes all names that follow it. Where it stands
    before them, it takes the second file of a parallel pair and no more.
    """
    spellings = {name for parameter in parameters for name in parameter.opts if name in _FILES}
    if not spellings or not any(p.param_type_name == "argument" and p.nargs != 1 for p in parameters):
        return arguments
    flags = {
        name for p in parameters for name in (*p.opts, *p.secondary_opts) if getattr(p, "is_flag", False)
    }
    flags |= {"-h", "--help"}
    gathered: list[str] = []
    files_before = False
    taken: dict[str, int] = dict.fromkeys(spellings, 0)
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return [*gathered, argument, *rest]
        if not argument.startswith("-"):
            files_before = files_before or (_is_file(argument) and not Path(argument).is_dir())
            gathered.append(argument)
            continue
        gathered.append(argument)
        if argument in flags or "=" in argument or not rest:
            continue
        gathered.append(rest.pop(0))
        if argument not in spellings:
            continue
        taken[argument] += 1
        while rest and _is_file(rest[0]):
            if not files_before and (command in _ONE_LANGUAGE or not _is_half(gathered[-1], taken[argument])):
                break
            gathered += [argument, rest.pop(0)]
            taken[argument] += 1
    return gathered


def _is_file(argument: str) -> bool:
    return not argument.startswith("-") and "=" not in argument


def _is_half(name: str, taken: int) -> bool:
    """Whether a file is the first of a parallel pair."""
    path = PurePath(name)
    suffix = (path.with_suffix("") if path.suffix == ".gz" else path).suffix.lower()
    return taken % 2 == 1 and suffix not in _WHOLE

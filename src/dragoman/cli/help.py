"""How commands present themselves: groups, whole summaries, names of values in plain words, examples, and
options that are spelt alike everywhere. And what no command may be given: a number that is none, an empty
address, an output that takes the place of an input."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path, PurePath
from typing import Any

from typer.core import TyperCommand, TyperGroup

from dragoman.cli.examples import EXAMPLES
from dragoman.errors import UserError

GROUPS = {
    "Train": (
        *("demo", "train", "resume", "pretrain", "finetune", "distill", "back-translate"),
        *("adapt", "add-language", "average", "tune"),
    ),
    "Use": ("translate", "generate", "chat", "fill", "predict", "embed", "score", "align"),
    "Evaluate": ("evaluate", "compare", "search-report"),
    "Look inside": ("explain", "studio", "lab", "tokenize"),
    "Serve and exchange": ("serve", "export", "import", "verify"),
    "Data": ("corpus", "filter", "align-corpus"),
    "This installation": ("doctor",),
}
"""Which commands `dragoman --help` lists together, in which order."""

_VALUES = {"str": "TEXT", "Path": "PATH", "path": "PATH", "int": "N", "int range": "N", "float": "X"}
_VALUES |= {"float range": "X", "file": "PATH", "directory": "PATH", "TEXT": "TEXT", "INTEGER": "N"}
_VALUES |= {"PATH": "PATH", "FLOAT": "X", "INTEGER RANGE": "N", "FLOAT RANGE": "X"}


_STAGED = "dragoman.staged"


class Command(TyperCommand):
    """A command whose help has examples, and no names of Python types."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _add_usual_spellings(self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = gather_files(self.name or "", args, self.params)
        if any("://" in argument for argument in args) and not {"-h", "--help"} & {*args}:
            from dragoman.cli.addresses import Staged

            staged = ctx.meta[_STAGED] = Staged()
            args = staged.localised(args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:  # classes of typer or click, depending on the version
            from dragoman.cli.usage import explained_usage

            explained = explained_usage(error, self.name or "", self.params)
            if explained is None:
                raise
            raise explained from None

    def invoke(self, ctx: Any) -> Any:
        check_values(self.name or "", ctx.params)
        with ctx.meta[_STAGED].kept() if _STAGED in ctx.meta else nullcontext():
            return super().invoke(ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        pieces = ["[OPTIONS]"]
        for parameter in self.get_params(ctx):
            if parameter.param_type_name == "argument":
                pieces.append(_in_usage(parameter))
        return pieces

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                rows["Arguments"].append((_argument_name(parameter), _with_plain_ranges(record[1])))
            else:
                rows["Options"].append((_with_plain_values(record[0]), _with_plain_ranges(record[1])))
        for title, listed in rows.items():
            if listed:
                with formatter.section(title):
                    formatter.write_dl(listed)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        examples = EXAMPLES.get(self.name or "", ())
        if examples:
            with formatter.section("Examples" if len(examples) > 1 else "Example"):
                for example in examples:
                    formatter.write(f"{' ' * formatter.current_indent}{example}\n")


class Commands(TyperGroup):
    """The list of commands in groups, each with its whole summary."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        known = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        shown = {name: command for name, command in known.items() if command and not command.hidden}
        width = max((len(name) for name in shown), default=0)
        for title, names in _groups(list(shown)):
            rows = [(name.ljust(width), first_sentence(shown[name].help or "")) for name in names]
            with formatter.section(title):
                formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        super().format_epilog(ctx, formatter)
        formatter.write("  Explain one:   dragoman help COMMAND\n")


def first_sentence(text: str) -> str:
    """The first sentence of a help text, on one line."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", paragraph, maxsplit=1)[0]


def _groups(names: list[str]) -> Iterator[tuple[str, list[str]]]:
    placed = {name for group in GROUPS.values() for name in group}
    for title, group in GROUPS.items():
        if listed := [name for name in group if name in names]:
            yield title, listed
    if others := [name for name in names if name not in placed]:
        yield "Other", others


def _add_usual_spellings(parameters: list[Any]) -> None:
    """Add the spellings -o and --output to every option --out."""
    taken = {spelling for parameter in parameters for spelling in parameter.opts}
    for parameter in parameters:
        if "--out" in parameter.opts or "--output" in parameter.opts:
            usual = [*(("-o",) if "-o" not in taken or "-o" in parameter.opts else ()), "--out", "--output"]
            parameter.opts = [*usual, *(one for one in parameter.opts if one not in usual)]


def _argument_name(parameter: Any) -> str:
    if parameter.metavar is not None:
        return parameter.metavar
    return parameter.name.upper() + ("..." if parameter.nargs != 1 else "")


def _in_usage(parameter: Any) -> str:
    name = _argument_name(parameter)
    return name if parameter.required or name.startswith("[") else f"[{name}]"


def _with_plain_ranges(text: str) -> str:
    """`[x>=1]` as `[at least 1]`."""
    text = re.sub(r"\b(\d+)<=x<=(\d+)", r"\1 to \2", text)
    return re.sub(r"\bx>=(\d+)", r"at least \1", text)


def _with_plain_values(names: str) -> str:
    """`--with <list[Path]>` as `--with PATH`; choices stay as they are."""

    def plain(found: re.Match[str]) -> str:
        inner = found[1].removeprefix("list[").removesuffix("]")
        return _VALUES.get(inner, inner)

    names = re.sub(r"<([^<>]+)>", plain, names)
    # --output is the same as --out, and one of them is enough to read.
    return names.replace("--out, --output", "--out")


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

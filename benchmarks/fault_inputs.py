"""Inputs that nobody means: files, directories, options and fields that are wrong, for every command."""

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.main import get_command

from dragoman.cli.main import app
from dragoman.config import to_dict
from dragoman.learning.resolve import resolve_config
from dragoman.training.verify import is_leftover
from fault_commands import run_command
from fault_common import Found
from fault_slots import DIRECTORIES, FILES, OPTION_BASES, RUN_SLOTS, SLOTS
from odd_inputs import odd_texts

LIMIT_SECONDS = 90.0
MEMORY = 12 << 30
"""Address space; what torch maps alone is some of it."""


@dataclass(frozen=True)
class Case:
    kind: str
    what: str
    arguments: tuple[str, ...]
    file: str = ""
    """A file to write before."""
    content: bytes = b""


_WORK = (
    *(
        "--bootstrap",
        "--iterations",
        "--lines",
        "--max-tokens",
        "--max-nodes",
        "--n-best",
        "--beam",
        "--beams",
    ),
    "--positions",
)
"""Options that ask for as much work as they say."""
_TOO_MUCH = "99999999999999999999"
_OPTION_VALUES = (
    *("-1", "0", "nan", "1e999", "x", "", _TOO_MUCH, "a.en", "nowhere/x", ".", "runs/t", "\udcff", "$(x)"),
    "é" * 300,
)
_FIELD_VALUES = (
    *("-1", "0", "1e999", ".nan", "x", "[]", "{a: 1}", "true", "null", _TOO_MUCH, "[1, 2]", "'", "-0.5"),
)


def _file_cases() -> Iterator[Case]:
    for slot, text in SLOTS.items():
        arguments = tuple(text.split())
        name = next(argument for argument in arguments if "bad." in argument)
        name = name.lstrip("@").rpartition("/")[2]
        for what, content in FILES.items():
            path, data = ("", b"") if content is None else (name, content)
            yield Case("files", f"{slot}: {what}", arguments, path, data)


def _directory_cases() -> Iterator[Case]:
    for slot, text in RUN_SLOTS.items():
        for directory in DIRECTORIES:
            arguments = (directory if argument == "RUN" else argument for argument in text.split())
            yield Case("directories", f"{slot}: {directory!r}", tuple(arguments))


def _option_cases() -> Iterator[Case]:
    """Every option that takes a value, with values that it cannot take."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name, text in OPTION_BASES.items():
        for option in commands[name].params if name in commands else ():
            flag = option.opts[-1]
            if not flag.startswith("-") or option.is_flag:
                continue
            for value in _OPTION_VALUES:
                if value != _TOO_MUCH or flag not in _WORK:
                    yield Case("options", f"{name} {flag} {value!r}", (*text.split(), flag, value))


def _field_cases() -> Iterator[Case]:
    """Every field of a configuration, with values that it cannot have."""
    plain = to_dict(
        resolve_config({"data": {"train": [{"files": ["a.en", "a.de"]}]}, "train": {"max_updates": 1}})
    )
    for name in _leaves(plain, ""):
        for value in _FIELD_VALUES:
            assignment = f"{name}={value}"
            yield Case("fields", assignment, (*OPTION_BASES["train"].split(), assignment))


def _leaves(plain: dict[str, object], prefix: str) -> Iterator[str]:
    for name, value in plain.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _odd_text_cases(seed: int) -> Iterator[Case]:
    """Texts of all kinds as lines: what cannot be a line is left out."""
    texts = [
        text for _, text in odd_texts(400, seed) if "\n" not in text and "\0" not in text and len(text) < 500
    ]
    data = "".join(f"{text}\n" for text in texts).encode()
    for slot in (
        "translate",
        "translate export",
        "embed",
        "generate",
        "pretrain",
        "corpus",
        "back-translate",
    ):
        arguments = tuple(SLOTS[slot].split())
        name = next(argument for argument in arguments if argument.startswith("bad."))
        yield Case("odd texts", slot, arguments, name, data)
    for number, text in enumerate(texts[:60]):
        if text and not text.startswith("-"):
            yield Case("odd texts", f"argument {number}", ("tokenize", "runs/t", "--", text))


def all_cases(seed: int) -> list[Case]:
    found = [*_file_cases(), *_directory_cases(), *_odd_text_cases(seed)]
    chance = random.Random(seed)
    for many, most in ((list(_option_cases()), 400), (list(_field_cases()), 300)):
        found += chance.sample(many, min(most, len(many)))
    return found


class Place:
    """A copy of everything that was made, which commands may look at and write to."""

    def __init__(self, made: Path, work: Path) -> None:
        self.directory = work / "place"
        shutil.copytree(made, self.directory, symlinks=True)
        (self.directory / "empty").mkdir()
        (self.directory / "temporary").mkdir()
        self.entries = self._now()
        self.original = made

    def _now(self) -> dict[Path, tuple[int, int]]:
        files = (p for p in self.directory.rglob("*") if not p.is_dir() or not any(p.iterdir()))
        return {path: (path.lstat().st_size, path.lstat().st_mtime_ns) for path in files}

    def try_case(self, case: Case) -> tuple[str, bool, str]:
        if case.file:
            (self.directory / case.file).write_bytes(case.content)
        ended = run_command(case.arguments, self.directory, memory=MEMORY, limit=LIMIT_SECONDS)
        outcome = ended.fault or ("refused" if ended.status else "harmless")
        if outcome == "refused" and ended.status not in (1, 2):
            outcome = "traceback"
        left = [path for path in self.directory.rglob("*") if is_leftover(path) and path not in self.entries]
        said = ended.output[-1500:] if outcome not in ("refused", "harmless") else ", ".join(map(str, left))
        self._restore()
        return outcome, bool(left), said

    def _restore(self) -> None:
        now = self._now()
        for path in now.keys() - self.entries.keys():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(missing_ok=True)
        for name in ("runs/x", "runs/x-corpus"):
            shutil.rmtree(self.directory / name, ignore_errors=True)
        changed = [path for path, stamp in self.entries.items() if now.get(path) != stamp]
        if changed:
            shutil.rmtree(self.directory)
            self.__init__(self.original, self.directory.parent)


def run_inputs(
    made: Path, work: Path, every: int, seed: int, mine: Callable[[str, str, int], bool]
) -> Iterator[Found]:
    """Every so manieth case. `mine` says which are to be tried."""
    place = None
    for number, case in enumerate(all_cases(seed)):
        if number % every == 0 and mine("inputs", case.kind, number):
            place = place or Place(made, work)
            outcome, left, said = place.try_case(case)
            yield Found("inputs", case.kind, number, outcome, left, case.what, said)
    if place is not None:
        shutil.rmtree(place.directory)

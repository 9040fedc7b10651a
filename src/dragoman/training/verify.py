"""Check every byte of what dragoman keeps, and say what is wrong and what to do about it.

    run, checkpoint      sizes and hashes of all files, the data, and exports that lie in the run
    prepared data        the hash of every block
    export, published    every file against its manifest, where there is one
    tokenizer            its own hash
    package of Argos     the checksums of its zip archive, and that all parts are there
    directory of these   each of them; the cache of prepared data is one

Nothing is changed. Leftovers of processes that died are listed apart: they harm nothing.
"""

import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from dragoman.errors import UserError
from dragoman.files import remove_unfinished
from dragoman.unfinished import hidden_part, is_locked

RUN, CHECKPOINT, STORE = "run", "checkpoint", "prepared data"
EXPORT, PUBLISHED, TOKENIZER, PACKAGE, COLLECTION = (
    "CTranslate2 export",
    "Hugging Face directory",
    "tokenizer",
    "package of Argos",
    "directory",
)

_SIGNS = {
    EXPORT: ("export.json", "model.bin"),
    RUN: ("config.yaml", "checkpoints"),
    CHECKPOINT: ("state.json", "model.safetensors"),
    STORE: ("meta.json", "train.lines", "train.jsonl"),
    PUBLISHED: ("config.json", "model.safetensors", "model.safetensors.index.json"),
}
"""Names that tell what a directory is. Several of each, so that one is known though a file is gone."""


@dataclass(frozen=True)
class Fault:
    """A problem and its remedy."""

    what: str
    cure: str


@dataclass
class VerifyReport:
    path: Path
    kind: str
    about: str = ""
    """A short description of the contents."""
    files: int = 0
    size: int = 0
    """Size in bytes of the files that were read."""
    faults: list[Fault] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Parts that could not be checked."""
    leftovers: list[Path] = field(default_factory=list)
    parts: list["VerifyReport"] = field(default_factory=list)

    def count(self, paths: Iterable[Path]) -> None:
        for path in paths:
            if path.is_file():
                self.files += 1
                self.size += path.stat().st_size

    def everything(self) -> list["VerifyReport"]:
        """This report and those of its parts."""
        return [self, *(each for part in self.parts for each in part.everything())]


def verify_path(path: Path) -> VerifyReport:
    """Check a file or directory. A UserError where it is none that dragoman makes."""
    if not path.exists():
        raise UserError(f"{path}: there is no such file or directory")
    if not path.is_dir():
        return _verify_package(path) if path.suffix == ".argosmodel" else _verify_tokenizer(path)
    kind = kind_of(path)
    if kind is None:
        raise UserError(
            f"{path}: this is no run, prepared data, export, Hugging Face directory or tokenizer, "
            "and there is none in it"
        )
    found = _check(path, kind)
    found.leftovers = find_leftovers(path)
    return found


def kind_of(path: Path) -> str | None:
    """The kind of a directory, recognised by the names in it. None if dragoman did not write it."""
    names = {entry.name for entry in path.iterdir()}
    if {"manifest.json", "state.json"} <= names:
        return CHECKPOINT
    for kind, signs in _SIGNS.items():
        if kind != CHECKPOINT and not names.isdisjoint(signs):
            return kind
    return COLLECTION if any(_members(path)) else None


def _members(path: Path) -> Iterable[Path]:
    entries = (entry for entry in sorted(path.iterdir()) if entry.is_dir() and not is_leftover(entry))
    return (entry for entry in entries if kind_of(entry) is not None)


def _check(path: Path, kind: str) -> VerifyReport:
    odd = [entry for entry in sorted(path.rglob("*")) if not is_file_or_directory(entry)]
    if odd:
        cure = "restore the file from a copy, or create the directory again"
        faults = [Fault(f"{entry}: not a file but {_type_of(entry)}", cure) for entry in odd]
        return VerifyReport(path, kind, faults=faults)
    if kind == RUN:
        from dragoman.training.verify_run import verify_run

        return verify_run(path, _check)
    checks: dict[str, Callable[[Path], VerifyReport]] = {
        CHECKPOINT: _verify_checkpoint,
        STORE: verify_store,
        EXPORT: _verify_export,
        PUBLISHED: _verify_published,
        COLLECTION: _verify_collection,
    }
    return checks[kind](path)


def _verify_collection(path: Path) -> VerifyReport:
    parts = [_check(entry, kind_of(entry) or COLLECTION) for entry in _members(path)]
    return VerifyReport(path, COLLECTION, f"{len(parts)} part{'s' * (len(parts) != 1)}", parts=parts)


def _verify_checkpoint(path: Path) -> VerifyReport:
    from dragoman import checkpoint

    report = VerifyReport(path, CHECKPOINT)
    try:
        report.count(
            path / name for name in (*checkpoint.verify_checkpoint(path), checkpoint.CHECKPOINT_MANIFEST)
        )
    except UserError as error:
        report.faults.append(Fault(str(error), "it cannot be rebuilt; the run has others"))
    return report


def verify_store(
    path: Path, cure: str = "prepare it again: the next training on these files does"
) -> VerifyReport:
    from dragoman.data.prepared import verify_prepared
    from dragoman.data.seal import unverifiable

    report = VerifyReport(path, STORE)
    report.count(path.iterdir())
    for problem in verify_prepared(path):
        if problem == unverifiable(path):
            report.notes.append(problem)
        else:
            report.faults.append(Fault(problem, cure))
    return report


def _verify_export(path: Path) -> VerifyReport:
    from dragoman.engines.manifest import verify_export

    report = VerifyReport(path, EXPORT)
    report.count(path.iterdir())
    cure = f"remove it and export again:  dragoman export RUN --out {quote(str(path))}"
    report.faults = [Fault(problem, cure) for problem in verify_export(path)]
    return report


def _verify_published(path: Path) -> VerifyReport:
    from dragoman.checkpoint.huggingface import read_model
    from dragoman.checkpoint.huggingface.files import NOT_VERIFIED, has_manifest, verify_directory

    report = VerifyReport(path, PUBLISHED)
    report.count(path.rglob("*"))
    cure = "download it again, or export it again with  dragoman export RUN --to huggingface"
    if has_manifest(path):
        report.faults = [Fault(problem, cure) for problem in verify_directory(path)]
        return report
    report.notes.append(NOT_VERIFIED)
    try:
        read_model(path)
    except UserError as error:
        report.faults.append(Fault(str(error), cure))
    return report


def _verify_tokenizer(path: Path) -> VerifyReport:
    from dragoman.text.tokenizer import Tokenizer

    report = VerifyReport(path, TOKENIZER)
    if not is_file_or_directory(path):
        raise UserError(f"{path}: not a file but {_type_of(path)}")
    try:
        found = Tokenizer.load(path)
    except UserError as error:
        report.faults.append(Fault(str(error), "a run and its data hold the same file: copy it from there"))
    else:
        report.about = f"{found.size:,} pieces"
        report.count([path])
    return report


def _verify_package(path: Path) -> VerifyReport:
    from dragoman.engines.argos import package_problems

    report = VerifyReport(path, PACKAGE)
    if not is_file_or_directory(path):
        raise UserError(f"{path}: not a file but {_type_of(path)}")
    report.count([path])
    problems = [f"{path}: {problem}" for problem in package_problems(path)]
    cure = f"export it again:  dragoman export RUN --to argos --out {quote(str(path))}"
    report.faults = [Fault(problem, cure) for problem in problems]
    return report


def is_file_or_directory(path: Path) -> bool:
    """A file or a directory, or a link to one: what can be opened without waiting for another process."""
    return path.is_file() or path.is_dir()


def _type_of(path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return "a link that leads nowhere"
    mode = path.stat().st_mode
    kinds = {stat.S_ISFIFO: "a named pipe", stat.S_ISSOCK: "a socket"}
    return next((name for test, name in kinds.items() if test(mode)), "a device")


_ENDS = r"[0-9a-f]{8}\.unfinished|replaced"  # unfinished.py
_ENDS += r"|creating|exporting|new|\d+\.part"  # versions before it
_NAMES = re.compile(rf"\..+\.({_ENDS})|\.unfinished-\w+|\.(saving|removing)-.+", re.DOTALL)
"""The last two are of caches of earlier versions, and of checkpoints."""
_LOCK, _REPLACED = "lock", ".replaced"


def is_leftover(path: Path) -> bool:
    """Whether a path is an unfinished file or directory, by its name."""
    return _NAMES.fullmatch(path.name) is not None


def find_leftovers(directory: Path) -> list[Path]:
    """Unfinished files and directories in a directory and beside it that no process holds."""
    whole = directory.resolve()
    names = "|".join(re.escape(name) for name in {whole.name, hidden_part(whole.name)})
    mine = re.compile(rf"\.({names})\.({_ENDS})")
    own = (entry for entry in _entries(whole.parent) if mine.fullmatch(entry.name))
    found = [entry for entry in (*own, *_below(directory)) if is_leftover(entry)]
    return [entry for entry in found if not _held(entry)]


def remove_leftovers(paths: list[Path]) -> None:
    """Delete them; a directory that was to be replaced, and was not, gets its name back."""
    for path in paths:
        if path.name.endswith(_REPLACED):
            remove_unfinished(path.with_name(path.name[1 : -len(_REPLACED)]))
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _below(directory: Path) -> Iterator[Path]:
    """Every entry below a directory, without the contents of unfinished directories."""
    for entry in _entries(directory):
        yield entry
        if entry.is_dir() and not entry.is_symlink() and not is_leftover(entry):
            yield from _below(entry)


def _entries(directory: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(directory.iterdir())
    return []


def _held(path: Path) -> bool:
    """Whether a living process has locked it, or the run whose checkpoints it is among."""
    locks = [path]
    if path.is_dir():
        locks.append(path / _LOCK)
    if path.parent.name == "checkpoints":
        locks.append(path.parent.parent / ".lock")
    return any(is_locked(lock) for lock in locks)

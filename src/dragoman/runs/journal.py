"""A file that is written piece by piece, and goes on after an interruption.

    out.part   finished pieces, in order; renamed to out at the end
    out.json   journal: what it is made from, progress, and hashes of the finished part and of itself

After a piece its bytes are synced to disk, then the journal. A killed job resumes after the last complete
piece. A file that was started from something else is refused.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from dragoman.errors import UserError
from dragoman.files import (
    explained,
    move,
    open_regular,
    open_to_append,
    read_regular,
    replace_file,
    sync_file,
    try_lock,
)
from dragoman.system import read_at

_JOURNAL_LIMIT, _BLOCK = 1 << 20, 1 << 20
_SEAL, _PROGRESS = "seal", ".progress"


@dataclass(frozen=True)
class Done:
    """What has been written."""

    lines: int = 0
    bytes: int = 0
    too_long: int = 0
    """Lines with more tokens than allowed: their translation is left empty."""
    cut_off: int = 0
    """Translations that were cut at the length limit."""
    loops: int = 0
    """Translations that were stuck in a loop and were redone."""
    unproven: int = 0
    """Translations of an exhaustive search that may not be the optimum."""
    flagged: int = 0
    """Translations whose confidence is too low."""
    failed: int = 0
    """Lines that a machine of a cluster broke at, and that were left out."""
    finished: bool = False
    sha256: str = ""
    """Hash of the bytes; None from earlier versions."""

    def plus(self, counts: "Done") -> "Done":
        """With the counts of a further piece."""
        names = ("lines", "bytes", "too_long", "cut_off", "loops", "unproven", "flagged", "failed")
        return replace(self, **{name: getattr(self, name) + getattr(counts, name) for name in names})


CorpusPiece = tuple[bytes, Done]
"""Some lines, and their counts; those of the bytes are made here."""


def write_pieces(out: Path, task: Mapping[str, Any], pieces: Callable[[Done], Iterator[CorpusPiece]]) -> Done:
    """Write what `task` describes to `out`; continue an interrupted call. `pieces` gives those that come
    after what is done."""
    if out.is_dir():
        raise UserError(f"{out}: this is a directory; give the name of a file")
    described = json.loads(json.dumps(task))
    if (done := _read_journal(out, described)).finished:
        return done
    with explained(_part(out)), _open_part(out) as file:
        if (done := _read_journal(out, described)).finished:  # another process has just finished it
            _part(out).unlink(missing_ok=True)
            return done
        digest = _checked(_part(out), file.fileno(), done, _journal(out))
        file.truncate(done.bytes)  # drop everything written after the last journal entry
        _write_journal(out, described, done)
        for data, counts in pieces(done):
            file.write(data)
            digest.update(data)
            done = replace(done.plus(replace(counts, bytes=len(data))), sha256=digest.hexdigest())
            sync_file(file)
            _write_journal(out, described, done)
        move(_part(out), out)
        done = replace(done, finished=True)
        _write_journal(out, described, done)
    return done


def replace_by_pieces(
    out: Path, task: Mapping[str, Any], pieces: Callable[[Done], Iterator[CorpusPiece]]
) -> Done:
    """The same for a file that leaves no journal and replaces what has its name; until it is complete, all of
    it is in OUT.progress.part and OUT.progress.json."""
    work = out.with_name(f"{out.name}{_PROGRESS}")
    if not work.exists() and not _part(work).exists():
        _journal(work).unlink(missing_ok=True)  # killed after the rename below
    done = write_pieces(work, task, pieces)
    with explained(out):
        move(work, out)
        _journal(work).unlink()
    return done


def _read_journal(out: Path, described: Mapping[str, Any]) -> Done:
    path = _journal(out)
    if not path.exists():
        if out.exists():
            raise UserError(f"{out}: there is a file already, and nothing says how it was made; remove it")
        return Done()
    with explained(path, "read"):
        raw = read_regular(path, _JOURNAL_LIMIT)
    try:
        data = json.loads(raw)
        task, done = dict(data["task"]), Done(**data["done"])
        seal = data.pop(_SEAL, None)  # earlier versions wrote none
        if set(data) != {"task", "done"} or seal not in (None, _seal_of(data)):
            raise ValueError(seal)
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{path}: damaged; remove it and {_part(out).name} to begin anew") from None
    for name, value in described.items():
        if task.get(name) != value:
            was, now = (str(each)[:40] for each in (task.get(name), value))
            raise UserError(
                f"{out}: it was begun with {name} {was}, not {now}; go on as it was begun, choose another "
                f"file, or remove {path.name} and {(out if done.finished else _part(out)).name}"
            )
    if out.exists():
        if out.stat().st_size != done.bytes:
            raise UserError(f"{out}: changed: it has {out.stat().st_size} bytes, its journal {done.bytes}")
        with open_regular(out) as file:
            _checked(out, file.fileno(), done, path)
        if not done.finished:  # killed right after the last rename
            done = replace(done, finished=True)
            with explained(path):
                _write_journal(out, described, done)
    elif done.finished:
        raise UserError(f"{out}: gone, though {path.name} says that it was finished; remove that too")
    return done


def _write_journal(out: Path, described: Mapping[str, Any], done: Done) -> None:
    data = {"task": dict(described), "done": asdict(done)}
    sealed = data | {_SEAL: _seal_of(data)}
    replace_file(_journal(out), json.dumps(sealed, indent=1, ensure_ascii=False).encode())


def _seal_of(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


@contextmanager
def _open_part(out: Path) -> Iterator[BinaryIO]:
    """The file of finished lines, locked by this process."""
    with open_to_append(_part(out), readable=True) as file:
        if try_lock(file.fileno()) is False:
            raise UserError(f"{out}: another process is writing it")
        yield file


def _checked(path: Path, descriptor: int, done: Done, journal: Path) -> "hashlib._Hash":
    """The hash of the finished lines, to continue with. They must be unchanged."""
    digest, read = hashlib.sha256(), 0
    while block := read_at(descriptor, min(done.bytes - read, _BLOCK), read):
        digest.update(block)
        read += len(block)
    if read < done.bytes:
        raise UserError(f"{path}: shorter than {journal.name} says; remove both to begin anew")
    if done.sha256 and digest.hexdigest() != done.sha256:
        raise UserError(
            f"{path}: changed: its SHA-256 is not the one in {journal.name}; remove both to begin anew"
        )
    return digest


def _part(out: Path) -> Path:
    return out.with_name(f"{out.name}.part")


def _journal(out: Path) -> Path:
    return out.with_name(f"{out.name}.json")

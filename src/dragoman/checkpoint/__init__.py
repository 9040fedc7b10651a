"""Checkpoints: save, verify, load, average.

    root/0001000/
        model.safetensors  optim.safetensors  ema.safetensors      tensors by parameter name
        state.json                                                 everything else
        manifest.json                                              size and SHA-256 of each file above

A checkpoint is written to a temporary directory, which is renamed when all of it is on disk: at any moment a
checkpoint is complete or absent. Reading checks every hash, because safetensors loads a file with a flipped
bit without an error. There is no pickle.
"""

import errno
import json
import logging
import re
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.checkpoint.files import (
    Content,
    Damaged,
    disk_full,
    from_bytes,
    from_tensors,
    is_disk_full,
    load_tensors,
    read_listing,
    serialise,
    space_for,
)
from dragoman.errors import UserError
from dragoman.files import (
    Written,
    discard,
    final_name,
    hash_file,
    make_directories,
    move,
    new_directory,
    remove_all_unfinished,
    remove_unfinished,
    write_new,
)
from dragoman.plain import read_json

CHECKPOINT_MANIFEST = "manifest.json"
STATE = "state.json"
_SUFFIX = ".safetensors"
_LARGEST_STATE, _MOST_STATE_VALUES = 64 << 20, 1_000_000
_EARLIER = (".saving-", ".removing-")
"""Unfinished directories of earlier versions."""
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP)

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """A verified checkpoint. Tensors are read when they are needed."""

    path: Path
    parts: tuple[str, ...]
    """`model`, `optim`, `ema`: the tensor files it has."""
    state: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path.name

    def read(self, part: str, device: torch.device | str = "cpu") -> Tensors:
        """The tensors of one part by name."""
        file = self.path / f"{part}{_SUFFIX}"
        if part not in self.parts:
            raise UserError(f"{self.path}: this checkpoint has no {file.name}")
        try:
            return load_tensors(file, device)
        except OSError as error:
            raise _unreadable(file, error) from None


def save(
    root: Path, name: str, tensors: Mapping[str, Mapping[str, Tensor]], state: Mapping[str, Any]
) -> Path:
    """Write the checkpoint `root/name` durably.

    Raises a UserError, and leaves everything else in `root` unchanged, if a tensor contains NaN or Inf or if
    the disk is full. A checkpoint of the same name is replaced.
    """
    refuse_non_finite(tensors)
    contents = _contents(tensors)
    contents[STATE] = from_bytes(json.dumps(state, indent=1, sort_keys=True, allow_nan=False).encode())
    needed = space_for(contents.values())
    try:
        make_directories(root)
        clean(root)
        if shutil.disk_usage(root).free < needed:
            raise disk_full(root, needed)
        with new_directory(root / name, replace_existing=True) as directory:
            written = {
                file: write_new(directory / file, content.chunks) for file, content in contents.items()
            }
            write_new(directory / CHECKPOINT_MANIFEST, (serialise(written),))
    except OSError as error:
        if is_disk_full(error):
            raise disk_full(root, needed) from None
        where = final_name(root / name)
        raise UserError(f"{where}: the checkpoint cannot be written ({error.strerror})") from error
    return root / name


def _contents(tensors: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Content]:
    return {f"{part}{_SUFFIX}": from_tensors(entries) for part, entries in tensors.items()}


def space_needed(tensors: Mapping[str, Mapping[str, Tensor]]) -> int:
    """Disk space of a checkpoint of these tensors, without its state."""
    return space_for(_contents(tensors).values())


def space_used(root: Path) -> int:
    """Disk space of the checkpoints."""
    return sum(file.stat().st_size for name in names(root) for file in (root / name).iterdir())


def refuse_non_finite(tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
    for part, entries in tensors.items():
        for name, tensor in entries.items():
            if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
                raise UserError(
                    f"{part}: '{name}' holds NaN or infinite values, so no checkpoint is written: "
                    "resume with a lower optim.rate or train.clip, or a longer schedule.warmup"
                )


def verify_checkpoint(path: Path) -> dict[str, Written]:
    """Check size and hash of every file; the error names the one that is damaged."""
    files = _read_manifest(path / CHECKPOINT_MANIFEST)
    for name, expected in files.items():
        file = path / name
        try:
            size = file.stat().st_size
            if size != expected.size:
                raise Damaged(f"{file}: damaged: it has {size:,} bytes, its manifest says {expected.size:,}")
            if hash_file(file) != expected.sha256:
                raise Damaged(f"{file}: damaged: its SHA-256 is not the one in its manifest")
        except OSError as error:
            raise _unreadable(file, error) from None
    return files


def _unreadable(path: Path, error: OSError) -> UserError:
    if error.errno in _NOT_THERE:
        return Damaged(f"{path}: damaged: it cannot be read ({error.strerror})")
    return UserError(
        f"{path}: cannot be read ({error.strerror or error}), and may be whole, so nothing is done without "
        f"it: make it readable, or move {path.parent} away to go on without it"
    )


def _read_manifest(path: Path) -> dict[str, Written]:
    try:
        if not path.parent.is_dir():
            raise Damaged(f"{path.parent}: there is no such checkpoint")
        files = read_listing(path)
    except OSError as error:
        raise _unreadable(path, error) from None
    if any(Path(name).name != name for name in files) or STATE not in files:
        raise Damaged(f"{path}: damaged: this is not the manifest of a checkpoint")
    return files


def load_checkpoint(path: Path) -> Checkpoint:
    """Verify every file and read the state."""
    remove_unfinished(path)  # a process that died while it replaced this checkpoint
    files = verify_checkpoint(path)
    parts = tuple(file.removesuffix(_SUFFIX) for file in files if file.endswith(_SUFFIX))
    return Checkpoint(path, parts, read_state(path))


def read_state(path: Path) -> dict[str, Any]:
    """The content of state.json of a checkpoint, not verified."""
    try:
        state = read_json(path / STATE, _LARGEST_STATE, _MOST_STATE_VALUES)
    except OSError as error:
        raise _unreadable(path / STATE, error) from None
    except UserError as error:
        raise Damaged(str(error)) from None
    if not isinstance(state, dict):
        raise Damaged(f"{path / STATE}: expected a mapping of fields")
    return state


def names(root: Path) -> list[str]:
    """The checkpoints of training, oldest first: their names are their update numbers."""
    if not root.is_dir():
        return []
    return sorted((entry.name for entry in root.iterdir() if re.fullmatch(r"\d+", entry.name)), key=int)


def checkpoint_name(update: int) -> str:
    return f"{update:07d}"


def newest(root: Path, warn: Callable[[str], None] | None = None) -> Checkpoint:
    """The newest intact checkpoint. Newer damaged ones are named in a warning; one that cannot be read is an
    error, since it may be intact."""
    warn = warn or logging.getLogger("dragoman").warning
    damaged = []
    for name in reversed(names(root)):
        try:
            found = load_checkpoint(root / name)
        except Damaged as error:
            if name not in names(root):  # running training has removed it: there are newer ones now
                return newest(root, warn)
            damaged.append(str(error))
            continue
        for message in damaged:
            warn(f"{message}; going back to checkpoint {name}")
        return found
    if damaged:
        raise UserError(f"{root}: no checkpoint can be used: {'; '.join(damaged)}")
    raise UserError(f"{root}: there is no checkpoint yet")


def set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it is no longer used; it is kept for inspection."""
    aside = path.with_name(f"{path.name}.damaged")
    if aside.exists():
        discard(aside)
    move(path, aside)


def clean(root: Path) -> None:
    """Remove leftovers of interrupted saves and removals. The caller must hold the lock of the run."""
    remove_all_unfinished(root)
    for entry in root.iterdir():
        if entry.name.startswith(_EARLIER):
            shutil.rmtree(entry, ignore_errors=True)


def prune(root: Path, keep: int, protect: Collection[str]) -> None:
    """Remove all but the newest `keep` (at least two) and the protected checkpoints."""
    found = names(root)
    for name in found[: -max(2, keep)]:
        if name not in protect:
            discard(root / name)


def average_checkpoints(paths: Sequence[Path], part: str = "model") -> Tensors:
    """The average of the weights of several checkpoints, computed in float64."""
    if not paths:
        raise UserError("average: no checkpoint was named")
    total: Tensors = {}
    first = load_checkpoint(paths[0]).read(part)
    for path in paths:
        tensors = load_checkpoint(path).read(part)
        refuse_other_names(path, tensors, first)
        for name, tensor in tensors.items():
            wide = tensor.double() if tensor.is_floating_point() else tensor
            if name not in total or not tensor.is_floating_point():  # integer counters come from the last one
                total[name] = wide
            else:
                total[name] += wide
    return {
        name: (total[name] / len(paths)).to(tensor.dtype) if tensor.is_floating_point() else total[name]
        for name, tensor in first.items()
    }


def told_best(state: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Name, metric and value of the best checkpoint at the time a checkpoint was written, so that a lost
    best.json is noticed."""
    progress = state.get("progress")
    own = progress.get("best") if isinstance(progress, Mapping) else None
    return own if isinstance(own, Mapping) else None


def refuse_lost_best(file: Path, last: Checkpoint) -> None:
    """If `file` is missing, the last checkpoint counts as the best, unless another one was better."""
    root = last.path.parent
    told = {(told_best(last.state) or {}).get("name")}
    for mean in (path for path in root.iterdir() if not path.name.isdecimal() and path.is_dir()):
        with suppress(UserError):
            if (told_best(load_checkpoint(mean).state) or {}).get("name") == mean.name:
                told.add(mean.name)
    for name in told - {None, last.name}:
        if _is_whole(root / Path(str(name)).name):
            raise UserError(
                f"{file}: missing, though {name} was the best checkpoint: resume the run, which writes it "
                "again, or choose a checkpoint by its name"
            )


def _is_whole(path: Path) -> bool:
    try:
        verify_checkpoint(path)
    except UserError:
        return False
    return True


def refuse_other_names(source: object, found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> None:
    """Tensors must match by name and shape; a missing or an extra one is an error."""
    missing = [name for name in expected if name not in found]
    extra = [name for name in found if name not in expected]
    for problem, which in (("lacks", missing), ("has an unknown", extra)):
        if which:
            more = f" and {len(which) - 1} more" if len(which) > 1 else ""
            raise UserError(f"{source}: {problem} tensor '{which[0]}'{more}")
    for name, tensor in expected.items():
        if found[name].shape != tensor.shape:
            was, wanted = list(found[name].shape), list(tensor.shape)
            raise UserError(f"{source}: '{name}' has the shape {was}, this model needs {wanted}")

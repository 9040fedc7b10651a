"""NumPy files, plain or compressed with gzip: `a.images.npy` has its labels in `a.labels.npy`."""

import io
import re
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from dragoman.data.formats.lines import read_chunks
from dragoman.errors import UserError

_STEM = re.compile(r"(\.(images|series|values))?\.npy(\.gz)?$")


def is_array(path: str) -> bool:
    return path.endswith((".npy", ".npy.gz"))


def read_array(path: str, dimensions: tuple[int, ...]) -> np.ndarray:
    try:
        found = npy.read_array(io.BytesIO(b"".join(read_chunks(path))), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise UserError(f"{path}: not a NumPy array that can be read ({error})") from None
    if not isinstance(found, np.ndarray) or found.ndim not in dimensions:
        told = " or ".join(map(str, dimensions))
        shape = getattr(found, "shape", "no array")
        raise UserError(f"{path}: expected an array of {told} dimensions, found {shape}")
    if not len(found):
        raise UserError(f"{path}: the array is empty")
    return found


def labels_file(path: str) -> str | None:
    """The file of labels next to a file of images or series, or None if it does not exist."""
    stem = _STEM.sub("", path)
    return next(
        (f"{stem}.labels{end}" for end in (".npy", ".npy.gz") if Path(f"{stem}.labels{end}").is_file()), None
    )


def read_labels(path: str, count: int) -> list[str]:
    """The labels of an array with `count` entries."""
    file = labels_file(path)
    if file is None:
        raise UserError(
            f"{path}: expected its labels in {_STEM.sub('', path)}.labels.npy; there is no such file"
        )
    found = read_array(file, (1,))
    if len(found) != count:
        raise UserError(
            f"{file}: expected {count:,} labels as there are entries in {path}, found {len(found):,}"
        )
    return [str(label) for label in found.tolist()]

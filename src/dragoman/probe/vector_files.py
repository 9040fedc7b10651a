"""Vectors into a file, chunk after chunk, in constant memory; it appears as a whole or not at all.

.npy       float32, N × D; with all layers N × L × D. Which row is what is said beside it, in a .tsv: the
           number of the line, and the piece, the word or the text
.parquet   line, label, layer and vector; the package pyarrow is needed
"""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from dragoman.errors import UserError, missing_extra
from dragoman.files import explained, replacing
from dragoman.probe.embed import TextVectors
from dragoman.text.segment import one_line

Numbered = Iterable[tuple[int, TextVectors]]
"""Lines from 1 on, and their vectors."""
_GROUP = 1024
"""Lines of a group of rows in a Parquet file."""


def write_vectors(path: Path, found: Numbered, all_layers: bool) -> int:
    """Write vectors in the format of the file's suffix. Returns the number of rows."""
    kinds = {".npy": _write_npy, ".parquet": _write_parquet}
    if path.suffix not in kinds:
        raise UserError(f"--out: expected a name that ends in {' or '.join(kinds)}, found '{path.name}'")
    with explained(path):
        return kinds[path.suffix](path, found, all_layers)


def _write_npy(path: Path, found: Numbered, all_layers: bool) -> int:
    beside, rows, shape = path.with_suffix(".tsv"), 0, (0, 0)
    with (
        replacing(path) as whole,
        replacing(beside) as labels,
        tempfile.TemporaryFile(dir=path.parent) as numbers,
    ):
        for line, vectors in found:
            taken = np.ascontiguousarray(vectors.rows, dtype="<f4")
            rows, shape = rows + len(taken), taken.shape[1:]
            numbers.write(taken.tobytes())
            for label in vectors.labels:
                labels.write(f"{line}\t{one_line(label)}\n".encode())
        _refuse_nothing(path, rows)
        dimensions = (rows, *(shape if all_layers else shape[1:]))
        header = {"descr": "<f4", "fortran_order": False, "shape": dimensions}
        np.lib.format.write_array_header_1_0(whole, header)
        numbers.seek(0)
        shutil.copyfileobj(numbers, whole)
    return rows


def _write_parquet(path: Path, found: Numbered, all_layers: bool) -> int:  # noqa: ARG001 (layers are a column)
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise missing_extra("pyarrow", "parquet", f"writing {path}") from None
    rows, writer, waiting = 0, None, []
    with replacing(path) as file:
        for line, vectors in found:
            count, width = len(vectors.rows), vectors.rows.shape[2]
            flat = pyarrow.array(np.ascontiguousarray(vectors.rows, dtype=np.float32).reshape(-1))
            columns = {
                "line": pyarrow.array(np.full(count * len(vectors.layers), line, dtype=np.int64)),
                "label": pyarrow.array([label for label in vectors.labels for _ in vectors.layers], "string"),
                "layer": pyarrow.array(np.tile(np.array(vectors.layers, dtype=np.int32), count)),
                "vector": pyarrow.FixedSizeListArray.from_arrays(flat, width),
            }
            waiting.append(pyarrow.table(columns))
            rows += count
            writer = writer or pyarrow.parquet.ParquetWriter(file, waiting[0].schema)
            if len(waiting) == _GROUP:
                writer.write_table(pyarrow.concat_tables(waiting))
                waiting = []
        _refuse_nothing(path, rows)
        assert writer is not None, "there are rows"
        if waiting:
            writer.write_table(pyarrow.concat_tables(waiting))
        writer.close()
    return rows


def _refuse_nothing(path: Path, rows: int) -> None:
    if not rows:
        raise UserError(f"{path}: there is nothing to write: the text has no words")

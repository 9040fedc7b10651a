"""Series: many with one label each, or one with several channels to be forecast."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from dragoman.data.formats import csv, jsonl, tsv
from dragoman.data.formats.lines import ExpansionGuard, read_lines
from dragoman.data.formats.parquet import batches, open_table, refuse_same_names
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import VectorExample
from dragoman.data.vectors.arrays import is_array, read_array, read_labels
from dragoman.errors import UserError

_LARGEST = 1e30
"""Larger numbers are no measurements; and their squares are more than the network's numbers can hold."""
_LONGEST_TIME = 64
"""Characters of a time that are kept."""
_MISSING = ("", "na", "nan", "null", "none", "?")
_LABELS = ("label", "class", "target")
_TIMES = ("date", "time", "datetime", "timestamp", "index")
"""Names of columns that tell the time of a row, even if as numbers. They are no channels unless named."""


@dataclass(frozen=True)
class Series:
    """One series of several channels."""

    values: np.ndarray
    """N C, with NaN for missing values."""
    names: tuple[str, ...]
    times: tuple[str, ...] = ()
    """The values of the first column that holds times or no numbers."""


def read_series(path: str, columns: Sequence[str]) -> Series:
    """Read the named columns, or all columns that hold numbers and no times if none is named."""
    series = _read(path, columns)
    for place in np.flatnonzero(np.isnan(series.values).all(axis=0)).tolist():
        raise UserError(
            f"{path}: column '{series.names[place]}' has no number; name the others in task.series.columns"
        )
    return series


def _read(path: str, columns: Sequence[str]) -> Series:
    if is_array(path):
        values = _measured(read_array(path, (1, 2)), path)
        values = values[:, None] if values.ndim == 1 else values
        names = tuple(str(number) for number in range(1, values.shape[1] + 1))
        return _chosen(Series(values, names), columns, path)
    if path.endswith(".parquet"):
        return _chosen(_of_parquet(path, columns), columns, path)
    rows = iter(_table(path))
    _, header = next(rows)
    body = [(line, cells) for line, cells in rows if cells]
    if not body:
        raise UserError(f"{path}: expected a header and rows of numbers; there is one line")
    names = tuple(cell.strip() for cell in header)
    refuse_same_names(names, path)
    if all(_number(cell) is not None for cell in header):
        raise UserError(f"{path}:1: expected the names of the columns, found numbers; write a header")
    for line, cells in body:
        if len(cells) != len(names):
            raise UserError(
                f"{path}:{line}: expected {len(names)} columns as in the first line, found {len(cells)}"
            )
    tells = [_tells_time(n) or _number(body[0][1][place]) is None for place, n in enumerate(names)]
    wanted = columns or [name for name, told in zip(names, tells, strict=True) if not told]
    refuse_other_columns(wanted, names, path)
    places = [names.index(name) for name in wanted]
    told = tells.index(True) if True in tells else None
    values = np.empty((len(body), len(places)))
    for row, (line, cells) in enumerate(body):
        for column, place in enumerate(places):
            number = _number(cells[place])
            if number is None:
                raise UserError(
                    f"{path}:{line}: expected a number in column '{names[place]}', found {cells[place]!r:.40}"
                )
            values[row, column] = number
    times = () if told is None else tuple(cells[told] for _, cells in body)
    return Series(values, tuple(wanted), times)


def refuse_other_columns(wanted: Sequence[str], names: Sequence[str], path: str) -> None:
    for name in wanted:
        if name not in names:
            raise UserError(f"{path}: there is no column '{name}'; there are {', '.join(names)}")
    if not wanted:
        raise UserError(f"{path}: no column holds numbers; there are {', '.join(names)}")


def _chosen(series: Series, columns: Sequence[str], path: str) -> Series:
    wanted = columns or series.names
    refuse_other_columns(wanted, series.names, path)
    places = [series.names.index(name) for name in wanted]
    return Series(series.values[:, places], tuple(wanted), series.times)


def _of_parquet(path: str, columns: Sequence[str]) -> Series:
    with open_table(path) as (table, file):
        import pyarrow

        schema, size, kinds = table.schema_arrow, Path(path).stat().st_size, cast(Any, pyarrow.types)
        refuse_same_names(schema.names, path)
        numeric = [f.name for f in schema if kinds.is_integer(f.type) or kinds.is_floating(f.type)]
        channels = [name for name in numeric if not _tells_time(name)]
        names = [name for name in schema.names if name in (columns or channels)]
        refuse_other_columns(columns or names, numeric, path)
        guard = ExpansionGuard(path)
        parts: list[np.ndarray] = []
        for batch in batches(table, file, names, path):
            guard.check(8 * batch.num_rows * batch.num_columns, size)
            numbers = [batch.column(name).cast(pyarrow.float64()) for name in names]
            parts.append(np.stack([each.to_numpy(zero_copy_only=False) for each in numbers], axis=1))
        values = _measured(np.concatenate(parts) if parts else np.zeros((0, len(names))), path)
        told: list[str] = []
        for name in [name for name in schema.names if name not in channels][:1]:
            for batch in batches(table, file, [name], path):
                told += (str(value)[:_LONGEST_TIME] for value in batch.column(name).to_pylist())
    return Series(values, tuple(names), tuple(told))


def _table(path: str) -> Iterator[tuple[int, list[str]]]:
    return csv.rows(path) if path.removesuffix(".gz").endswith(".csv") else tsv.rows(path)


def _tells_time(name: str) -> bool:
    return name.strip().lower() in _TIMES


def _number(cell: str) -> float | None:
    """The value of a cell: NaN if it is missing, None if it is not a number."""
    if cell.strip().lower() in _MISSING:
        return math.nan
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if abs(number) <= _LARGEST else None


def _measured(values: np.ndarray, where: str) -> np.ndarray:
    """Numbers as float64, NaN where one is missing. Infinite ones would be taken for the end of a series."""
    if values.dtype.kind not in "fiub":
        raise UserError(f"{where}: expected numbers, found {values.dtype}")
    values = values.astype(np.float64)
    if (np.abs(values) > _LARGEST).any():
        raise UserError(f"{where}: expected numbers up to {_LARGEST:g}, found {np.nanmax(np.abs(values)):g}")
    return values


def read_labelled_series(path: str, task: TaskConfig, labelled: bool) -> Iterator[VectorExample]:
    """Labelled series from an array (series, step, channel), from a table with one series per row and its
    label in a named column or the last one, or from JSON lines with `series` and `label`."""
    if is_array(path):
        values = _measured(read_array(path, (2, 3)), path).astype(np.float32)
        values = values[:, :, None] if values.ndim == 2 else values
        labels = read_labels(path, len(values)) if labelled else [None] * len(values)
        for number, (own, label) in enumerate(zip(values, labels, strict=True)):
            yield VectorExample((f"{path}[{number}]",), label, f"{path}[{number}]", own)
    elif path.removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        for number, line in enumerate(read_lines(path), start=1):
            where = f"{path}:{number}"
            record = jsonl.parse(line, where)
            yield _of_record(record, task, labelled, where)
    else:
        yield from _of_rows(path, task, labelled)


def _of_record(record: dict[str, Any], task: TaskConfig, labelled: bool, where: str) -> VectorExample:
    series, label = record.get(str(task.text or "series")), record.get(str(task.label or "label"))
    if labelled and not isinstance(label, str | int):
        raise UserError(f"{where}: expected a label, found {label!r:.40}")
    try:
        values = np.array(series, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.zeros(0)
    if values.ndim not in (1, 2) or not values.size:
        raise UserError(
            f"{where}: 'series': expected numbers, or a list of numbers a step, found {series!r:.40}"
        )
    values = _measured(values[:, None] if values.ndim == 1 else values, where).astype(np.float32)
    return VectorExample((where,), str(label) if labelled else None, where, values)


def _of_rows(path: str, task: TaskConfig, labelled: bool) -> Iterator[VectorExample]:
    place: int | None = None
    for line, cells in _table(path):
        where = f"{path}:{line}"
        if place is None:
            names = [cell.strip().lower() for cell in cells]
            numbers = any(_number(cell) is not None and cell.strip() for cell in cells[:-1])
            header = not numbers or bool(set(names) & set(_label_names(task)))
            place = _label_place(names, task, header, labelled, where)
            if header:
                continue
        label = cells[place].strip() if place < len(cells) else None
        values = [_number(cell) for number, cell in enumerate(cells) if number != place]
        if None in values:
            bad = [cell for number, cell in enumerate(cells) if number != place][values.index(None)]
            raise UserError(f"{where}: expected numbers, found {bad!r:.40}")
        while values and math.isnan(values[-1] or 0.0):
            values.pop()
        if not values:
            raise UserError(f"{where}: there is no number in this line")
        own = np.array(values, dtype=np.float32)[:, None]
        yield VectorExample((where,), label if labelled else None, where, own)


def _label_names(task: TaskConfig) -> tuple[str, ...]:
    return (task.label.lower(),) if isinstance(task.label, str) else _LABELS


def _label_place(names: Sequence[str], task: TaskConfig, header: bool, labelled: bool, where: str) -> int:
    """The index of the label column, or the number of columns if there is none."""
    if isinstance(task.label, int) and task.label <= len(names):
        return task.label - 1
    wanted = _label_names(task)
    found = [names.index(name) for name in wanted if name in names]
    if found:
        return found[0]
    if task.label is not None:
        raise UserError(f"{where}: there is no column {task.label!r}")
    if header and labelled:
        raise UserError(f"{where}: expected a column 'label'; name it with  task.label=COLUMN")
    return len(names) - 1 if labelled else len(names)

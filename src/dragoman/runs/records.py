"""The records of a run: metrics and samples, as JSON lines."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import UserError
from dragoman.files import open_regular

LOSS = {"train": "nll", "valid": "loss"}
"""The field that is plotted as loss: cross-entropy without label smoothing, so that training and validation
are comparable."""
_SCORES = {
    **{"bleu": ("BLEU", ""), "chrf": ("chrF", ""), "exact": ("exact match", "%")},
    **{"rouge": ("ROUGE-L", ""), "brackets": ("bracket F1", "")},
}
"""Metrics from 0 to 100: what people call them, and their unit."""


@dataclass(frozen=True)
class Sample:
    src: str
    tgt: str
    """The reference."""
    out: str
    """The model's output."""


def metric_name(metric: str) -> str:
    return _SCORES[metric][0] if metric in _SCORES else metric


def is_perfect(metric: str, value: float) -> bool:
    """Whether a metric has its highest value; only known for metrics from 0 to 100."""
    return metric in _SCORES and value >= 100


def metric_value(metric: str, value: float) -> str:
    """`98.65%` of exact matches: a share below 1 would otherwise be read as one of 1."""
    return f"{round(value, 2):g}{_SCORES[metric][1]}" if metric in _SCORES else f"{value:.4g}"


def scored(metric: str, value: float) -> str:
    return f"{metric_name(metric)} {metric_value(metric, value)}"


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of metrics.jsonl; an incomplete last line is ignored."""
    records = []
    for number, line in enumerate(read_file(path).split(b"\n")[:-1], 1):
        try:
            records.append(json.loads(line))
        except ValueError:
            raise UserError(f"{path}:{number}: not valid JSON") from None
    return records


def read_samples(path: Path) -> list[dict[str, Any]]:
    """The samples of each validation, in order. A killed run may have written some twice: the last ones
    count."""
    found: dict[int, dict[str, Any]] = {}
    for line in read_file(path).split(b"\n"):
        try:
            record = json.loads(line)
            if record["kind"] != "valid":  # for example of averaged weights
                continue
            found[int(record["update"])] = {"update": int(record["update"]), "samples": record["samples"]}
        except (ValueError, KeyError, TypeError):  # an incomplete line
            continue
    return [found[update] for update in sorted(found)]


def read_file(path: Path) -> bytes:
    """The contents of a regular file. Empty if it does not exist."""
    try:
        with open_regular(path) as file:
            return file.read()
    except FileNotFoundError:
        return b""

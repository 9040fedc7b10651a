"""What a run has written down of itself: metrics and samples, line by line as JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import UserError
from dragoman.files import open_regular

LOSS = {"train": "nll", "valid": "loss"}
"""The field of a record that is plotted as its loss: cross-entropy without label smoothing, so that training
and validation can be compared."""


@dataclass(frozen=True)
class Sample:
    src: str
    tgt: str
    """What the data say."""
    out: str
    """What the model says."""


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of metrics.jsonl; a last line that was cut short is left out."""
    records = []
    for number, line in enumerate(read_file(path).split(b"\n")[:-1], 1):
        try:
            records.append(json.loads(line))
        except ValueError:
            raise UserError(f"{path}:{number}: not valid JSON") from None
    return records


def read_samples(path: Path) -> list[dict[str, Any]]:
    """The samples of each validation, in order. A run that was killed may have written some twice: the last
    ones count, and what came after the checkpoint that it went on from is written again."""
    found: dict[int, dict[str, Any]] = {}
    for line in read_file(path).split(b"\n"):
        try:
            record = json.loads(line)
            if record["kind"] != "valid":  # of averaged weights, say
                continue
            found[int(record["update"])] = {"update": int(record["update"]), "samples": record["samples"]}
        except (ValueError, KeyError, TypeError):  # a line that was cut short
            continue
    return [found[update] for update in sorted(found)]


def read_file(path: Path) -> bytes:
    """All of a regular file; nothing where there is none."""
    try:
        with open_regular(path) as file:
            return file.read()
    except FileNotFoundError:
        return b""

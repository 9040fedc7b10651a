"""What a run has written down of itself: metrics and samples, line by line as JSON."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import UserError


@dataclass(frozen=True)
class Sample:
    src: str
    tgt: str
    """What the data say."""
    out: str
    """What the model says."""


def read_records(path: Path) -> list[dict[str, Any]]:
    """The records of metrics.jsonl; a last line that was cut short is left out."""
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], 1):
        try:
            records.append(json.loads(line))
        except ValueError:
            raise UserError(f"{path}:{number}: not valid JSON") from None
    return records


def read_samples(path: Path) -> list[dict[str, Any]]:
    """The samples of each validation, in order. A run that was killed may have written some twice: the last
    ones count, and what came after the checkpoint that it went on from is written again."""
    if not path.exists():
        return []
    found: dict[int, dict[str, Any]] = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            record = json.loads(line)
            if record["kind"] != "valid":  # of averaged weights, say
                continue
            found[int(record["update"])] = {"update": int(record["update"]), "samples": record["samples"]}
        except (ValueError, KeyError, TypeError):  # a line that was cut short
            continue
    return [found[update] for update in sorted(found)]

"""A run over time, also while it is in progress: curves, samples, and the checkpoints that can be opened."""

from typing import Any

from dragoman import checkpoint
from dragoman.learning import learning_of
from dragoman.runs.directory import Run
from dragoman.runs.records import LOSS, read_records, read_samples

_MOST_POINTS = 2000  # of one kind; longer runs are thinned out evenly
_HIDDEN = ("kind", "update")
_UNITS = {"tok": "tokens"}
_PACE = 20  # records of updates


def history(run: Run, since: int = 0) -> dict[str, Any]:
    """Records after the first `since`, so that nothing is sent twice."""
    records = read_records(run.directory / "metrics.jsonl")
    if since > len(records):  # it has been killed, and went on from an earlier checkpoint
        since = 0
    return {
        "records": len(records),
        "since": since,
        "points": [
            point for kind in ("train", "valid") for point in _thinned(_points(records[since:], kind))
        ],
        "samples": read_samples(run.directory / "samples.jsonl") if len(records) > since else None,
        "checkpoints": list(checkpoint.names(run.checkpoints)),
        "best": run.best,
        "updates": run.config.train.max_updates,
        "unit": _UNITS.get(learning_of(run.config).unit, learning_of(run.config).unit),
        **_pace(run),
    }


def _pace(run: Run) -> dict[str, float | None]:
    """Tokens a second, and the seconds that are left at the pace of the last updates; None where it is not
    known or the run has ended."""
    times = [each for each in read_records(run.directory / "timing.jsonl") if each.get("kind") == "train"]
    if not times:
        return {"speed": None, "left": None}
    first, last, train = times[-_PACE:][0], times[-1], run.config.train
    if train.max_minutes is not None:
        left = 60 * train.max_minutes - last["elapsed"]
    elif train.max_updates is not None and last["update"] > first["update"]:
        pace = (last["elapsed"] - first["elapsed"]) / (last["update"] - first["update"])
        left = pace * (train.max_updates - last["update"])
    else:
        left = 0.0
    ended = run.directory.joinpath("report.md").exists() or left <= 0
    return {"speed": last["tokens_per_second"], "left": None if ended else round(left)}


def _points(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [
        {
            "kind": kind,
            "update": record["update"],
            "values": {
                name: value
                for name, value in (record | {"loss": record.get(LOSS[kind], record.get("loss"))}).items()
                if name not in _HIDDEN and isinstance(value, int | float) and not isinstance(value, bool)
            },
        }
        for record in records
        if record.get("kind") == kind and isinstance(record.get("update"), int)
    ]


def _thinned(points: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if len(points) <= _MOST_POINTS:
        return points
    step = (len(points) - 1) / (_MOST_POINTS - 1)
    return [points[round(number * step)] for number in range(_MOST_POINTS)]

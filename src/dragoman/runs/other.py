"""Messages about a run directory that already exists with another configuration."""

from collections.abc import Sequence
from typing import Any

from dragoman.errors import UserError, shown
from dragoman.runs.directory import Run

_SHOWN = 4


def other_run(run: Run, found: Sequence[tuple[str, object, object]]) -> UserError:
    """The message if the directory exists with another configuration. Different data are named first, because
    everything chosen from them differs too."""
    files = _files(run.config.data.train)
    where = f"{run.directory} is a run on {files}"
    advice = "use another directory with  --out runs/NAME"
    if any(field.startswith("data.") for field, _, _ in found):
        return UserError(f"{where}; {advice}, or continue it with  dragoman resume {run.directory}")
    told = ", ".join(
        f"{field} is {_short(old)} there and {_short(new)} here" for field, old, new in found[:_SHOWN]
    )
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return UserError(
        f"{where} with another configuration ({told}{more}); {advice}, or change it with  "
        f"dragoman resume {run.directory} field=value"
    )


def _files(sources: Sequence[Any]) -> str:
    names = [file for source in sources for file in source.files]
    return ", ".join(names[:4]) + (" and others" if len(names) > 4 else "")


def _short(value: object) -> str:
    return value if isinstance(value, str) else shown(value, 40)

"""More than one machine. The work itself is what one machine does; here it is handed out and gathered.

    schedule.py   chunks to workers, results in order; what to do when a worker is lost, or fails on a line
    workers.py    workers on the machines of a Ray cluster
    on_ray.py     connecting to the cluster
    storage.py    files and directories at an address such as s3://bucket/run

Nothing here is imported unless a command has `--cluster` or is given an address.
"""

from typing import Any

from dragoman.errors import missing_extra
from dragoman.extras import EXTRAS

EXTRA = "cluster"


def require(module: str, purpose: str) -> Any:
    """A package of the extra, or one sentence about how to install it."""
    from importlib import import_module

    assert module in EXTRAS[EXTRA].modules
    try:
        return import_module("ray") if module == "ray" else import_module("fsspec")
    except ModuleNotFoundError as error:
        raise missing_extra(str(error.name), EXTRA, purpose) from None

"""dragoman: from parallel text to a translator you own.

    import dragoman

    run = dragoman.train("a.en", "a.de", out="runs/en-de")
    translator = dragoman.load("runs/en-de")
    translator.translate(["Good morning."])

Nothing heavy is imported until it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.runs.opening import load
    from dragoman.training.api import resume, train

__all__ = ["__version__", "load", "resume", "train"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "load":
        return importlib.import_module("dragoman.runs.opening").load
    if name in ("resume", "train"):
        return getattr(importlib.import_module("dragoman.training.api"), name)
    raise AttributeError(f"module 'dragoman' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

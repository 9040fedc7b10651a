"""Experiment trackers: the numbers of metrics.jsonl are also sent to MLflow, Weights & Biases or trackio.

A tracker is a `ScalarWriter` (`log.py`), as TensorBoard is. None of them is a dependency. They see the
configuration and numbers, no text. One that fails is disabled with a warning; training continues.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.config import to_dict
from dragoman.errors import UserError
from dragoman.runs.config import RunConfig
from dragoman.training.log import ScalarWriter

_PROJECT = "dragoman"


class MlflowWriter:
    def __init__(self, mlflow: Any, name: str, settings: Mapping[str, Any]) -> None:
        self._mlflow = mlflow
        mlflow.start_run(run_name=name)
        mlflow.log_params({key: str(value)[:500] for key, value in settings.items()})

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self._mlflow.log_metric(tag, scalar_value, step=global_step)

    def close(self) -> None:
        self._mlflow.end_run()


class WandbWriter:
    """trackio has the same interface."""

    def __init__(self, module: Any, name: str, settings: Mapping[str, Any]) -> None:
        self._module = module
        module.init(project=_PROJECT, name=name, config=dict(settings))

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self._module.log({tag: scalar_value}, step=global_step)

    def close(self) -> None:
        self._module.finish()


_Writer = Callable[[Any, str, Mapping[str, Any]], ScalarWriter]
_TRACKERS: dict[str, tuple[Callable[[], Any], _Writer]] = {
    "mlflow": (lambda: importlib.import_module("mlflow"), MlflowWriter),
    "wandb": (lambda: importlib.import_module("wandb"), WandbWriter),
    "trackio": (lambda: importlib.import_module("trackio"), WandbWriter),
}


class Careful:
    """Several writers. One that raises an exception is not used again."""

    def __init__(self, writers: Sequence[ScalarWriter], warn: Callable[[str], None]) -> None:
        self._writers, self._warn = list(writers), warn

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        self._each(lambda writer: writer.add_scalar(tag, scalar_value, global_step))

    def close(self) -> None:
        self._each(lambda writer: writer.close())

    def _each(self, act: Callable[[ScalarWriter], None]) -> None:
        for writer in list(self._writers):
            try:
                act(writer)
            except Exception as error:  # from a tracker's own code or server
                self._writers.remove(writer)
                self._warn(f"train.tracker: {type(error).__name__}: {error}; training continues without it")


def open_tracker(config: RunConfig, name: str) -> ScalarWriter:
    """The tracker that the configuration names, with a new run in it."""
    kind = config.train.tracker
    load, writer = _TRACKERS[kind]
    try:
        module = load()
    except ImportError:
        raise UserError(f"train.tracker: {kind} is not installed; pip install {kind}") from None
    try:
        return writer(module, name, flat(to_dict(config)))
    except Exception as error:
        raise UserError(f"train.tracker: {kind} cannot be used ({type(error).__name__}: {error})") from error


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"train": {"clip": 1}}` as `{"train.clip": 1}`."""
    result: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{prefix}{name}.")
        else:
            result[f"{prefix}{name}"] = value
    return result

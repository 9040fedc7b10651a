"""All experiments, a module each with one value `EXPERIMENT`."""

import importlib
import pkgutil
from functools import cache

from dragoman.errors import UserError, did_you_mean
from dragoman.lab.experiment import Experiment


@cache
def all_experiments() -> dict[str, Experiment]:
    """By name, in the order of lectures; those without training first."""
    modules = [
        importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    ]
    experiments = sorted(
        (module.EXPERIMENT for module in modules), key=lambda each: (each.lecture, each.trains, each.name)
    )
    return {experiment.name: experiment for experiment in experiments}


def experiment_named(name: str) -> Experiment:
    known = all_experiments()
    if name not in known:
        advice = did_you_mean(name, known) or "; list them with  dragoman lab"
        raise UserError(f"there is no experiment '{name}'{advice}")
    return known[name]

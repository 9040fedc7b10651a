"""All experiments, by name: one for every module of `lab/experiments/`."""

import importlib
import pkgutil

from dragoman.errors import UserError, did_you_mean
from dragoman.lab import experiments
from dragoman.lab.experiment import Experiment


def all_experiments() -> dict[str, Experiment]:
    """By name, in the order of lectures; those without training first."""
    modules = [
        importlib.import_module(f"{experiments.__name__}.{module.name}")
        for module in pkgutil.iter_modules(experiments.__path__)
    ]
    found: list[Experiment] = [module.EXPERIMENT for module in modules]
    found.sort(key=lambda each: (each.lecture, each.trains, each.name))
    return {experiment.name: experiment for experiment in found}


def experiment_named(name: str) -> Experiment:
    known = all_experiments()
    if name not in known:
        advice = did_you_mean(name, known) or "; list them with  dragoman lab"
        raise UserError(f"there is no experiment '{name}'{advice}")
    return known[name]

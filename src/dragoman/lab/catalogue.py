"""All experiments, by name: every module in `experiments/` has one."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from dragoman.errors import UserError, did_you_mean
from dragoman.lab import experiments
from dragoman.lab.experiment import Experiment


@cache
def all_experiments() -> dict[str, Experiment]:
    """By name, in the order of lectures; those without training first."""
    names = [f"{experiments.__name__}.{module.name}" for module in iter_modules(experiments.__path__)]
    found: list[Experiment] = [import_module(name).EXPERIMENT for name in names]
    found.sort(key=lambda each: (each.lecture, each.trains, each.name))
    return {experiment.name: experiment for experiment in found}


def experiment_named(name: str) -> Experiment:
    known = all_experiments()
    if name not in known:
        advice = did_you_mean(name, known) or "; list them with  dragoman lab"
        raise UserError(f"there is no experiment '{name}'{advice}")
    return known[name]

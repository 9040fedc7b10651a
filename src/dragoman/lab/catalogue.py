"""All experiments, by name: every module in `experiments/` has one."""

from functools import cache
from types import ModuleType

from dragoman.errors import UserError, did_you_mean
from dragoman.lab import experiments
from dragoman.lab.experiment import Experiment


@cache
def all_experiments() -> dict[str, Experiment]:
    """All experiments by name, in the order of lectures; those without training first."""
    modules = [module for module in vars(experiments).values() if isinstance(module, ModuleType)]
    found: list[Experiment] = [module.EXPERIMENT for module in modules]
    found.sort(key=lambda each: (each.lecture, each.trains, each.name))
    return {experiment.name: experiment for experiment in found}


def experiment_named(name: str) -> Experiment:
    known = all_experiments()
    if name not in known:
        advice = did_you_mean(name, known) or "; list them with  dragoman lab"
        raise UserError(f"there is no experiment '{name}'{advice}")
    return known[name]

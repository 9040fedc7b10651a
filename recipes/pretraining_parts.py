"""What a run of pretraining.py is: its files and its settings, and what has to be there before."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

SEEDS = (1, 2, 3)
SIX_LAYERS = {"num_layers": 6, "model_dim": 256, "num_heads": 4, "ff_dim": 1024}


@dataclass(frozen=True)
class Job:
    """One run: what it is trained on and how, what has to be there before, and what is asked of it."""

    name: str
    files: tuple[str, ...]
    overrides: tuple[str, ...]
    valid: str | None = None
    test: str | None = None
    start: str | None = None
    """The job that it begins with."""
    settings: tuple[str, ...] = ()
    """What is tried."""
    tried: tuple[str, ...] = ()
    """Jobs of which the one with the best validation gives its settings."""
    kept: bool = False
    """Others begin with it, so that its checkpoints stay."""

    @property
    def needs(self) -> set[str]:
        return {*self.tried, *([self.start] if self.start else [])}


@dataclass(frozen=True)
class Budget:
    """Minutes and updates; small ones are to see that everything runs."""

    general_minutes: float = 4.4
    """Of the language models, by the clock: see GENERAL for the share that each has."""
    general_tokens: float = 1.0
    """Tokens of their updates, as a share of what GENERAL says."""
    stage_two: int = 300
    treebank: int = 10_500
    treebank_minutes: float = 8.3
    treebank_gpt: int = 5000
    task: int = 864
    few: int = 240
    ulmfit: int = 1296
    epoch: int = 108
    tag: int = 500


def fields(**sections: Any) -> tuple[str, ...]:
    """`train__max_updates=3` as `train.max_updates=3`."""
    return tuple(f"{name.replace('__', '.')}={json.dumps(value)}" for name, value in sections.items())


def language_model(updates: int, tokens: int, rate: float, **more: Any) -> tuple[str, ...]:
    own = {
        "optim__name": "adamw",
        "optim__rate": rate,
        "optim__weight_decay": 0.01,
        "schedule__name": "linear",
        "schedule__warmup": max(1, min(updates // 10, 500)),
        "schedule__total": updates + 1,
        "train__max_updates": updates,
        "train__batch_tokens": tokens,
        "train__accumulate": 1,
        "train__ema": 0,
        "train__patience": None,
        "train__validate_every": max(1, updates // 5),
        "train__save_every": 10**6,
        "train__log_every": max(1, updates // 40),
    }
    return fields(**own | more)


def rates(*numbers: float) -> tuple[dict[str, Any], ...]:
    return tuple({"optim__rate": rate} for rate in numbers)


def trials(job: Job, settings: Sequence[dict[str, Any]]) -> list[Job]:
    """One run a setting with the first seed, and the best setting again with the others."""
    first = [
        replace(job, name=f"{job.name} @{number}", overrides=(*job.overrides, *fields(seed=SEEDS[0])),
                settings=fields(**setting))
        for number, setting in enumerate(settings, 1)
    ]  # fmt: skip
    return [*first, *seeds(job, SEEDS[1:], tuple(trial.name for trial in first))]


def names_of_trials(made: Sequence[Job]) -> tuple[str, ...]:
    return tuple(job.name for job in made if "@" in job.name)


def seeds(job: Job, numbers: Iterable[int], tried: tuple[str, ...]) -> list[Job]:
    return [
        replace(job, name=f"{job.name} #{seed}", overrides=(*job.overrides, *fields(seed=seed)), tried=tried)
        for seed in numbers
    ]

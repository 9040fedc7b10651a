"""Plans for made-up corpora: what is chosen, as a configuration."""

import dataclasses
from typing import Any

from dragoman.autopilot.choice import Chosen
from dragoman.autopilot.choose import choose
from dragoman.autopilot.machine import Machine
from dragoman.autopilot.profile import Profile
from dragoman.learning import LEARNING
from dragoman.learning.resolve import resolve_config
from dragoman.runs.config import RunConfig

CPU = Machine(cores=2)
SMALL_GPU = Machine(cores=8, gpu_bytes=8 << 30)
LARGE_GPU = Machine(cores=16, gpu_bytes=140 << 30)
_TRANSLATE = LEARNING["translate"]


def chosen(profile: Profile, machine: Machine = CPU, **more: Any) -> Chosen:
    return choose(profile, machine, learning=_TRANSLATE, **more)


def resolved(found: Chosen, *overrides: str, minutes: float | None = None) -> RunConfig:
    data = {"train": [{"files": ["a.en", "a.de"]}], **found.sections.get("data", {})}
    return resolve_config({**found.sections, "data": data}, overrides, minutes)


def scaled(profile: Profile, pairs: int) -> Profile:
    """The same kind of corpus with another number of pairs."""
    times = pairs / profile.pairs
    sides = [
        dataclasses.replace(
            side,
            characters=int(side.characters * times),
            words=int(side.words * times),
            single_words=int(side.single_words * times),
        )
        for side in (profile.src, profile.tgt)
    ]
    return dataclasses.replace(profile, pairs=pairs, src=sides[0], tgt=sides[1])

"""The learning rate as a pure function of the global update u = 1, 2, 3, … or of the share of the time budget
that has passed, p from 0 to 1.

    rate = optim.rate × min(1, u / warmup) × shape

    inverse_sqrt   √(warmup / u) after the warm-up. With optim.rate = (model_dim × warmup)^−½ this is
                   model_dim^−½ · min(u^−½, u · warmup^−1.5) (Vaswani et al. 2017, equation 3)
    linear         from 1 down to `floor` at update `total`
    cosine         the same, along half a cosine (Loshchilov & Hutter 2017, equation 5)
    constant       1
    slanted_triangular   up for the share `cut_frac` of all updates, then down to 1/`ratio` at `total`; it has
                   no warm-up beside it (Howard & Ruder 2018, equation 3)
    plateau        multiplied by `factor` whenever `patience` validations in a row bring nothing better

With `by: minutes`, linear, cosine and slanted_triangular are functions of p, and reach their lowest at p = 1.
The warm-up is counted in updates there too, but is over at p = 0.2 at the latest.

By updates, it cannot jump or lose a step when a run is resumed. The plateau alone looks at results; how often
it has cut the rate is counted in the checkpoint. So is the time that has passed.
"""

import math

from dragoman.runs.optim import ScheduleConfig

_LONGEST_WARMUP = 0.2
"""As a share of the time budget."""


def scale_at(config: ScheduleConfig, update: int, cuts: int = 0, time_share: float = 0.0) -> float:
    """What optim.rate is multiplied by at update `update`; `cuts` is how often a plateau was met, and
    `time_share` how much of the time budget has passed."""
    if config.by == "minutes":
        return _scale_by_time(config, update, min(1.0, time_share))
    if config.name == "slanted_triangular":
        return _slanted(config, update)
    if update < config.warmup:
        return update / config.warmup
    if config.name == "inverse_sqrt":
        return math.sqrt(max(1, config.warmup) / max(1, update))
    if config.name == "plateau":
        return config.factor**cuts
    if config.needs_total:
        assert config.total is not None, "the configuration is resolved before training"
        done = min(1.0, (update - config.warmup) / (config.total - config.warmup))
        return _falling(config, done)
    return 1.0


def _scale_by_time(config: ScheduleConfig, update: int, passed: float) -> float:
    if config.name == "slanted_triangular":
        cut = config.cut_frac
        return _triangle(config, passed / cut if passed < cut else (1 - passed) / (1 - cut))
    warmed_up = max(update / max(1, config.warmup), passed / _LONGEST_WARMUP)
    return min(1.0, warmed_up) * _falling(config, passed)


def _falling(config: ScheduleConfig, done: float) -> float:
    """From 1 to the floor, where `done` goes from 0 to 1."""
    left = 1 - done if config.name == "linear" else (1 + math.cos(math.pi * done)) / 2
    return config.floor + (1 - config.floor) * left


def _slanted(config: ScheduleConfig, update: int) -> float:
    """Howard & Ruder 2018, equation 3. The paper's cut · (1 / cut_frac − 1) is T − cut where T · cut_frac is
    a whole number; where it is not, this alone ends at 1 / ratio."""
    assert config.total is not None, "the configuration is resolved before training"
    cut = max(1, math.floor(config.total * config.cut_frac))
    return _triangle(
        config, update / cut if update < cut else 1 - (update - cut) / max(1, config.total - cut)
    )


def _triangle(config: ScheduleConfig, height: float) -> float:
    return (1 + max(0.0, height) * (config.ratio - 1)) / config.ratio

"""The learning rate as a pure function of the global update u = 1, 2, 3, …

    rate(u) = optim.rate × min(1, u / warmup) × shape(u)

    inverse_sqrt   √(warmup / u) after the warm-up. With optim.rate = (model_dim × warmup)^−½ this is
                   model_dim^−½ · min(u^−½, u · warmup^−1.5) (Vaswani et al. 2017, equation 3)
    linear         from 1 down to `floor` at update `total`
    cosine         the same, along half a cosine (Loshchilov & Hutter 2017, equation 5)
    constant       1
    slanted_triangular   up for the share `cut_frac` of all updates, then down to 1/`ratio` at `total`; it has
                   no warm-up beside it (Howard & Ruder 2018, equation 3)
    plateau        multiplied by `factor` whenever `patience` validations in a row bring nothing better

Because it is a function of u, it cannot jump or lose a step when a run is resumed. The plateau alone looks at
results; how often it has cut the rate is counted in the checkpoint.
"""

import math

from dragoman.runs.optim import ScheduleConfig


def scale_at(config: ScheduleConfig, update: int, cuts: int = 0) -> float:
    """What optim.rate is multiplied by at update `update`; `cuts` is how often a plateau was met."""
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
        left = 1 - done if config.name == "linear" else (1 + math.cos(math.pi * done)) / 2
        return config.floor + (1 - config.floor) * left
    return 1.0


def _slanted(config: ScheduleConfig, update: int) -> float:
    """Howard & Ruder 2018, equation 3. The paper's cut · (1 / cut_frac − 1) is T − cut where T · cut_frac is
    a whole number; where it is not, this alone ends at 1 / ratio."""
    assert config.total is not None, "the configuration is resolved before training"
    cut = max(1, math.floor(config.total * config.cut_frac))
    p = update / cut if update < cut else 1 - (update - cut) / max(1, config.total - cut)
    return (1 + max(0.0, p) * (config.ratio - 1)) / config.ratio

"""How much gradient a softmax lets through, by the width of queries and keys."""

import numpy as np

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Size, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, mean

WIDTHS = (4, 16, 64, 256, 1024)
KEYS = 16


def gradient(scores: np.ndarray) -> float:
    """Mean over rows of the norm of the softmax's Jacobian, diag(p) − p pᵀ."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = powers / powers.sum(axis=1, keepdims=True)
    jacobian = np.eye(KEYS) * p[:, :, None] - p[:, :, None] * p[:, None, :]
    return float(np.linalg.norm(jacobian, axis=(1, 2)).mean())


def measure(bench: Bench) -> Numbers:
    found: Numbers = {"without the division": {}, "divided by √d": {}}
    for width in WIDTHS:
        for seed in range(bench.size.seeds):
            random = np.random.default_rng(seed)
            queries = random.standard_normal((bench.size.tests, 1, width))
            scores = (queries * random.standard_normal((bench.size.tests, KEYS, width))).sum(axis=2)
            found["without the division"].setdefault(str(width), []).append(gradient(scores))
            found["divided by √d"].setdefault(str(width), []).append(gradient(scores / width**0.5))
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if without the division the gradient at width 1024 is less than a quarter of that at width 4,
    and with it no less than half."""
    plain, scaled = (mean(cells[str(WIDTHS[-1])]) / mean(cells[str(WIDTHS[0])]) for cells in numbers.values())
    told = f"from width 4 to 1024 the gradient is multiplied by {plain:.2f} without and {scaled:.2f} with it"
    return holds(told) if plain < 0.25 and scaled >= 0.5 else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "width d", "norm of the softmax's Jacobian", log_x=True)


EXPERIMENT = Experiment(
    name="saturation",
    lecture=1,
    also=(2, 4),
    claim="Without the division by √d large scores saturate the softmax, and its gradient vanishes as d "
    "grows.",
    how=f"Random queries look at {KEYS} random keys; the norm of the softmax's Jacobian is averaged.",
    literature="Vaswani et al. 2017, section 3.2.1: regions where the softmax has extremely small gradients.",
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(seeds=5, tests=200),
    full=Size(seeds=5, tests=2000),
    cell="norm of the Jacobian",
)

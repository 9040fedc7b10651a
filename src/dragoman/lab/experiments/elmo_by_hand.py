"""ELMo's vector of a word in its three steps, on vectors small enough for a blackboard."""

import math

import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.models.task_heads import ScalarMix

LAYERS: tuple[str, ...] = ("embedding", "layer 1", "layer 2")
LEFT = ((1.0, 0.0), (2.0, -1.0), (0.0, 3.0))
"""For each layer what the network from left to right says of the word. Both start with the same embedding."""
RIGHT = ((1.0, 0.0), (1.0, 1.0), (-2.0, 1.0))
WISHES, SCALE = (0.0, math.log(2.0), 0.0), 2.0
"""What a task has learnt: w, whose softmax are the shares 1/4, 1/2, 1/4; and γ."""
DIMENSIONS: tuple[str, ...] = ("left 1", "left 2", "right 1", "right 2")


def measure(_bench: Bench) -> Numbers:
    beside = [[*left, *right] for left, right in zip(LEFT, RIGHT, strict=True)]
    weights = [math.exp(wish) for wish in WISHES]
    shares = [weight / sum(weights) for weight in weights]
    weighted = [[share * value for value in row] for share, row in zip(shares, beside, strict=True)]
    total = [SCALE * sum(column) for column in zip(*weighted, strict=True)]
    mix = ScalarMix(len(LAYERS))
    with torch.no_grad():
        mix.weights.copy_(torch.tensor(WISHES))
        mix.scale.fill_(SCALE)
        models = mix([torch.tensor([[row]]) for row in beside])[0, 0]
    rows = {f"1 side by side: {name}": row for name, row in zip(LAYERS, beside, strict=True)}
    rows |= {f"2 times its share: {name}": row for name, row in zip(LAYERS, weighted, strict=True)}
    rows |= {"3 sum times γ": total, "the models' own": models.tolist()}
    table = {name: dict(zip(DIMENSIONS, row, strict=True)) for name, row in rows.items()}
    return exact({"shares": dict(zip(LAYERS, shares, strict=True)), **table})


def rule(numbers: Numbers) -> Verdict:
    """Holds if the shares sum to 1, and the sum of the weighted layers times γ is what the part of the models
    that mixes layers gives, to four digits."""
    found = averages(numbers)
    shares = list(found["shares"].values())
    by_hand, models = found["3 sum times γ"], found["the models' own"]
    if abs(sum(shares) - 1) > 1e-9:
        return fails(f"the shares sum to {sum(shares)}")
    if any(abs(by_hand[name] - models[name]) > 5e-5 for name in DIMENSIONS):
        return fails(f"by hand {list(by_hand.values())}, by the models {list(models.values())}")
    told = ", ".join(f"{value:g}" for value in by_hand.values())
    return holds(f"shares of 1/4, 1/2 and 1/4 and γ = {SCALE:g} give {told}")


def figure(numbers: Numbers) -> Pictures:
    def part(number: str) -> Numbers:
        rows = {name: cells for name, cells in numbers.items() if name.startswith(number)}
        return {name.partition(": ")[2] or "γ Σ": cells for name, cells in rows.items()}

    return matrices(
        {
            "1. side by side": part("1"),
            "2. times the shares": part("2"),
            "3. sum times γ": part("3"),
        },
        columns=3,
    )


EXPERIMENT = Experiment(
    name="elmo-by-hand",
    lecture=4,
    claim="ELMo's vector of a word is made in three steps: both directions side by side, each layer times "
    "its share, and the sum times γ.",
    how="The steps are done by hand for one word of a network with two layers, and by the module that the "
    "models use (`task.layers: mix`).",
    literature="Peters et al. 2018, equation 1: γ Σ s_j h_j; the shares s are a softmax that each task "
    "learns.",
    measure=measure,
    rule=rule,
    figure=figure,
    remark="Trained shares are printed by `dragoman finetune RUN FILES --task tag task.layers=mix`, and "
    "compared by task in layers-by-task.",
)

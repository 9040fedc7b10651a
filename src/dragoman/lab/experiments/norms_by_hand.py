"""LayerNorm beside BatchNorm on the same numbers."""

import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.nn.norm import make_norm

BATCH = torch.tensor([[1.0, 2.0, 3.0, 6.0], [2.0, 2.0, 5.0, 7.0], [9.0, 1.0, 4.0, 2.0]], dtype=torch.float64)
EPS = 1e-5


def layer_norm(x: torch.Tensor) -> torch.Tensor:
    """LayerNorm by the module that the models use."""
    with torch.no_grad():
        return make_norm(x.size(-1), "layer", EPS).double()(x)


def batch_norm(x: torch.Tensor) -> torch.Tensor:
    """Training mode: the statistics are those of the batch."""
    with torch.no_grad():
        return torch.nn.BatchNorm1d(x.size(-1), EPS).double()(x)


def table(name: str, values: torch.Tensor) -> dict[str, dict[str, float]]:
    return {
        f"{name}, sentence {row + 1}": {f"feature {c + 1}": float(v) for c, v in enumerate(cells)}
        for row, cells in enumerate(values)
    }


def measure(_bench: Bench) -> Numbers:
    other = BATCH.clone()
    other[2] = torch.tensor([0.0, 8.0, 1.0, 1.0])  # sentence 3 is exchanged, and sentence 1 is looked at
    by_hand = (BATCH - BATCH.mean(1, keepdim=True)) / (
        BATCH.var(1, keepdim=True, unbiased=False) + EPS
    ).sqrt()
    moved = {
        "layer": float((layer_norm(BATCH)[0] - layer_norm(other)[0]).abs().max()),
        "batch": float((batch_norm(BATCH)[0] - batch_norm(other)[0]).abs().max()),
        "layer by hand": float((layer_norm(BATCH) - by_hand).abs().max()),
    }
    rows = (
        table("input", BATCH) | table("LayerNorm", layer_norm(BATCH)) | table("BatchNorm", batch_norm(BATCH))
    )
    return exact(rows | {"greatest difference": moved})


def rule(numbers: Numbers) -> Verdict:
    """Holds if LayerNorm equals (x − μ)/√(σ² + ε) to nine digits, gives every sentence mean 0, and does not
    change sentence 1 when sentence 3 is another, while BatchNorm does by more than 0.01."""
    found = averages(numbers)
    moved = found["greatest difference"]
    sums = [sum(cells.values()) for name, cells in found.items() if name.startswith("LayerNorm")]
    good = moved["layer by hand"] < 1e-9 and max(map(abs, sums)) < 1e-6
    told = (
        f"another sentence 3 changes sentence 1 by {moved['layer']:.2g} with LayerNorm, {moved['batch']:.2f} "
        f"with BatchNorm"
    )
    return holds(told) if good and moved["layer"] == 0 and moved["batch"] > 0.01 else fails(told)


def figure(numbers: Numbers) -> Pictures:
    names = ("input", "LayerNorm", "BatchNorm")
    panels = {
        name: {row.split(", ")[1]: cells for row, cells in numbers.items() if row.startswith(name)}
        for name in names
    }
    return matrices(panels, columns=3)


EXPERIMENT = Experiment(
    name="norms-by-hand",
    lecture=5,
    also=(1, 3),
    claim="LayerNorm uses the numbers of one position alone; BatchNorm mixes the sentences of a batch.",
    how="Three positions of width 4 go through both; then one of them is exchanged and another one watched.",
    literature="Ba et al. 2016; Ioffe & Szegedy 2015.",
    measure=measure,
    rule=rule,
    figure=figure,
    remark="Training with BatchNorm or without any norm needs switches that the configuration does not have.",
)

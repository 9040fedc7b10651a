"""Self-attention without positions does not know the order of its words."""

import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Size, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, mean
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig, transformer

KINDS = ("none", "sinusoidal", "learned", "rotary", "t5")


def measure(bench: Bench) -> Numbers:
    rows: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for seed in range(bench.size.seeds):
        for kind in KINDS:
            torch.manual_seed(seed)
            config = TransformerConfig(2, model_dim=32, num_heads=4, ff_dim=64, dropout=0.0, positions=kind)
            model = transformer(config, Vocab(60, 60, shared=True)).eval().double()
            for weight in model.parameters():  # T5's distances begin at 0
                if not weight.any():
                    torch.nn.init.normal_(weight)
            ids = torch.randint(3, 60, (1, 12))
            order = torch.randperm(12)
            with torch.no_grad():
                mask = torch.ones_like(ids, dtype=torch.bool)
                plain, moved = model.encode(ids, mask).hidden, model.encode(ids[:, order], mask).hidden
            rows[kind].append(float((plain[:, order] - moved).abs().max()))
    return {"difference": rows}


def rule(numbers: Numbers) -> Verdict:
    """Holds if without positions a permuted input gives the permuted output to nine digits, and with each
    kind of positions it differs by more than 0.01."""
    rows = {kind: mean(values) for kind, values in numbers["difference"].items()}
    others = [value for kind, value in rows.items() if kind != "none"]
    told = f"{rows['none']:.1e} without positions, at least {min(others):.2f} with them"
    return holds(told) if rows["none"] < 1e-9 and min(others) > 0.01 else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "greatest difference")


EXPERIMENT = Experiment(
    name="permutation",
    lecture=2,
    also=(1, 5),
    claim="Self-attention without positions is permutation equivariant: words in another order give the "
    "same vectors.",
    how="Encoders with random weights read twelve words in two orders; the vectors of the same words are "
    "compared.",
    literature="Vaswani et al. 2017, section 3.5: without recurrence or convolution, order must be injected.",
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(seeds=5),
    full=Size(seeds=5),
    cell="greatest difference between the vectors of the same words",
)

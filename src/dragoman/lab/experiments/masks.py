"""The causal mask: 0 or −∞ before the softmax, exact zeros after it."""

import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig, transformer
from dragoman.nn.mask import CAUSAL
from dragoman.probe.record import record

WORDS: tuple[str, ...] = ("<s>", "Jane", "visits", "Africa")


def measure(_bench: Bench) -> Numbers:
    torch.manual_seed(1)
    config = TransformerConfig(num_layers=1, model_dim=32, num_heads=1, ff_dim=64, dropout=0.0)
    model = transformer(config, Vocab(20, 20, shared=True)).eval().double()
    source, target = torch.tensor([[5, 6, 7]]), torch.tensor([[1, 8, 9, 10]])
    with torch.no_grad(), record(model) as seen:
        memory = model.encode(source, torch.ones_like(source, dtype=torch.bool))
        hidden = model.decode(target, memory)
        changed = model.decode(torch.tensor([[1, 8, 9, 15]]), memory)
    own = seen["decoder.layers.0.self_attention"][0][0, 0]
    allowed = CAUSAL.dense(4, 4, target.device)
    assert allowed is not None
    rows = {
        f"mask: {w}": dict(zip(WORDS, map(float, allowed[0, 0][i]), strict=True)) for i, w in enumerate(WORDS)
    }
    rows |= {f"weights: {w}": dict(zip(WORDS, map(float, own[i]), strict=True)) for i, w in enumerate(WORDS)}
    moved = (hidden - changed).abs().amax(dim=2)[0]
    rows["change if the last word is another"] = dict(zip(WORDS, map(float, moved), strict=True))
    return exact(rows)


def rule(numbers: Numbers) -> Verdict:
    """Holds if every weight above the diagonal is exactly 0, every row of weights sums to 1 to six digits,
    and another last word changes nothing (exactly 0) at the places before it."""
    found = averages(numbers)
    for place, word in enumerate(WORDS):
        row = list(found[f"weights: {word}"].values())
        if any(row[place + 1 :]) or abs(sum(row) - 1) > 1e-6:
            return fails(f"the weights of «{word}» are {row}")
    moved = list(found["change if the last word is another"].values())
    if any(moved[:-1]):
        return fails(f"earlier places change by {max(moved[:-1])}")
    return holds(f"exact zeros ahead; earlier places change by 0, the last one by {moved[-1]:.2f}")


def figure(numbers: Numbers) -> Pictures:
    mask = {name[6:]: cells for name, cells in numbers.items() if name.startswith("mask")}
    weights = {name[9:]: cells for name, cells in numbers.items() if name.startswith("weights")}
    return matrices({"may look at (1) or not (0: −∞ is added)": mask, "weights": weights}, columns=2)


EXPERIMENT = Experiment(
    name="masks",
    lecture=1,
    also=(2, 5),
    claim="The causal mask adds −∞ ahead of each word, so the weights there are exactly 0 and no word sees "
    "its future.",
    how="A decoder with random weights reads four words; then its last word is exchanged for another one.",
    literature="Vaswani et al. 2017, section 3.2.3.",
    measure=measure,
    rule=rule,
    figure=figure,
    remark="Training without the mask, to see a model cheat, needs a switch that the configuration does not "
    "have.",
)

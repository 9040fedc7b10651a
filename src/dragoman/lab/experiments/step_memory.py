"""Memory of training by length: what a forward pass keeps for the gradients, a token."""

import torch

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import kept_bytes
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.models.base import Vocab
from dragoman.models.convs2s import ConvS2SConfig, convs2s
from dragoman.models.rnn import RnnConfig, rnn
from dragoman.models.transformer import TransformerConfig, transformer

LSTM, CONVOLUTION, FUSED, PLAIN = (
    "LSTM, no attention",
    "ConvS2S",
    "Transformer, fused",
    "Transformer, weights kept",
)


def measure(bench: Bench) -> Numbers:
    torch.manual_seed(0)
    vocab, width = Vocab(64, 64, shared=True), bench.size.width
    attention = transformer(
        TransformerConfig(1, model_dim=width, num_heads=4, ff_dim=2 * width, dropout=0.0), vocab
    )
    models = {
        LSTM: rnn(RnnConfig(model_dim=width, dropout=0.0, attention="none"), vocab),
        CONVOLUTION: convs2s(ConvS2SConfig(2, model_dim=width, dropout=0.0), vocab),
        FUSED: attention,
        PLAIN: attention,
    }
    return exact(
        {
            name: {
                str(length): kept_bytes(model, length, name == PLAIN) / length for length in bench.size.points
            }
            for name, model in models.items()
        }
    )


def rule(numbers: Numbers) -> Verdict:
    """Holds if from the shortest to the longest source the bytes a token of the Transformer at least double,
    with fused kernels and with its weights kept, and those of the LSTM without attention stay within a fifth.
    Holds here for the way in which they double, if the LSTM's stay."""
    found = averages(numbers)
    grown = {name: list(cells.values())[-1] / next(iter(cells.values())) for name, cells in found.items()}
    told = ", ".join(f"{name} × {factor:.1f}" for name, factor in grown.items())
    double = [name for name in (FUSED, PLAIN) if grown[name] >= 2]
    if grown[LSTM] > 1.2 or not double:
        return fails(told)
    return holds(told) if len(double) == 2 else holds_for(f"{double[0]}: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "words of a sentence", "bytes kept a token", log_x=True, log_y=True)


EXPERIMENT = Experiment(
    name="step-memory",
    lecture=2,
    also=(1,),
    claim="The memory of self-attention grows with the square of the length, that of a recurrent network "
    "with the length.",
    how="Networks with random weights read one sentence and its copy; the bytes that autograd keeps for the "
    "backward pass are counted. A Transformer is counted with PyTorch's fused attention, and with weights "
    "that are kept.",
    literature="Vaswani et al. 2017, table 1: O(n² d); Dao et al. 2022: exact attention in memory linear in "
    "n.",
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(points=(32, 128, 512)),
    full=Size(points=(32, 64, 128, 256, 512, 1024)),
    cell="bytes a token",
)

"""LSTM, convolutions and Transformer on one task, for equally many updates."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

OURS = "Transformer"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    looks = {"train.validate_every": max(1, size.updates // 3)}
    convolution = {"model": {"kind": "convs2s", "num_layers": 2, "model_dim": size.width, "dropout": 0.0}}
    models = {"LSTM, attention": rnn(size), "ConvS2S": convolution, OURS: {}}
    return {name: Setting(task, {**fields, **looks}) for name, fields in models.items()}


def measure(bench: Bench) -> Numbers:
    return bench.each(over_time)


def rule(numbers: Numbers) -> Verdict:
    """Holds if the Transformer's last validation loss is surely below that of both others. Holds here for
    those that it beats."""
    last = list(numbers[OURS])[-1]
    others = [name for name in numbers if name != OURS]
    beaten = [name for name in others if surely_greater(numbers[name][last], numbers[OURS][last])]
    told = ", ".join(f"{name} {mean(cells[last]):.2f}" for name, cells in numbers.items())
    if len(beaten) == len(others):
        return holds(told)
    return holds_for(f"{' and '.join(beaten)}: {told}") if beaten else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "update", "validation loss")


EXPERIMENT = Experiment(
    name="architectures",
    lecture=2,
    also=(1, 4),
    claim="Transformers translate better than recurrent and convolutional networks.",
    how="Equally wide networks learn a made-up language with the same rate and equally many updates.",
    literature="Vaswani et al. 2017, table 2: BLEU 27.3 against 24.6 (GNMT) and 25.16 (ConvS2S).",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=2000, tests=100, longest=6),
    full=Size(updates=600, seeds=5, pairs=10_000, tests=200, longest=12),
    cell="validation loss by update",
    remark="One rate for all: it was not tuned for any of them.",
)

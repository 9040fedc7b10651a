"""Time a token in training by length: what can be done for all positions at once, and what cannot."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import microseconds_a_token
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

LSTM, CONVOLUTION, TRANSFORMER = "LSTM, attention", "ConvS2S", "Transformer"
BATCH = 2048


def settings(size: Size) -> dict[str, Setting]:
    models = {
        LSTM: rnn(size),
        CONVOLUTION: {"model": {"kind": "convs2s", "num_layers": 2, "model_dim": size.width, "dropout": 0.0}},
        TRANSFORMER: {},
    }
    found: dict[str, Setting] = {}
    for length in size.points:
        task = Task("copy", size.pairs, shortest=length, longest=length, tests=20)
        for name, fields in models.items():
            timed = {"train.batch_tokens": BATCH, "train.log_every": max(1, size.updates // 2)}
            found[f"{name} {length}"] = Setting(task, {**fields, **timed})
    return found


def measure(bench: Bench) -> Numbers:
    found: Numbers = {}
    for label, runs in bench.runs.items():
        name, length = label.rsplit(" ", 1)
        found.setdefault(name, {})[length] = [microseconds_a_token(run) for run in runs]
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if at every length a Transformer's token surely takes less time than an LSTM's. Holds here for
    the lengths at which it does."""
    slow, quick = numbers[LSTM], numbers[TRANSFORMER]
    faster = [length for length in quick if surely_greater(slow[length], quick[length])]
    ratios = ", ".join(f"{mean(slow[length]) / mean(quick[length]):.1f} at {length}" for length in quick)
    told = f"an LSTM's token takes so many times a Transformer's: {ratios}"
    if len(faster) == len(quick):
        return holds(told)
    return holds_for(f"length {', '.join(faster)}; {told}") if faster else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "words of a sentence", "microseconds a token in training", log_x=True, log_y=True)


EXPERIMENT = Experiment(
    name="step-time",
    lecture=1,
    also=(2, 4),
    claim="Recurrent networks cannot be parallelised over positions, so Transformers train faster.",
    how="Equally wide networks copy strings of one length; each batch has as many tokens. Time is what the "
    "runs themselves have written down of their last updates.",
    literature="Vaswani et al. 2017, table 1: O(n) sequential operations against O(1).",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=6, seeds=3, pairs=400, points=(16, 64, 256)),
    full=Size(updates=12, seeds=3, pairs=1000, points=(16, 32, 64, 128, 256, 512), width=128),
    cell="microseconds a token",
    remark="Time depends on the machine and on what else it does: compare within one page.",
)

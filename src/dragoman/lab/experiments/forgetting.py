"""How far back recurrent networks remember: say the first symbol after all the others."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import right_by_length
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

CELLS = {"tanh": "rnn", "GRU": "gru", "LSTM": "lstm"}
ATTENTION = "LSTM, attention"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("recall", size.pairs, longest=size.longest, tests=size.tests, symbols=10)
    models = {
        name: rnn(size, cell=cell, bidirectional=False, attention="none") for name, cell in CELLS.items()
    }
    models[ATTENTION] = rnn(size, bidirectional=False, attention="additive")
    long = {"data.clean.max_ratio": 1000.0}  # many words to one are no mistake here
    return {name: Setting(task, {**fields, **long}) for name, fields in models.items()}


def measure(bench: Bench) -> Numbers:
    part = max(1, bench.size.longest // 5)
    return right_by_length(bench, [part * number for number in range(1, 6)])


def rule(numbers: Numbers) -> Verdict:
    """Holds if every cell without attention surely loses more than 10 points from the shortest to the longest
    sources, and attention does not. Holds here for the cells that do, if attention does not."""
    shortest, *_, longest = numbers[ATTENTION]
    lost = {
        label: surely_greater(cells[shortest], cells[longest], by=10.0) for label, cells in numbers.items()
    }
    forget = [name for name in CELLS if lost[name]]
    left = ", ".join(f"{label} {mean(cells[longest]):.0f}%" for label, cells in numbers.items())
    if lost[ATTENTION] or not forget:
        return fails(f"right at the greatest distance: {left}")
    if len(forget) < len(CELLS):
        return holds_for(f"{' and '.join(forget)}; right at the greatest distance: {left}")
    return holds(f"right at the greatest distance: {left}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "distance in words, at most", "percent right", level=10.0)


EXPERIMENT = Experiment(
    name="forgetting",
    lecture=3,
    also=(1, 2),
    claim="Recurrent networks forget what they read long ago; attention does not.",
    how="Networks that read from left to right say the first of up to n random symbols again. Ten symbols: "
    "guessing gives 10%.",
    literature="Hochreiter & Schmidhuber 1997; the lecture says about 100 words for an LSTM.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=150, seeds=3, pairs=4000, tests=300, longest=30),
    full=Size(updates=400, seeds=5, pairs=10_000, tests=500, longest=60),
    cell="percent right, by the distance of the symbol",
)

"""How much gradient reaches a word, by its distance: recurrent networks, attention, Transformer."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import TaskPair, gradient_by_distance
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task
from dragoman.runs.directory import Run

CELLS = {"tanh": "rnn", "GRU": "gru", "LSTM": "lstm"}
WITH = ("LSTM, attention", "Transformer")
UNTRAINED = {"optim.rate": 1e-9, "data.clean.max_ratio": 1000.0}


def settings(size: Size) -> dict[str, Setting]:
    task = Task("recall", size.pairs, shortest=size.longest, longest=size.longest, tests=size.tests)
    models = {
        name: rnn(size, cell=cell, bidirectional=False, attention="none") for name, cell in CELLS.items()
    }
    models[WITH[0]] = rnn(size, bidirectional=False, attention="additive")
    return {name: Setting(task, {**fields, **UNTRAINED}) for name, fields in (models | {WITH[1]: {}}).items()}


def measure(bench: Bench) -> Numbers:
    step = max(1, bench.size.longest // 6)

    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        found = gradient_by_distance(run, pairs)
        return {str(distance): share for distance, share in found.items() if distance % step == 0}

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if at the greatest distance both networks with attention surely keep a greater share of the
    gradient than each cell without. Holds here for the cells for which that is so."""
    farthest = list(numbers["tanh"])[-1]
    beaten = [
        cell
        for cell in CELLS
        if all(surely_greater(numbers[other][farthest], numbers[cell][farthest]) for other in WITH)
    ]
    told = ", ".join(f"{label} {mean(cells[farthest]):.2g}" for label, cells in numbers.items())
    told = f"share left at distance {farthest}: {told}"
    if len(beaten) == len(CELLS):
        return holds(told)
    return holds_for(f"{' and '.join(beaten)}; {told}") if beaten else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(
        numbers, "distance from the end of the source", "gradient beside the last word's", log_y=True
    )


EXPERIMENT = Experiment(
    name="gradient-distance",
    lecture=1,
    also=(2, 3),
    claim="Attention shortens the way of the gradient, which vanishes over distance in recurrent networks.",
    how="Networks with their first weights (one update at a rate of 10⁻⁹) read a source; the norm of the "
    "gradient of the first target word's log-probability is taken by each source word, beside that of the "
    "last.",
    literature="Bengio et al. 1994; Vaswani et al. 2017, table 1: paths of O(n) and O(1).",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=1, seeds=3, pairs=60, tests=10, longest=30),
    full=Size(updates=1, seeds=5, pairs=60, tests=40, longest=96, width=128),
    cell="norm of the gradient as a share of that by the last word",
)

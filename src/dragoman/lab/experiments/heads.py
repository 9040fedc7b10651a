"""One head or many, at the same width and the same number of parameters."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import final
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    return {str(heads): Setting(task, {"model.num_heads": heads}) for heads in size.points}


def measure(bench: Bench) -> Numbers:
    found = bench.each(lambda run: {"loss": final(run)})
    return {"validation loss": {heads: cells["loss"] for heads, cells in found.items()}}


def rule(numbers: Numbers) -> Verdict:
    """Holds if the loss with one head is surely greater than with each larger number of heads. Holds here for
    those numbers for which it is."""
    cells = numbers["validation loss"]
    one, *more = cells
    better = [heads for heads in more if surely_greater(cells[one], cells[heads])]
    told = ", ".join(f"{heads}: {mean(values):.3f}" for heads, values in cells.items())
    if len(better) == len(more):
        return holds(told)
    return holds_for(f"{' and '.join(better)} heads; {told}") if better else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "heads", "validation loss", log_x=True)


EXPERIMENT = Experiment(
    name="heads",
    lecture=2,
    also=(1, 3, 5),
    claim="Several heads are better than one of the same total width, at nearly the same cost.",
    how="Transformers of 1 + 1 layers learn a made-up language; heads times their width is always the "
    "model's width.",
    literature="Vaswani et al. 2017, table 3, rows A: BLEU 24.9 with 1 head, 25.8 with 8, 25.4 with 32.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=2000, tests=100, longest=6, points=(1, 4, 16)),
    full=Size(updates=600, seeds=5, pairs=10_000, tests=200, longest=12, points=(1, 2, 4, 8, 16)),
    cell="validation loss in nats a word, by the number of heads",
)

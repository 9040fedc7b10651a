"""Greedy search, beams, and the true optimum."""

from dragoman.decode.search.config import BeamSearch
from dragoman.evaluate.search_errors import search_errors
from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.looks import TaskPair, translator_of
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task
from dragoman.runs.directory import Run

SHARE = "percent of sentences"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    return {SHARE: Setting(task)}


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        sources, references = zip(*pairs, strict=True)
        search = BeamSearch(alpha=0.0, n_best=1)
        translator = translator_of(run, bench.device)
        found = search_errors(translator, sources, references, beams=bench.size.points, search=search)
        return {str(row.beam): 100 * row.missed for row in found.overall()}

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if greedy search surely misses the most probable translation more often than the widest beam."""
    cells = numbers[SHARE]
    greedy, *_, widest = cells
    told = f"missed: {', '.join(f'{mean(values):.0f}% by beam {beam}' for beam, values in cells.items())}"
    return holds(told) if surely_greater(cells[greedy], cells[widest]) else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "beam", "percent of sentences whose optimum is missed", log_x=True)


EXPERIMENT = Experiment(
    name="search-errors",
    lecture=1,
    claim="Greedy search misses the most probable translation; a beam finds it more often.",
    how="A Transformer that has learnt a made-up language for a short time; each sentence is also searched "
    "exhaustively, without length normalisation, and only proven optima count.",
    literature="Stahlberg & Byrne 2019, table 1: greedy search misses 73.6%, beam 10 57.7%.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=200, seeds=3, pairs=2000, tests=30, longest=6, points=(1, 2, 4, 8)),
    full=Size(updates=400, seeds=5, pairs=10_000, tests=60, longest=12, points=(1, 2, 4, 8, 16)),
    cell="percent of sentences whose most probable translation is missed, by beam",
)

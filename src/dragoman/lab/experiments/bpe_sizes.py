"""Byte-pair encoding with few merges and with many."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import exact
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task, TaskPair
from dragoman.runs.directory import Run

ROW = "right to the letter"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    return {
        str(pieces): Setting(task, {"tokenizer.kind": "bpe", "tokenizer.vocab_size": pieces})
        for pieces in size.points
    }


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        return {ROW: exact(run, pairs, bench.device)}

    found = bench.on_test(look)
    return {ROW: {pieces: cells[ROW] for pieces, cells in found.items()}}


def rule(numbers: Numbers) -> Verdict:
    """Holds if some size between the smallest and the largest is surely better than both. Holds here for one
    end if the best of the middle sizes (by its mean) is surely better than that end alone."""
    cells = numbers[ROW]
    fewest, *between, most = cells
    best = max(between, key=lambda pieces: mean(cells[pieces]))
    worse = [end for end in (fewest, most) if surely_greater(cells[best], cells[end])]
    told = ", ".join(f"{pieces}: {mean(values):.0f}%" for pieces, values in cells.items())
    if len(worse) == 2:
        return holds(told)
    return holds_for(f"{worse[0]} pieces, which are worse than {best}; {told}") if worse else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "pieces of the vocabulary", "percent of sentences right to the letter", log_x=True)


EXPERIMENT = Experiment(
    name="bpe-sizes",
    lecture=1,
    claim="There is a best number of merges: letters make sequences long, and whole words leave too few "
    "examples of each.",
    how="Transformers learn a made-up language with byte-pair encodings of several sizes; the smallest has "
    "hardly a merge, the largest nearly all words.",
    literature="Gowda & May 2020, figure 2: quality by vocabulary size has a maximum; Ding et al. 2019: few "
    "merges for little data.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=1500, tests=100, longest=6, points=(300, 350, 450, 800)),
    full=Size(updates=700, seeds=5, pairs=3000, tests=200, longest=12, points=(300, 350, 450, 600, 1000)),
    cell="percent of sentences right to the letter, by the number of pieces",
    remark="Every vocabulary has 256 bytes and three marks besides letters and merges.",
)

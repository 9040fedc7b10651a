"""One vector for the whole source, or attention over all of it: quality by length."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import right_by_length
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

PLAIN, ATTENTION = "one vector", "attention"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("reverse", size.pairs, longest=size.longest, tests=size.tests)
    return {
        PLAIN: Setting(task, rnn(size, attention="none")),
        ATTENTION: Setting(task, rnn(size, attention="additive")),
    }


def measure(bench: Bench) -> Numbers:
    quarter = max(1, bench.size.longest // 4)
    return right_by_length(bench, [quarter * number for number in range(1, 5)])


def rule(numbers: Numbers) -> Verdict:
    """Holds if with attention the longest sources are surely better translated than with one vector, and if
    from the shortest to the longest the one vector surely loses more. Surely: the 95% interval of the
    difference, seed by seed, is above 0. Holds here for long sources if only the first is true."""
    shortest, *_, longest = numbers[PLAIN]
    lost = {
        label: [near - far for near, far in zip(cells[shortest], cells[longest], strict=True)]
        for label, cells in numbers.items()
    }
    told = (
        f"one vector loses {mean(lost[PLAIN]):.0f} points with length, attention {mean(lost[ATTENTION]):.0f}"
    )
    if not surely_greater(numbers[ATTENTION][longest], numbers[PLAIN][longest]):
        return fails(told)
    return holds(told) if surely_greater(lost[PLAIN], lost[ATTENTION]) else holds_for(f"long sources: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "words of the source, at most", "percent of words at their place")


EXPERIMENT = Experiment(
    name="bottleneck",
    lecture=1,
    also=(3, 4, 5),
    claim="One vector for the whole source is a bottleneck: quality falls with length, and attention "
    "relieves it.",
    how="LSTMs of equal width learn to reverse strings, with the encoder's last states as their only "
    "context or with additive attention, for equally many updates.",
    literature="Bahdanau et al. 2015, figure 2: without attention BLEU falls beyond 20 words, with it "
    "hardly.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=4000, tests=200, longest=8),
    full=Size(updates=800, seeds=5, pairs=10_000, tests=400, longest=12),
    cell="percent of words at their place, by the length of the source",
    remark="The one vector is given to the decoder at every step (Cho et al. 2014). The variant that gets "
    "it once (Sutskever et al. 2014) needs a switch that the configuration does not have.",
)

"""One vector for the whole source, given to the decoder at every step or only as its first state."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import bottleneck
from dragoman.lab.looks import right_by_length
from dragoman.lab.statistics import Numbers, mean, surely_greater

EVERY, ONCE = "at every step", "once"


def settings(size: Size) -> dict[str, Setting]:
    shared = bottleneck.settings(size)
    once = Setting(shared[bottleneck.PLAIN].task, rnn(size, attention="none", context="once"))
    return {EVERY: shared[bottleneck.PLAIN], ONCE: once, bottleneck.ATTENTION: shared[bottleneck.ATTENTION]}


def measure(bench: Bench) -> Numbers:
    quarter = max(1, bench.size.longest // 4)
    return right_by_length(bench, [quarter * number for number in range(1, 5)])


def rule(numbers: Numbers) -> Verdict:
    """Holds if in the mean over the lengths the vector given once is surely worse than the one given at every
    step, and both are surely worse than attention. Holds here for attention if only the second is so."""
    scores = {
        label: [mean(values) for values in zip(*cells.values(), strict=True)]
        for label, cells in numbers.items()
    }
    told = ", ".join(f"{label} {mean(values):.0f}%" for label, values in scores.items())
    if not all(surely_greater(scores[bottleneck.ATTENTION], scores[name]) for name in (EVERY, ONCE)):
        return fails(told)
    return holds(told) if surely_greater(scores[EVERY], scores[ONCE]) else holds_for(f"attention: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "words of the source, at most", "percent of words at their place")


EXPERIMENT = Experiment(
    name="context-once",
    lecture=4,
    also=(1,),
    claim="A vector that is handed to the decoder once is forgotten on the way; given at every step it "
    "serves better, and attention best.",
    how="The LSTMs of bottleneck, and one whose decoder gets the encoder's last states as its first state "
    "alone.",
    literature="Sutskever et al. 2014 give it once, Cho et al. 2014 at every step.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=bottleneck.EXPERIMENT.quick,
    full=bottleneck.EXPERIMENT.full,
    cell="percent of words at their place, by the length of the source",
)

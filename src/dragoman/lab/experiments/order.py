"""A Transformer with positions and without them."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.experiments import longer_than_training
from dragoman.lab.looks import right
from dragoman.lab.statistics import Numbers, mean, surely_greater


def settings(size: Size) -> dict[str, Setting]:
    given = longer_than_training.settings(size)["sinusoidal"]
    return {"sinusoidal": given, "none": Setting(given.task, {"model.positions": "none"})}


def measure(bench: Bench) -> Numbers:
    longest = bench.size.longest
    return bench.on_test(
        lambda run, pairs: {
            "right": right(run, [p for p in pairs if 1 < len(p[0].split()) <= longest], bench.device)
        }
    )


def rule(numbers: Numbers) -> Verdict:
    """Holds if with positions surely more than 10 points more words are right than without them."""
    given, none = numbers["sinusoidal"]["right"], numbers["none"]["right"]
    told = f"{mean(given):.0f}% right with positions, {mean(none):.0f}% without"
    return holds(told) if surely_greater(given, none, by=10.0) else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "percent of words at their place")


EXPERIMENT = Experiment(
    name="order",
    lecture=2,
    also=(1, 3, 5),
    claim="Without positions a Transformer does not know the order of its words, and cannot copy a string.",
    how="The same Transformer learns to copy strings with sinusoidal positions and without any.",
    literature="Vaswani et al. 2017, section 3.5; Haviv et al. 2022: a causal decoder learns places by "
    "itself.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=longer_than_training.EXPERIMENT.quick,
    full=longer_than_training.EXPERIMENT.full,
    cell="percent of words at their place, of trained lengths",
)

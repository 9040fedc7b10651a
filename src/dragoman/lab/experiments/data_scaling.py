"""Loss by the number of training pairs, with a fitted exponent."""

import math

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, slope
from dragoman.lab.tasks import Task

ROW = "lowest validation loss"


def settings(size: Size) -> dict[str, Setting]:
    often = {"train.validate_every": max(1, size.updates // 6)}
    return {
        str(pairs): Setting(Task("language", pairs, longest=size.longest, tests=size.tests), often)
        for pairs in size.points
    }


def measure(bench: Bench) -> Numbers:
    found = bench.each(lambda run: {ROW: min(over_time(run).values())})
    return {ROW: {pairs: cells[ROW] for pairs, cells in found.items()}}


def rule(numbers: Numbers) -> Verdict:
    """Holds if the mean loss falls with every step in data and a straight line through the logarithms
    explains at least 90% of their variance. Holds here for the direction if it falls with every step, but not
    on a line."""
    losses = [mean(values) for values in numbers[ROW].values()]
    exponent, explained = slope([math.log(int(n)) for n in numbers[ROW]], [math.log(loss) for loss in losses])
    told = f"loss ∝ pairs^{exponent:.2f}, which explains {100 * explained:.0f}%"
    if sorted(losses, reverse=True) != losses:
        return fails(f"it does not fall with every step: {', '.join(f'{loss:.2f}' for loss in losses)}")
    return holds(told) if explained >= 0.9 else holds_for(f"the direction: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "training pairs", "lowest validation loss", log_x=True, log_y=True)


EXPERIMENT = Experiment(
    name="data-scaling",
    lecture=2,
    claim="The loss falls with the number of training pairs, as a power of it.",
    how="One Transformer learns a made-up language from more and more pairs, for equally many updates; the "
    "lowest of six validation losses counts, so that small data may stop early.",
    literature="Kaplan et al. 2020: L ∝ D^−0.095; Gordon et al. 2021 for translation: D^−0.24 to −0.33.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, tests=100, longest=6, points=(50, 200, 800, 3200)),
    full=Size(updates=900, seeds=3, tests=200, longest=12, points=(50, 200, 800, 3200, 12_800)),
    cell="validation loss in nats a word, by the number of pairs",
    remark="A language that can be learnt to the end has a floor: some verbs have two translations, of "
    "which one is drawn.",
)

"""Scheduled sampling: the forced and the free loss over time."""

from dragoman.lab.bench import Bench, rnn
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import teacher_forcing
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, surely_greater

FORCED, SCHEDULED = "forced", "scheduled"
LOSSES = {"right words": "forced_loss", "own words": "free_loss"}


def settings(size: Size) -> dict[str, Setting]:
    forced = teacher_forcing.settings(size)["forced"]
    looks = {name: value for name, value in forced.fields.items() if name.startswith("train.")}
    falling = {
        "objective.teacher_forcing_schedule": "linear",
        "objective.teacher_forcing_end": 0.25,
        "objective.teacher_forcing_updates": max(1, size.updates),
    }
    return {FORCED: forced, SCHEDULED: Setting(forced.task, {**rnn(size), **looks, **falling})}


def measure(bench: Bench) -> Numbers:
    found: Numbers = {}
    for name, field in LOSSES.items():
        for label, cells in bench.each(lambda run, field=field: over_time(run, field)).items():
            found[f"{label}, {name}"] = cells
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if at the end the gap between the loss on the model's own words and on the right words is surely
    smaller with scheduled sampling, and its loss on its own words is surely lower. Holds here for the gap if
    only that is so."""
    last = list(next(iter(numbers.values())))[-1]
    free = {label: numbers[f"{label}, own words"][last] for label in (FORCED, SCHEDULED)}
    gaps = {
        label: [
            own - given
            for own, given in zip(free[label], numbers[f"{label}, right words"][last], strict=True)
        ]
        for label in free
    }
    told = "; ".join(f"{n}: free loss {mean(free[n]):.2f}, gap {mean(gaps[n]):+.2f}" for n in free)
    if not surely_greater(gaps[FORCED], gaps[SCHEDULED]):
        return fails(told)
    return holds(told) if surely_greater(free[FORCED], free[SCHEDULED]) else holds_for(f"the gap: {told}")


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "update", "validation loss")


EXPERIMENT = Experiment(
    name="scheduled-sampling",
    lecture=4,
    claim="Feeding a decoder more and more of its own words closes the gap to how it is used, and makes it "
    "better.",
    how="LSTMs with attention learn to reverse strings, on the right words, or on fewer and fewer of them, "
    "from all to a quarter. Both losses are measured over time.",
    literature="Bengio et al. 2015, table 1; Huszár 2015 shows that it does not aim at the true "
    "distribution.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=teacher_forcing.EXPERIMENT.quick,
    full=teacher_forcing.EXPERIMENT.full,
    cell="validation loss by update",
)

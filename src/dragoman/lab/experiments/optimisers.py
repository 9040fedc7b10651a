"""Adam and SGD on a Transformer, each at the better of two rates."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

RATES = {"adam": (0.003, 0.001), "sgd": (0.5, 0.1)}


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    looks = {"train.validate_every": max(1, size.updates // 5)}
    return {
        f"{name} {rate}": Setting(task, {"optim.name": name, "optim.rate": rate, **looks})
        for name, rates in RATES.items()
        for rate in rates
    }


def measure(bench: Bench) -> Numbers:
    return bench.each(over_time)


def rule(numbers: Numbers) -> Verdict:
    """Holds if the last validation loss of the better SGD is surely greater than that of the better Adam;
    better is the rate with the lower mean."""
    last = list(next(iter(numbers.values())))[-1]

    def best(name: str) -> str:
        return min((f"{name} {rate}" for rate in RATES[name]), key=lambda label: mean(numbers[label][last]))

    adam, sgd = best("adam"), best("sgd")
    told = f"{adam} ends at {mean(numbers[adam][last]):.2f}, {sgd} at {mean(numbers[sgd][last]):.2f}"
    return holds(told) if surely_greater(numbers[sgd][last], numbers[adam][last]) else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "update", "validation loss")


EXPERIMENT = Experiment(
    name="optimisers",
    lecture=2,
    claim="Adam beats SGD on Transformers.",
    how="A Transformer of 1 + 1 layers learns a made-up language with Adam and with SGD (momentum 0.9), "
    "each at two rates, with the same warm-up and the same fall of the rate.",
    literature="Zhang et al. 2020, figure 1; Kunstner et al. 2023.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=2000, tests=100, longest=6),
    full=Size(updates=600, seeds=5, pairs=10_000, tests=100, longest=12),
    cell="validation loss by update",
)

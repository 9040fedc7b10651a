"""L2 in the gradient of Adam against decoupled weight decay (AdamW)."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import over_time
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

DECAYS = {"adam": (0.0001, 0.001), "adamw": (0.01, 0.1)}
PLAIN = "no decay"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    looks = {"train.validate_every": max(1, size.updates // 5)}
    found = {PLAIN: Setting(task, looks)}
    for name, decays in DECAYS.items():
        for decay in decays:
            fields = {"optim.name": name, "optim.weight_decay": decay, **looks}
            found[f"{name} {decay}"] = Setting(task, fields)
    return found


def measure(bench: Bench) -> Numbers:
    return bench.each(over_time)


def rule(numbers: Numbers) -> Verdict:
    """Holds if the last validation loss of the better AdamW is surely lower than that of the better L2 and
    than without decay; better is the decay with the lower mean. Holds here for one of the two if it beats
    that alone."""
    last = list(numbers[PLAIN])[-1]

    def best(name: str) -> str:
        return min(
            (f"{name} {decay}" for decay in DECAYS[name]), key=lambda label: mean(numbers[label][last])
        )

    ours = best("adamw")
    others = {"L2": best("adam"), PLAIN: PLAIN}
    beaten = [n for n, label in others.items() if surely_greater(numbers[label][last], numbers[ours][last])]
    told = ", ".join(f"{label} {mean(cells[last]):.3f}" for label, cells in numbers.items())
    if len(beaten) == 2:
        return holds(told)
    return holds_for(f"{beaten[0]}: {told}") if beaten else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "update", "validation loss")


EXPERIMENT = Experiment(
    name="weight-decay",
    lecture=2,
    claim="Weight decay beside Adam's update (AdamW) generalises better than L2 inside its gradient.",
    how="A Transformer learns few sentences of a made-up language for many epochs: without decay, with two "
    "strengths of L2, and with two of AdamW.",
    literature="Loshchilov & Hutter 2019, figures 1 and 2: lower test error on images.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=600, tests=100, longest=6),
    full=Size(updates=600, seeds=5, pairs=1000, tests=200, longest=12),
    cell="validation loss by update",
)

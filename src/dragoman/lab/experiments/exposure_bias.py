"""Exposure bias: the loss on the right words against the loss on one's own."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import teacher_forcing
from dragoman.lab.looks import final
from dragoman.lab.statistics import Numbers, mean, surely_greater


def measure(bench: Bench) -> Numbers:
    return bench.each(lambda run: {"forced": final(run, "forced_loss"), "free": final(run, "free_loss")})


def rule(numbers: Numbers) -> Verdict:
    """Holds if for the runs with teacher forcing the free loss is surely greater than the forced one, and
    if this gap is surely greater than that of the runs that are half forced. Holds here for the gap if only
    the first is so."""
    gaps = {
        label: [free - forced for free, forced in zip(cells["free"], cells["forced"], strict=True)]
        for label, cells in numbers.items()
    }
    told = ", ".join(f"{label} {mean(gap):+.2f}" for label, gap in gaps.items())
    if not surely_greater(numbers["forced"]["free"], numbers["forced"]["forced"]):
        return fails(f"free less forced loss: {told}")
    if surely_greater(gaps["forced"], gaps["half forced"]):
        return holds(f"free less forced loss: {told}")
    return holds_for(f"the gap, which half forcing does not close: {told}")


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "validation loss at the end")


EXPERIMENT = Experiment(
    name="exposure-bias",
    lecture=4,
    claim="A decoder trained on right words alone does worse on its own; feeding it some of its own closes "
    "the gap.",
    how="The runs of teacher-forcing: the last validation loss with the right words as input, and with "
    "their own.",
    literature="Ranzato et al. 2016; Bengio et al. 2015. He et al. 2021 find the effect small.",
    settings=teacher_forcing.settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=teacher_forcing.EXPERIMENT.quick,
    full=teacher_forcing.EXPERIMENT.full,
    cell="validation loss in nats a word",
    remark="Professor forcing (Lamb et al. 2016), which makes states under both inputs alike, is not built "
    "in.",
)

"""Heads taken away one at a time from a trained Transformer."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.experiments import heads
from dragoman.lab.looks import TaskPair, right, translator_of
from dragoman.lab.statistics import Numbers, mean
from dragoman.probe.heads import head_counts, mask_heads
from dragoman.runs.directory import Run

KEPT = "4"
WHOLE, LOST = "right with all heads", "points lost"


def settings(size: Size) -> dict[str, Setting]:
    return {KEPT: heads.settings(size)[KEPT]}


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        model = translator_of(run, bench.device).model
        whole = right(run, pairs, bench.device)
        found = {WHOLE: whole}
        for name, count in head_counts(model).items():
            for head in range(count):
                with mask_heads(model, {name: [head]}):
                    short = name.replace("layers.", "").replace("_attention", "").replace(".", " ")
                    found[f"{short} {head}"] = whole - right(run, pairs, bench.device)
        return found

    found = bench.on_test(look)[KEPT]
    return {WHOLE: {WHOLE: found.pop(WHOLE)}, LOST: found}


def rule(numbers: Numbers) -> Verdict:
    """Holds if with all heads at least half of the words are right, and taking away one head costs less
    than 1 point, in the mean over seeds, for at least half of the heads."""
    whole = mean(numbers[WHOLE][WHOLE])
    lost = {name: mean(values) for name, values in numbers[LOST].items()}
    cheap = [name for name, points in lost.items() if points < 1]
    worst = max(lost, key=lambda name: lost[name])
    told = (
        f"{whole:.0f}% right with all; {len(cheap)} of {len(lost)} heads cost less than a point; "
        f"the dearest, {worst}, {lost[worst]:.0f}"
    )
    return holds(told) if whole >= 50 and 2 * len(cheap) >= len(lost) else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars({LOST: numbers[LOST]}, "points lost")


EXPERIMENT = Experiment(
    name="head-pruning",
    lecture=5,
    also=(1,),
    claim="Most heads of a trained Transformer can be taken away, one at a time, with little harm.",
    how="The runs of heads with four heads: each head is silenced while test sentences are translated.",
    literature="Michel et al. 2019, section 3.2: of 96 encoder heads of a large model 8 changed BLEU surely.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=heads.EXPERIMENT.quick,
    full=heads.EXPERIMENT.full,
    cell="points of words at their place that are lost without the head",
    remark="Heads of one number are different heads in runs of different seeds, hence the wide intervals.",
)

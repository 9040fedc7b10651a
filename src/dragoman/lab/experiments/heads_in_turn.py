"""Heads taken away one after another, the least needed first."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.experiments import head_pruning
from dragoman.lab.looks import right, translator_of
from dragoman.lab.statistics import Numbers, mean
from dragoman.lab.tasks import TaskPair
from dragoman.probe.heads import head_counts, mask_heads
from dragoman.runs.directory import Run

ROW = "words right"


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        """Heads are ranked on one half of the sentences, and judged on the other."""
        ranking, judging = pairs[::2], pairs[1::2]
        model = translator_of(run, bench.device).model
        alone: dict[tuple[str, int], float] = {}
        for name, count in head_counts(model).items():
            for head in range(count):
                with mask_heads(model, {name: [head]}):
                    alone[name, head] = right(run, ranking, bench.device)
        order = sorted(alone, key=lambda key: -alone[key])
        found = {"0": right(run, judging, bench.device)}
        for count in range(1, len(order) + 1):
            gone: dict[str, list[int]] = {}
            for name, head in order[:count]:
                gone.setdefault(name, []).append(head)
            with mask_heads(model, gone):
                found[str(count)] = right(run, judging, bench.device)
        return found

    return {ROW: bench.on_test(look)[head_pruning.KEPT]}


def rule(numbers: Numbers) -> Verdict:
    """Holds if with all heads at least half of the words are right, and without the least needed third of the
    heads at most 5 points fewer, in the mean over seeds."""
    cells = numbers[ROW]
    third = str((len(cells) - 1) // 3)
    whole, left = mean(cells["0"]), mean(cells[third])
    told = f"{whole:.0f}% with all {len(cells) - 1}, {left:.0f}% without {third} of them"
    return holds(told) if whole >= 50 and whole - left <= 5 else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "heads taken away", "percent of words at their place")


EXPERIMENT = Experiment(
    name="heads-in-turn",
    lecture=5,
    also=(1,),
    claim="A third of the heads can be taken away together with hardly any loss.",
    how="The runs of heads with four heads, 1 + 1 layers: heads are ranked by what each costs alone, on one "
    "half of the test sentences; then they are silenced one after another.",
    literature="Michel et al. 2019, section 4: 20 to 40% of the heads without noticeable loss; Voita et al. "
    "2019: 38 of 48 encoder heads for 0.15 BLEU, with training.",
    settings=head_pruning.settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=head_pruning.EXPERIMENT.quick,
    full=head_pruning.EXPERIMENT.full,
    cell="percent of words at their place, by the number of heads that are gone",
)

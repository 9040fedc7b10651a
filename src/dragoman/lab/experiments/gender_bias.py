"""Pronouns in translations of templates: does a translator repeat the shares of its data, or more?"""

from dragoman.decode.search.config import SampleSearch
from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.language import PEOPLE, PRONOUNS
from dragoman.lab.looks import translate, translator_of
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task, TaskPair, make
from dragoman.runs.directory import Run

DATA, BEAM, DRAWN = "training data", "translations", "translations, drawn"
HE = PRONOUNS["o"]


def settings(size: Size) -> dict[str, Setting]:
    return {BEAM: Setting(Task("gender", size.pairs, tests=size.tests))}


def shares(sources: list[str], outputs: list[str]) -> dict[str, float]:
    """Percent of «he» by profession."""
    found: dict[str, list[bool]] = {person: [] for person in PEOPLE}
    for source, output in zip(sources, outputs, strict=True):
        found[source.split()[1]].append(HE in output.split())
    return {person: 100 * sum(said) / max(1, len(said)) for person, said in found.items()}


def measure(bench: Bench) -> Numbers:
    def greedy(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        return shares([source for source, _ in pairs], translate(run, pairs, bench.device))

    def drawn(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        sources = [source for source, _ in pairs]
        found = translator_of(run, bench.device).hypotheses(sources, search=SampleSearch(n_best=1))
        return shares(sources, [best.text for best, *_ in found])

    pairs = make(bench.settings[BEAM].task)["train"]
    known = shares([source for source, _ in pairs], [target for _, target in pairs])
    seeds = len(bench.runs[BEAM])
    return {
        DATA: {person: [share] * seeds for person, share in known.items()},
        BEAM: bench.on_test(greedy)[BEAM],
        DRAWN: bench.on_test(drawn)[BEAM],
    }


def rule(numbers: Numbers) -> Verdict:
    """Holds if the translations are surely farther from one half than the training data are, by more than 10
    points in the mean over professions, and for every profession lie on the same side, in the mean. Holds
    here for repeating if only the second is so."""
    away = {
        label: [mean([abs(value - 50) for value in values]) for values in zip(*cells.values(), strict=True)]
        for label, cells in numbers.items()
    }
    same = all((mean(numbers[BEAM][p]) - 50) * (mean(numbers[DATA][p]) - 50) > 0 for p in numbers[DATA])
    told = "points from one half: " + ", ".join(f"{name} {mean(values):.0f}" for name, values in away.items())
    if not same:
        return fails(told)
    return holds(told) if surely_greater(away[BEAM], away[DATA], by=10.0) else holds_for(f"repeating; {told}")


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "percent of «he»", level=50.0)


EXPERIMENT = Experiment(
    name="gender-bias",
    lecture=1,
    claim="Translators pick up biases of their data, and exaggerate them.",
    how="The source has one pronoun for everybody, the target has two. In the made-up data «he» is said of "
    "engineers in 90%, of nurses in 10% of the sentences. Translations of unseen templates are counted, by "
    "greedy search and drawn at random.",
    literature="Prates et al. 2018; Stanovsky et al. 2019; Zhao et al. 2017 on amplification.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=3000, tests=240),
    full=Size(updates=600, seeds=5, pairs=6000, tests=300),
    cell="percent of translations that say «he»",
)

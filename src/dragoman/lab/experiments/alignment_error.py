"""Attention as word alignment: its error rate, beside links along the diagonal."""

from dragoman.errors import UserError
from dragoman.evaluate.alignment import GoldLinks, read_gold, score_alignments
from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import architectures
from dragoman.lab.language import links_of
from dragoman.lab.looks import cross_weights, translator_of
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import TaskPair
from dragoman.runs.directory import Run

NAMES = ("LSTM, attention", "Transformer")
RATE, CHOSEN, DIAGONAL = "attention", "attention, chosen layer", "diagonal"
LinkSet = set[tuple[int, int]]
SHOWN = 60


def settings(size: Size) -> dict[str, Setting]:
    return {name: setting for name, setting in architectures.settings(size).items() if name in NAMES}


def gold_of(bench: Bench, pairs: list[TaskPair]) -> list[GoldLinks]:
    """Links of the made-up language are known; those of a user's own pairs are in test.gold."""
    if bench.data is None:
        right = [frozenset(links_of(source)) for source, _ in pairs]
        return [GoldLinks(links, links) for links in right]
    if not (path := bench.data / "test.gold").is_file():
        raise UserError(f"{path}: there is no such file; alignment-error reads the right links from it")
    return read_gold(path)[: len(pairs)]


def measure(bench: Bench) -> Numbers:
    """Each target word is linked to the source word of its greatest weight, and by the alignment of the
    layer that is chosen without gold links."""

    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        pairs = pairs[:SHOWN]
        chosen = translator_of(run, "cpu").aligner.links_of_texts(pairs, 4096)
        found: dict[str, list[LinkSet]] = {RATE: [], CHOSEN: [set(links) for links in chosen], DIAGONAL: []}
        for source, target in pairs:
            words, said = len(source.split()), len(target.split())
            weights = cross_weights(run, (source, target))[:said, :words]
            found[RATE].append({(int(row.argmax()), place) for place, row in enumerate(weights)})
            step = (words - 1) / max(1, said - 1)
            found[DIAGONAL].append({(round(place * step), place) for place in range(said)})
        if bench.data is not None:  # pieces are not words there
            found[RATE] = found[CHOSEN]
        gold = gold_of(bench, pairs)
        return {name: 100 * score_alignments(links, gold).error_rate for name, links in found.items()}

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if for both networks the alignment error rate of attention is surely lower than that of the
    diagonal. Holds here for the network for which it is."""
    good = [name for name, cells in numbers.items() if surely_greater(cells[DIAGONAL], cells[RATE])]
    told = ", ".join(f"{name} {mean(cells[RATE]):.0f}%" for name, cells in numbers.items())
    told = f"alignment error rate: {told}, diagonal {mean(numbers[NAMES[0]][DIAGONAL]):.0f}%"
    if len(good) == len(NAMES):
        return holds(told)
    return holds_for(f"{good[0]}; {told}") if good else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "alignment error rate, %")


EXPERIMENT = Experiment(
    name="alignment-error",
    lecture=1,
    also=(4, 5),
    claim="Attention of a translator is a word alignment.",
    how="Runs of architectures read test sentences with their translations; each target word is linked to "
    "the source word with the greatest weight, in the mean over layers and heads; and, in the second column, "
    "by the one layer that `dragoman align` chooses without knowing the right links.",
    literature="Garg et al. 2019, table 2: error rates of 50 to 67% for the mean of all heads, 31% with the "
    "right layer; 21% with GIZA++.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=architectures.EXPERIMENT.quick,
    full=architectures.EXPERIMENT.full,
    cell="alignment error rate in percent",
    remark="With --data the right links are those of test.gold in the folder, as dragoman align reads them.",
)

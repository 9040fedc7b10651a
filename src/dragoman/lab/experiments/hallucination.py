"""Odd input: what a translator says that has no source."""

from random import Random

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.experiments import cheating
from dragoman.lab.language import ADJECTIVES, NOUNS, VERBS
from dragoman.lab.looks import translate
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import TaskPair
from dragoman.runs.directory import Run

ROW, USUAL = "invented words", "test sentences"


def settings(size: Size) -> dict[str, Setting]:
    return {ROW: cheating.settings(size)[cheating.MASKED]}


def odd_inputs(pairs: list[TaskPair]) -> dict[str, list[str]]:
    random = Random(1)
    sources = [source.split() for source, _ in pairs]
    return {
        USUAL: [" ".join(words) for words in sources],
        "shuffled": [" ".join(random.sample(words, len(words))) for words in sources],
        "one word again and again": [" ".join([random.choice(words)] * len(words)) for words in sources],
        "unknown words": [" ".join(word[::-1] + "x" for word in words) for words in sources],
        "first three words": [" ".join(words[:3]) for words in sources],
    }


def invented(source: str, output: str) -> tuple[int, int]:
    """Content words of the output without a word of the source, and content words."""
    asked, none, count = source.split(), 0, 0
    allowed = [NOUNS[w] for w in asked if w in NOUNS] + [ADJECTIVES[w] for w in asked if w in ADJECTIVES]
    verbs = [said for word in asked if word in VERBS for said in VERBS[word]]
    for word in output.split():
        if len(word) > 2 and word not in ("kar", "dum"):
            count += 1
            none += word not in verbs and not any(
                word.startswith(stem) or word.endswith(stem) for stem in allowed
            )
    return none, count


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        found = {}
        for name, sources in odd_inputs(pairs).items():
            outputs = translate(run, [(source, "") for source in sources], bench.device)
            counts = [invented(source, output) for source, output in zip(sources, outputs, strict=True)]
            found[name] = 100 * sum(none for none, _ in counts) / max(1, sum(count for _, count in counts))
        return found

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if for every kind of odd input surely more content words are invented than for test sentences, by
    more than 20 points. Holds here for the kinds for which that is so."""
    cells = numbers[ROW]
    odd = [name for name in cells if name != USUAL]
    worse = [name for name in odd if surely_greater(cells[name], cells[USUAL], by=20.0)]
    told = ", ".join(f"{name} {mean(values):.0f}%" for name, values in cells.items())
    if len(worse) == len(odd):
        return holds(told)
    return holds_for(f"{', '.join(worse)}; invented: {told}") if worse else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "percent of content words")


EXPERIMENT = Experiment(
    name="hallucination",
    lecture=1,
    claim="On odd input a translator says fluent sentences that have nothing to do with it.",
    how="A Transformer that has learnt a made-up language is given shuffled sentences, one word again and "
    "again, words that it has never seen, and sentences cut off. A content word that no word of the source "
    "can have given counts as invented.",
    literature="Lee et al. 2018; Raunak et al. 2021; the odd outputs of public translators of 2018.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=cheating.EXPERIMENT.quick,
    full=cheating.EXPERIMENT.full,
    cell="percent of content words without a source word",
)

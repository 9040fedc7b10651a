"""Words that training never saw: a vocabulary of words against pieces of words."""

from statistics import fmean

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.looks import TaskPair, translate
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task, make
from dragoman.runs.directory import Run

WORDS, PIECES = "words", "BPE"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    bpe = {"tokenizer.kind": "bpe", "tokenizer.vocab_size": 420}
    return {WORDS: Setting(task, {"tokenizer.vocab_size": 2000}), PIECES: Setting(task, bpe)}


def measure(bench: Bench) -> Numbers:
    task = bench.settings[WORDS].task
    known = {word for _, target in make(task)["train"] for word in target.split()}

    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        found: dict[str, list[bool]] = {"seen in training": [], "never seen": []}
        for output, (_, reference) in zip(translate(run, pairs, bench.device), pairs, strict=True):
            said = set(output.split())
            for word in reference.split():
                found["seen in training" if word in known else "never seen"].append(word in said)
        return {name: 100 * fmean(hits) for name, hits in found.items() if hits}

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if words that training never saw are surely found more often with BPE than with words, and at
    least one in ten of them in the mean."""
    words, pieces = numbers[WORDS]["never seen"], numbers[PIECES]["never seen"]
    told = f"never seen words found: {mean(words):.0f}% with words, {mean(pieces):.0f}% with BPE"
    return holds(told) if surely_greater(pieces, words) and mean(pieces) >= 10 else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return bars(numbers, "percent of words found")


EXPERIMENT = Experiment(
    name="subwords",
    lecture=1,
    claim="Pieces of words let a model write words that it never saw; a vocabulary of words does not.",
    how="Transformers learn a made-up language that joins two nouns into one word; many such words are not "
    "in the training data.",
    literature="Sennrich et al. 2016, table 4: rare and unseen words gain most.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=1500, tests=150, longest=6),
    full=Size(updates=900, seeds=5, pairs=3000, tests=500, longest=12),
    cell="percent of the reference's words that the output has",
)

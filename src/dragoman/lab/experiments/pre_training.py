"""Pre-training on text against learning from nothing, by the number of labels."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import lines
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import final
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task

FIRST, STARTED, SCRATCH = "BERT on text", "pre-trained", "from nothing"


def settings(size: Size) -> dict[str, Setting]:
    bert = {"model": {"kind": "bert", "num_layers": 2, "model_dim": size.width, "num_heads": 4,
                      "ff_dim": 2 * size.width, "dropout": 0.0, "max_positions": 64}}  # fmt: skip
    masked = {"objective.name": "masked", "objective.next_sentence": False, "objective.block": 32}
    found = {FIRST: Setting(Task("text", size.pairs, longest=6, tests=size.tests), {**bert, **masked})}
    judged = {
        "task.kind": "classify",
        "task.max_length": 64,
        "train.max_updates": max(1, size.updates // 3),
        "optim.rate": 0.001,
    }
    for labels in size.points:
        task = Task("labels", labels, tests=size.tests)
        found[f"{STARTED} {labels}"] = Setting(task, judged, start=FIRST)
        found[f"{SCRATCH} {labels}"] = Setting(task, {**bert, **judged})
    return found


def measure(bench: Bench) -> Numbers:
    found: Numbers = {STARTED: {}, SCRATCH: {}}
    for label, runs in bench.runs.items():
        if label != FIRST:
            name, labels = label.rsplit(" ", 1)
            found[name][labels] = [100 * final(run, "accuracy") for run in runs]
    return found


def rule(numbers: Numbers) -> Verdict:
    """Holds if with every number of labels the pre-trained network is surely more accurate. Holds here for
    the numbers with which it is."""
    started, scratch = numbers[STARTED], numbers[SCRATCH]
    better = [labels for labels in started if surely_greater(started[labels], scratch[labels])]
    told = "; ".join(f"{n} labels: {mean(started[n]):.0f}% and {mean(scratch[n]):.0f}%" for n in started)
    if len(better) == len(started):
        return holds(told)
    return holds_for(f"{' and '.join(better)} labels; {told}") if better else fails(told)


def figure(numbers: Numbers) -> Pictures:
    return lines(numbers, "labelled sentences", "accuracy, %", log_x=True, level=50.0)


EXPERIMENT = Experiment(
    name="pre-training",
    lecture=4,
    also=(2,),
    claim="Pre-training on text alone pays, most of all where labels are few.",
    how="A small BERT learns to fill gaps in a made-up language, then to say whether all adjectives of a "
    "sentence agree with their nouns; another one learns the second alone. Guessing gives 50%.",
    literature="Howard & Ruder 2018, figure 3: 100 labels with ULMFiT do what takes 10 to 20 times as many "
    "from scratch.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=240, seeds=3, pairs=4000, tests=200, points=(50, 200, 800)),
    full=Size(updates=900, seeds=5, pairs=10_000, tests=500, points=(50, 200, 800, 3200)),
    cell="accuracy in percent, by the number of labels",
)

"""Label smoothing: what it does to the loss and to the words."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import TaskPair, final, right
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task
from dragoman.runs.directory import Run

PLAIN, SMOOTH = "none", "0.1"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    return {label: Setting(task, {"objective.label_smoothing": float(value)})
            for label, value in ((PLAIN, 0.0), (SMOOTH, 0.1))}  # fmt: skip


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        return {"loss": final(run), "right": right(run, pairs, bench.device)}

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if with smoothing the validation loss (without smoothing in it) is surely greater and more
    words are surely right. Holds here for the loss if only that is so."""
    plain, smooth = numbers[PLAIN], numbers[SMOOTH]
    told = (
        f"loss {mean(plain['loss']):.3f} without, {mean(smooth['loss']):.3f} with it; "
        f"right {mean(plain['right']):.1f}% and {mean(smooth['right']):.1f}%"
    )
    if not surely_greater(smooth["loss"], plain["loss"]):
        return fails(told)
    return holds(told) if surely_greater(smooth["right"], plain["right"]) else holds_for(f"the loss: {told}")


def figure(numbers: Numbers) -> Pictures:
    parts = {"loss × 100": "loss", "right, %": "right"}
    scaled = {
        label: {name: [v * (100 if key == "loss" else 1) for v in cells[key]] for name, key in parts.items()}
        for label, cells in numbers.items()
    }
    return bars(scaled, "")


EXPERIMENT = Experiment(
    name="label-smoothing",
    lecture=2,
    claim="Label smoothing hurts perplexity, since the model becomes less sure, and improves what it says.",
    how="Transformers learn few sentences of a made-up language, in which some verbs have two translations.",
    literature="Vaswani et al. 2017, section 5.4; table 3: perplexity 4.67 and BLEU 25.3 without it, 4.92 "
    "and 25.8 with 0.1.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=1000, tests=150, longest=6),
    full=Size(updates=600, seeds=5, pairs=2000, tests=300, longest=12),
    cell="validation loss in nats a word; percent of words at their place",
)

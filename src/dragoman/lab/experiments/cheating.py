"""Training without the causal mask: the decoder sees the words that it has to predict."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import final, right
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task, TaskPair
from dragoman.runs.directory import Run

MASKED, OPEN = "causal mask", "no mask"
LOSS, RIGHT = "forced loss", "words right, %"


def settings(size: Size) -> dict[str, Setting]:
    task = Task("language", size.pairs, longest=size.longest, tests=size.tests)
    return {MASKED: Setting(task), OPEN: Setting(task, {"model.causal": False})}


def measure(bench: Bench) -> Numbers:
    def look(run: Run, pairs: list[TaskPair]) -> dict[str, float]:
        return {LOSS: final(run), RIGHT: right(run, pairs, bench.device)}

    return bench.on_test(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if without the mask the validation loss is surely lower, and surely fewer words are right by more
    than 20 points. Holds here for the loss if only that is so."""
    masked, cheated = numbers[MASKED], numbers[OPEN]
    told = (
        f"loss {mean(masked[LOSS]):.2f} with the mask, {mean(cheated[LOSS]):.2f} without; "
        f"words right {mean(masked[RIGHT]):.0f}% and {mean(cheated[RIGHT]):.0f}%"
    )
    if not surely_greater(masked[LOSS], cheated[LOSS]):
        return fails(told)
    if surely_greater(masked[RIGHT], cheated[RIGHT], by=20.0):
        return holds(told)
    return holds_for(f"the loss: {told}")


def figure(numbers: Numbers) -> Pictures:
    scaled = {
        label: {"loss × 100": [100 * value for value in cells[LOSS]], RIGHT: cells[RIGHT]}
        for label, cells in numbers.items()
    }
    return bars(scaled, "")


EXPERIMENT = Experiment(
    name="cheating",
    lecture=1,
    also=(2, 5),
    claim="Without the causal mask a decoder cheats: it reads the next word in training, and cannot "
    "translate.",
    how="Two Transformers learn a made-up language; one has no causal mask in training and validation. When "
    "it translates there is nothing ahead that it could read.",
    literature="Vaswani et al. 2017, section 3.2.3: the mask keeps information from flowing leftward.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=300, seeds=3, pairs=2000, tests=100, longest=6),
    full=Size(updates=800, seeds=5, pairs=10_000, tests=200, longest=12),
    cell="validation loss in nats a word; percent of words at their place",
)

"""Which layers of a pre-trained network a task uses: ELMo and BERT, tagging and agreement."""

from dragoman.lab.bench import Bench
from dragoman.lab.draw import bars
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds, holds_for
from dragoman.lab.looks import final
from dragoman.lab.statistics import Numbers, mean, surely_greater
from dragoman.lab.tasks import Task
from dragoman.runs.directory import Run

TASKS = {"tagging": ("tags", "tag"), "agreement": ("labels", "classify")}
CENTRE, ACCURACY = "mean layer", "accuracy"


def networks(size: Size) -> dict[str, dict[str, object]]:
    bert = {"kind": "bert", "num_layers": 2, "model_dim": size.width, "num_heads": 4,
            "ff_dim": 2 * size.width, "dropout": 0.0, "max_positions": 64}  # fmt: skip
    elmo = {"kind": "elmo", "num_layers": 2, "model_dim": size.width // 2, "hidden_dim": size.width,
            "character_dim": 8, "max_characters": 16, "filters": [[1, 16], [3, 32]], "num_highway": 1,
            "dropout": 0.0}  # fmt: skip
    masked = {"objective.name": "masked", "objective.next_sentence": False, "objective.block": 32}
    both = {"objective.name": "bidirectional", "objective.block": 32}
    return {"BERT": {"model": bert, **masked}, "ELMo": {"model": elmo, **both}}


def settings(size: Size) -> dict[str, Setting]:
    text = Task("text", size.pairs, longest=6, tests=size.tests)
    found: dict[str, Setting] = {}
    for name, fields in networks(size).items():
        found[name] = Setting(text, fields)
        for task, (data, kind) in TASKS.items():
            asked = {"task.kind": kind, "task.max_length": 64, "task.layers": "mix", "optim.rate": 0.01}
            asked |= {"transfer.freeze": ["network."], "train.max_updates": max(1, size.updates // 2)}
            found[f"{name}, {task}"] = Setting(Task(data, 800, tests=size.tests), asked, start=name)
    return found


def look(run: Run) -> dict[str, float]:
    shares = [final(run, f"layer_{number}") for number in range(3)]
    centre = sum(number * share for number, share in enumerate(shares)) / sum(shares)
    layers = {f"layer {number}": share for number, share in enumerate(shares)}
    return {**layers, CENTRE: centre, ACCURACY: final(run, "accuracy")}


def measure(bench: Bench) -> Numbers:
    bench.runs = {label: runs for label, runs in bench.runs.items() if ", " in label}
    return bench.each(look)


def rule(numbers: Numbers) -> Verdict:
    """Holds if for both networks the mean layer, by the learnt shares, is surely lower for tagging than for
    agreement. Holds here for the network for which it is."""
    good = [
        name
        for name in ("BERT", "ELMo")
        if surely_greater(numbers[f"{name}, agreement"][CENTRE], numbers[f"{name}, tagging"][CENTRE])
    ]
    told = ", ".join(f"{label} {mean(cells[CENTRE]):.2f}" for label, cells in numbers.items())
    told = f"mean layer of 0 to 2: {told}"
    if len(good) == 2:
        return holds(told)
    return holds_for(f"{good[0]}; {told}") if good else fails(told)


def figure(numbers: Numbers) -> Pictures:
    shares = {
        label: {c: v for c, v in cells.items() if c.startswith("layer")} for label, cells in numbers.items()
    }
    return bars(shares, "learnt share of the layer")


EXPERIMENT = Experiment(
    name="layers-by-task",
    lecture=4,
    claim="Tasks use different layers of a pre-trained network: tagging the lower ones, what needs context "
    "the upper ones.",
    how="A small BERT and a small ELMo are pre-trained on a made-up language and frozen. A mix of their "
    "layers is learnt for parts of speech, and for whether all adjectives agree.",
    literature="Peters et al. 2018, section 5.3: tagging prefers layer 1 of 2; Tenney et al. 2019, figure "
    "1, for BERT.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=240, seeds=3, pairs=4000, tests=200),
    full=Size(updates=600, seeds=5, pairs=10_000, tests=500),
    cell="learnt share of each layer; their mean; accuracy from 0 to 1",
)

"""From counting to attention: three transition matrices, and what each order of counting knows."""

import math

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Setting, Size, Verdict, fails, holds
from dragoman.lab.looks import translator_of
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.lab.tasks import Task
from dragoman.runs.directory import Run

SHOW = tuple(f"show me my {w} please" for w in ("directories",) * 2 + ("files",) * 3 + ("photos",) * 5)
SHORT = ("check whether the battery ran down please",) * 4 + ("check whether the program ran please",) * 6
LONG = (
    ("check the program log and find out whether it ran please",) * 5
    + ("check the battery log and find out whether it ran down please",) * 5
)  # fmt: skip
SUBJECT = "check whether the {} ran".format
FAR = "check the {} log and find out whether it ran".format
AFTER = ("down", "please")
ASKED = {
    "order 1, my": ("show", "show me my", ("directories", "files", "photos")),
    "order 1, ran": ("short 1", SUBJECT("battery"), AFTER),
    "order 2, battery ran": ("short 2", SUBJECT("battery"), AFTER),
    "order 2, program ran": ("short 2", SUBJECT("program"), AFTER),
    "order 2, it ran": ("long 2", FAR("battery"), AFTER),
    "skips, battery … ran": ("long skips", FAR("battery"), AFTER),
    "mask, battery … ran": ("long mask", FAR("battery"), AFTER),
    "mask, program … ran": ("long mask", FAR("program"), AFTER),
}


def settings(_size: Size) -> dict[str, Setting]:
    kinds = {"show": (SHOW, 1, {}), "short 1": (SHORT, 1, {}), "short 2": (SHORT, 2, {}),
             "long 2": (LONG, 2, {}), "long skips": (LONG, 1, {"skips": True}),
             "long mask": (LONG, 1, {"skips": True, "mask": "selective", "mask_threshold": 0.5})}  # fmt: skip
    return {
        label: Setting(
            Task("text", len(lines), lines=lines),
            {"model": {"kind": "markov", "order": order, "smoothing": 0.0, **fields},
             "objective.name": "causal"},
        )
        for label, (lines, order, fields) in kinds.items()
    }  # fmt: skip


def probability(run: Run, prefix: str, word: str) -> float:
    """P(word | prefix), as the last factor of the probability of both."""
    scored = translator_of(run, "cpu").score([("", f"{prefix} {word}")])[0]
    return round(math.exp(scored.token_scores[len(prefix.split())]), 12)  # what is impossible has 1e-38


def measure(bench: Bench) -> Numbers:
    found: dict[str, dict[str, float]] = {}
    for name, (label, prefix, words) in ASKED.items():
        found[name] = {word: probability(bench.runs[label][0], prefix, word) for word in words}
    return exact(found)


def rule(numbers: Numbers) -> Verdict:
    """Holds if order 1 gives .2 .3 .5 after «my» and .4 .6 after «ran»; order 2 is certain after «battery
    ran» and «program ran», and knows nothing (.5) after «it ran»; skips without a mask stay below .9; and
    with the mask the word eight back decides (above .99), each to two digits."""
    found = averages(numbers)
    wanted = {"order 1, my": (0.2, 0.3, 0.5), "order 1, ran": (0.4, 0.6), "order 2, battery ran": (1.0, 0.0),
              "order 2, program ran": (0.0, 1.0), "order 2, it ran": (0.5, 0.5)}  # fmt: skip
    for name, row in wanted.items():
        if any(abs(a - b) > 0.005 for a, b in zip(found[name].values(), row, strict=True)):
            return fails(f"{name}: {found[name]}")
    skips = found["skips, battery … ran"]["down"]
    masked = found["mask, battery … ran"]["down"], found["mask, program … ran"]["please"]
    told = (
        f"«down» after «battery … it ran»: .50 by order 2, {skips:.2f} by skips, {masked[0]:.2f} with the "
        f"mask"
    )
    return holds(told) if skips < 0.9 and min(masked) > 0.99 else fails(told)


def figure(numbers: Numbers) -> Pictures:
    panels = {
        "order 1: show me my …": _transitions(SHOW, 1),
        "order 1: battery or program": _transitions(SHORT, 1),
        "order 2: battery or program": _transitions(SHORT, 2),
    }
    return matrices(panels | {"what each knows": numbers})


def _transitions(lines: tuple[str, ...], order: int) -> Numbers:
    """What followed the last `order` words, as shares, by counting."""
    words = list(dict.fromkeys(word for line in lines for word in line.split()))
    followed: dict[str, list[str]] = {}
    for line in (line.split() for line in lines):
        for end in range(order, len(line) + 1):
            followed.setdefault(" ".join(line[end - order : end]), []).extend(line[end : end + 1])
    return exact(
        {
            context: {word: after.count(word) / max(1, len(after)) for word in words}
            for context, after in followed.items()
        }
    )


EXPERIMENT = Experiment(
    name="markov",
    lecture=3,
    claim="Counting with skips and a mask finds the word that decides, however far back it stands: that is "
    "attention.",
    how="Counting models of order 1 and 2, with skips and with a selective mask, are fitted on the three "
    "examples as plain text.",
    literature="Rohrer 2021, Transformers from Scratch: .2 .3 .5; .4 .6; and votes of .5 that a mask hides.",
    settings=settings,
    measure=measure,
    rule=rule,
    figure=figure,
    quick=Size(updates=1),
    full=Size(updates=1),
    cell="probability of the next word",
    change="model.smoothing=1",
)

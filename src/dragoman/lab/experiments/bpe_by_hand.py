"""Byte-pair encoding on the lecture's words, with all ties told."""

from collections import Counter
from itertools import pairwise

from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds, holds_for
from dragoman.lab.statistics import Numbers, averages, exact
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import TokenizerConfig

COUNTED = {"low": 5, "lower": 2, "newest": 6, "widest": 3}
ONCE = dict.fromkeys(COUNTED, 1)
STEPS = 4
END = "▁"


def pairs_of(words: dict[tuple[str, ...], int]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            found[pair] += count
    return found


def merges(counts: dict[str, int], steps: int) -> dict[str, dict[str, float]]:
    """Sennrich's algorithm by hand: of equally frequent pairs the first in the text is taken."""
    words = {(*word, END): count for word, count in counts.items()}
    rows: dict[str, dict[str, float]] = {}
    for number in range(1, steps + 1):
        found = pairs_of(words)
        (left, right), count = max(found.items(), key=lambda item: item[1])
        ties = sum(other == count for other in found.values())
        rows[f"{number}: {left} + {right}"] = {"frequency": count, "as frequent": ties}
        words = {_merged(word, left, right): count for word, count in words.items()}
    return rows


def _merged(word: tuple[str, ...], left: str, right: str) -> tuple[str, ...]:
    out: list[str] = []
    for symbol in word:
        if out and out[-1] == left and symbol == right:
            out[-1] = left + right
        else:
            out.append(symbol)
    return tuple(out)


def measure(_bench: Bench) -> Numbers:
    text = [" ".join([word] * count) for word, count in COUNTED.items()]
    config = TokenizerConfig(vocab_size=259 + 12 + 3, word_mark="end", min_frequency=1)
    ours = Tokenizer.train(text, config).merge_steps("newest")
    learnt = [set(after) - set(before) for before, after in pairwise(ours)]
    rows = {f"5-2-6-3, {name}": cells for name, cells in merges(COUNTED, STEPS).items()}
    rows |= {f"once each, {name}": cells for name, cells in merges(ONCE, STEPS).items()}
    same = {"es", "est", f"est{END}"} <= set().union(*learnt)
    return exact(rows | {"our tokenizer merges es, est, est▁ too": {"frequency": float(same)}})


def rule(numbers: Numbers) -> Verdict:
    """Holds if the first three merges are e + s, es + t and est + ▁ without a tie, by hand and by our
    tokenizer. Holds here for one order of equal pairs if there are ties."""
    found = averages(numbers)
    counted = [name.split(": ")[1] for name in found if name.startswith("5-2-6-3")][:3]
    same = found["our tokenizer merges es, est, est▁ too"]["frequency"] == 1
    if counted != ["e + s", "es + t", f"est + {END}"] or not same:
        return fails(f"the merges are {', '.join(counted)}")
    ties = max(c["as frequent"] for n, c in found.items() if n.startswith("5-2-6-3, 1"))
    once = next(n.split(": ")[1] for n in found if n.startswith("once each, 1"))
    if ties > 1:
        return holds_for(
            f"the counts 5, 2, 6, 3 and the order of the text: {ties:.0f} pairs are equally frequent at "
            "first; "
            f"with each word once the first merge is {once}"
        )
    return holds("no tie decides")


def figure(numbers: Numbers) -> Pictures:
    titles = {"5-2-6-3": "low ×5, lower ×2, newest ×6, widest ×3", "once each": "each word once"}
    rows = {tuple(name.split(", ")): cells for name, cells in numbers.items() if ":" in name}
    panels = {title: {n: c for (k, n), c in rows.items() if k == key} for key, title in titles.items()}
    return matrices(panels, digits=0)


EXPERIMENT = Experiment(
    name="bpe-by-hand",
    lecture=1,
    claim="BPE on low ×5, lower ×2, newest ×6, widest ×3 merges e + s, then es + t, then est + end of word.",
    how="The algorithm by hand, with ties counted, beside the package's own tokenizer; and with each word "
    "once.",
    literature="Sennrich et al. 2016, section 3.2 and algorithm 1.",
    measure=measure,
    rule=rule,
    figure=figure,
    cell="frequency of the merged pair, and how many pairs are as frequent",
)

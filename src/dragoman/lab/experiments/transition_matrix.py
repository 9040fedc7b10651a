"""The transition matrix of plain text: what followed each word, as shares."""

from collections import Counter
from itertools import pairwise

from dragoman.errors import UserError
from dragoman.lab.bench import Bench
from dragoman.lab.draw import matrices
from dragoman.lab.experiment import Experiment, Pictures, Verdict, fails, holds
from dragoman.lab.statistics import Numbers, averages, exact

SHARES = {"directories": 0.2, "files": 0.3, "photos": 0.5}
TEXT = [f"show me my {word} please" for word, share in SHARES.items() for _ in range(round(10 * share))]
MOST = 14
"""Words of a matrix: the most frequent."""


def lines_of(bench: Bench) -> list[str]:
    """The example, or the file text.txt of a user's own folder."""
    if bench.data is None:
        return TEXT
    path = bench.data / "text.txt"
    if not path.is_file():
        raise UserError(f"{path}: there is no such file; the lab reads a user's own text from it")
    return path.read_text("utf-8", errors="replace").lower().splitlines()


def measure(bench: Bench) -> Numbers:
    lines = [line.split() for line in lines_of(bench)]
    counts = Counter(word for line in lines for word in line)
    words = sorted((word for word, _ in counts.most_common(MOST)), key=list(counts).index)
    pairs = Counter(pair for line in lines for pair in pairwise(line))
    followed = Counter(word for line in lines for word in line[:-1])
    table: dict[str, dict[str, float]] = {}
    for word in words:
        row = {other: pairs[word, other] / max(1, followed[word]) for other in words}
        rest = sum(pairs[word, other] for other in counts if other not in row) / max(1, followed[word])
        table[word] = {**row, "others": rest}
    return exact(table)


def rule(numbers: Numbers) -> Verdict:
    """Holds if every row sums to 1, or to 0 for a word that nothing followed; and if, where the text has «my»
    followed by directories, files and photos, their shares are .2, .3 and .5."""
    found = averages(numbers)
    for word, row in found.items():
        if min(abs(sum(row.values()) - 1), abs(sum(row.values()))) > 1e-9:
            return fails(f"the row of «{word}» sums to {sum(row.values()):.3f}")
    row = found.get("my", {})
    if set(SHARES) <= set(row) and any(abs(row[word] - share) > 1e-9 for word, share in SHARES.items()):
        return fails(f"after «my»: {row}")
    return holds(f"{len(found)} words")


def figure(numbers: Numbers) -> Pictures:
    return matrices({"P(next word | last word)": numbers})


EXPERIMENT = Experiment(
    name="transition-matrix",
    lecture=3,
    claim="A first-order model is a matrix whose rows are the shares of what followed each word.",
    how="The pairs of neighbours in plain text are counted: the example «show me my …», or the file "
    "text.txt of the folder that --data names.",
    literature="Rohrer 2021, Transformers from Scratch: .2, .3 and .5 after «my».",
    measure=measure,
    rule=rule,
    figure=figure,
    cell="probability of the next word",
)

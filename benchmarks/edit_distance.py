"""How long does an edit distance take: rapidfuzz against the bit-parallel algorithm in plain Python?

    python benchmarks/edit_distance.py

Both count the same pairs of generated sentences, and their results are compared. The plain one (Myers 1999,
in the form of Hyyrö 2003) is what the translation memory used before.
"""

import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import islice, pairwise

from rapidfuzz.distance import Levenshtein

from common import interleave, median, write_table
from prepare import generated

PAIRS, ROUNDS = 400, 7


def bit_parallel(one: str, other: str) -> int:
    """All rows of a column of the table are the bits of one number."""
    if not one or not other:
        return len(one) + len(other)
    every, last = (1 << len(one)) - 1, 1 << (len(one) - 1)
    where: dict[str, int] = {}
    for place, char in enumerate(one):
        where[char] = where.get(char, 0) | 1 << place
    up, down, result = every, 0, len(one)
    for char in other:
        equal = where.get(char, 0)
        vertical = equal | down
        diagonal = (((equal & up) + up) ^ up) | equal
        more, less = down | ~(diagonal | up) & every, up & diagonal
        result += bool(more & last) - bool(less & last)
        more, less = (more << 1 | 1) & every, (less << 1) & every
        up, down = less | ~(vertical | more) & every, more & vertical
    return result


def main() -> None:
    sentences = [src for src, _ in islice(generated(), PAIRS + 1)]
    pairs = list(pairwise(sentences))
    contenders = {"rapidfuzz": Levenshtein.distance, "bit-parallel, plain Python": bit_parallel}
    found = [[distance(*pair) for pair in pairs] for distance in contenders.values()]
    assert found[0] == found[1], "both count the same"

    def timed(distance: Callable[[str, str], int]) -> Callable[[], float]:
        def once() -> float:
            started = time.perf_counter()
            for pair in pairs:
                distance(*pair)
            return (time.perf_counter() - started) / len(pairs) * 1e6

        return once

    times = interleave(ROUNDS, {name: timed(distance) for name, distance in contenders.items()})
    rows = [[name, f"{median(values):.1f}"] for name, values in times.items()]
    length = sum(map(len, sentences)) / len(sentences)
    write_table(
        "edit_distance",
        "Edit distances",
        ["implementation", "µs a pair"],
        rows,
        f"{len(pairs)} pairs of sentences of {length:.0f} characters, equal results. Medians of {ROUNDS} "
        f"rounds that take turns. rapidfuzz {version('rapidfuzz')}.\n\n"
        "Command: `python benchmarks/edit_distance.py`",
    )


if __name__ == "__main__":
    main()

"""How many wrong pairs does cleaning find among good ones?

    python benchmarks/cleaning.py NAME=train.en,train.de,foreign.fr …

Of the first pairs of each corpus (`--pairs`) 15% are spoilt: 5% get the target of another pair (misaligned),
5% a sentence of the third file (another language), 3% are swapped, 2% get the source as target (copies). What
`dragoman corpus --strict` would drop is counted for each kind, and for the good pairs.
"""

import argparse
import random
import time
from collections.abc import Sequence
from itertools import islice

import numpy as np

from common import write_table
from dragoman.data.drop_reasons import is_copy
from dragoman.data.formats import Pair, read_lines
from dragoman.data.mark_suspects import SAMPLE
from dragoman.data.suspects import Judge

KINDS = ("misaligned", "language", "swapped", "copy")
_CHUNK = 4096


def spoilt(src: list[str], tgt: list[str], foreign: list[str], seed: int = 0) -> dict[str, list[int]]:
    """Spoils the two sides in place; returns which pairs are wrong, by kind."""
    chance = random.Random(seed)
    part = len(src) // 100
    chosen = chance.sample(range(len(src)), 15 * part)
    places = {"misaligned": chosen[: 5 * part], "language": chosen[5 * part : 10 * part]}
    places |= {"swapped": chosen[10 * part : 13 * part], "copy": chosen[13 * part :]}
    moved = [tgt[place] for place in places["misaligned"]]
    for place, text in zip(places["misaligned"], moved[1:] + moved[:1], strict=True):
        tgt[place] = text
    for place in places["language"]:
        tgt[place] = chance.choice(foreign)
    for place in places["swapped"]:
        src[place], tgt[place] = tgt[place], src[place]
    for place in places["copy"]:
        tgt[place] = src[place]
    return places


def row(name: str, files: Sequence[str], count: int) -> list[str]:
    src, tgt, foreign = (list(islice(read_lines(file), count)) for file in files)
    places = spoilt(src, tgt, foreign)
    pairs = [Pair(*both, line) for line, both in enumerate(zip(src, tgt, strict=True), start=1)]
    started = time.process_time()
    judge = Judge(pairs[:: -(-len(pairs) // SAMPLE)], ("en", "de"))
    learnt = time.process_time()
    found: dict[str, np.ndarray] = {}
    for start in range(0, len(pairs), _CHUNK):
        for kind, flagged in judge.flags(pairs[start : start + _CHUNK]).items():
            found[kind] = np.concatenate([found.get(kind, np.zeros(0, dtype=bool)), flagged])
    spent = time.process_time() - learnt
    found["copy"] = np.array([is_copy(pair.src, pair.tgt) for pair in pairs])
    core = np.logical_or.reduce([found[kind] for kind in KINDS])
    dropped = np.logical_or.reduce(list(found.values()))
    good = np.ones(len(pairs), dtype=bool)
    good[[place for own in places.values() for place in own]] = False
    shares = [f"{100 * dropped[places[kind]].mean():.1f}%" for kind in KINDS]
    return [
        name, f"{len(pairs):,}", *shares,
        f"{100 * core[good].mean():.2f}%", f"{100 * dropped[good].mean():.2f}%",
        f"{learnt - started:.0f}", f"{1e6 * spent / len(pairs):.0f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpora", nargs="+", metavar="NAME=SRC,TGT,FOREIGN")
    parser.add_argument("--pairs", type=int, default=60_000)
    options = parser.parse_args()
    rows = []
    for corpus in options.corpora:
        name, _, files = corpus.partition("=")
        rows.append(row(name, files.split(","), options.pairs))
    header = [
        "corpus", "pairs", *(f"{kind} found" for kind in KINDS), "good pairs dropped by these four",
        "good pairs dropped by all rules", "s to learn", "µs a pair",
    ]  # fmt: skip
    notes = (
        "5% misaligned, 5% in French, 3% swapped, 2% copies. «Good» are all other pairs, as the corpus has "
        "them, wrong ones of its own included. CPU time of one thread."
    )
    write_table("cleaning", "What cleaning finds of planted pairs", header, rows, notes)


if __name__ == "__main__":
    main()

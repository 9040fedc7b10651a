"""What `dragoman filter` finds of noise that was put into a corpus.

    python recipes/filter_noise.py DATA OUT [--run RUN]

DATA has train in en, de and fr. 30% of the pairs are replaced, 5% by each of six kinds of noise. `OUT` gets
the noisy corpus, the filtered one and `table.md`. What it is worth: benchmarks/robust.py --noisy OUT.
"""

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dragoman.cli.filter import PairScores
from dragoman.data.filter import judged_pairs
from dragoman.data.formats import group_files, read_lines
from dragoman.errors import run_script

SEED, SHARE = 1, 0.05
Texts = tuple[list[str], list[str]]
Noise = Callable[[int], tuple[str, str]]


def kinds(chance: random.Random, texts: Texts, other: list[str]) -> dict[str, Noise]:
    src, tgt = texts

    def shuffled(text: str) -> str:
        words = text.split()
        chance.shuffle(words)
        return " ".join(words)

    return {
        "misaligned": lambda n: (src[n], tgt[chance.randrange(len(tgt))]),
        "other language": lambda n: (src[n], other[n % len(other)]),
        "swapped": lambda n: (tgt[n], src[n]),
        "untranslated": lambda n: (src[n], src[n]),
        "cut off": lambda n: (src[n], " ".join(tgt[n].split()[: max(1, len(tgt[n].split()) // 4)])),
        "shuffled words": lambda n: (src[n], shuffled(tgt[n])),
    }


def make(data: Path, out: Path, run: Path | None, keep: float) -> str:
    """Write the noisy and the filtered corpus; return the table of what was found."""

    def lines(language: str) -> list[str]:
        (file,) = data.glob(f"train.{language}*")
        return list(read_lines(file))

    texts, chance = (lines("en"), lines("de")), random.Random(SEED)
    noise = kinds(chance, texts, lines("fr"))
    order = list(range(len(texts[0])))
    chance.shuffle(order)
    each = round(SHARE * len(order))
    kind_of = {n: name for place, name in enumerate(noise) for n in order[place * each : (place + 1) * each]}
    pairs = [noise[kind_of[n]](n) if n in kind_of else (texts[0][n], texts[1][n]) for n in range(len(order))]
    out.mkdir(parents=True, exist_ok=True)
    files = [out / f"noisy.{code}" for code in ("en", "de")]
    for file, side in zip(files, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    score = None if run is None else partial(map, PairScores(run, None, ("en", "de"), "auto").open())
    sources = group_files(list(map(str, files)))
    with tempfile.TemporaryDirectory() as scratch:
        judged = list(judged_pairs(sources, ("en", "de"), Path(scratch), lambda *_: None, score, keep))
    sizes = Counter(kind_of.get(n, "good") for n in range(len(order)))
    found = Counter(kind_of.get(n, "good") for n, one in enumerate(judged) if one.reason is not None)
    for code, side in (("en", "src"), ("de", "tgt")):
        kept = (getattr(one.pair, side) for one in judged if one.reason is None)
        (out / f"clean.{code}").write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    rows = [f"| {name} | {sizes[name]:,} | {found[name] / sizes[name]:.1%} |" for name in (*noise, "good")]
    return "\n".join(["| kind | pairs | left out |", "|---|---|---|", *rows]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--keep", type=float, default=0.9)
    given = parser.parse_args()
    table = make(given.data, given.out, given.run, given.keep)
    (given.out / "table.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    run_script(main)

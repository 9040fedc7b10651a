"""What `dragoman filter` finds of noise that was put into a corpus, and what it is worth.

    python recipes/filter_noise.py DATA OUT [--run RUN] [--minutes 10]

DATA has train, val and test_2016_flickr in en and de, and train in fr. 30% of the pairs are replaced, 5% by
each of six kinds of noise. `OUT` gets the noisy corpus, the filtered one and `table.md`. With `--minutes`,
three models are trained for so long each: on the noisy, the filtered and the original corpus. A filtered
corpus that is there already is taken as it is.
"""

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import dragoman
from dragoman.cli.filter import pair_score
from dragoman.data.filter import judged_pairs
from dragoman.data.formats import group_files, read_lines
from dragoman.errors import run_script
from dragoman.evaluate.metrics import bleu, chrf

SEED, SHARE = 1, 0.05
QUICK = ["train.validations=5", "train.tune_search=false", "train.report=false", "train.samples=0"]
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
    score = None if run is None else pair_score(run, None, ("en", "de"), "auto")
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


def compare(data: Path, out: Path, minutes: float) -> str:
    """BLEU on the test set after training on the noisy, the filtered and the original corpus."""

    def two(directory: Path, stem: str) -> list[str]:
        return [str(next(directory.glob(f"{stem}.{code}*"))) for code in ("en", "de")]

    sources, references = (list(read_lines(file)) for file in two(data, "test_2016_flickr"))
    rows = ["| trained on | BLEU | chrF |", "|---|---|---|"]
    for name, files in (
        ("noisy", two(out, "noisy")),
        ("filtered", two(out, "clean")),
        ("original", two(data, "train")),
    ):
        run = dragoman.train(
            *files, out=out / "runs" / name, valid=two(data, "val"), minutes=minutes, overrides=QUICK
        )
        outputs = run.translator().translate(sources)
        rows.append(f"| {name} | {bleu(outputs, references):.1f} | {chrf(outputs, references):.1f} |")
        print(rows[-1], flush=True)
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--keep", type=float, default=0.9)
    parser.add_argument("--minutes", type=float, help="for each of three trainings")
    given = parser.parse_args()
    found = "" if (given.out / "clean.en").exists() else make(given.data, given.out, given.run, given.keep)
    trained = "" if given.minutes is None else compare(given.data, given.out, given.minutes)
    table = "\n".join(part for part in (found, trained) if part)
    (given.out / "table.md").write_text(table, encoding="utf-8")
    print(table)


if __name__ == "__main__":
    run_script(main)

"""The files that pretraining.py learns from: one English text for all, and the sets of the tasks."""

import gzip
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

UNKNOWN = "UNK"
"""Instead of `<unk>`, which no text can spell: control pieces begin with `<`."""
FEW = 1000
"""Labels of the small set of sst2: its first."""
_APART = re.compile(r"([^\w\s'-]|n't\b|'(?:s|m|d|ll|re|ve)\b)")


def lines_of(path: Path) -> Iterator[str]:
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as file
    ):
        yield from (line.strip() for line in file)


def letters(line: str) -> str:
    """What two spellings of a sentence have in common."""
    return re.sub(r"[^a-z]+", "", line.lower())


def make_text(data: Path, out: Path, longest: int) -> None:
    """Words and marks apart, as in the sets of the tasks, and every second line in small letters; a sentence
    of sst2 is left out. Of europarl the lines of at most `longest` words."""
    out.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        lines = list(lines_of(data / "sst2" / f"{part}.tsv"))
        write(out / f"sst2.{part}.tsv", lines)
        write(out / f"sst2.{part}.txt", [line.rpartition("\t")[0] for line in lines])
    names = {"train": "wnut17train.conll", "dev": "emerging.dev.conll", "test": "emerging.test.annotated"}
    for part, name in names.items():
        write(out / f"wnut17.{part}.conll", lines_of(data / "wnut17" / name))
    for part in ("train", "valid", "test"):
        lines = lines_of(data / "ptb" / f"ptb.{part}.txt.gz")
        write(out / f"ptb.{part}.txt", (line.replace("<unk>", UNKNOWN) for line in lines))
    taken = {
        letters(line) for part in ("train", "dev", "test") for line in lines_of(out / f"sst2.{part}.txt")
    }
    speeches = lines_of(data / "europarl" / "en-de" / "train.en.gz")
    europarl = (line for line in speeches if len(line.split()) <= longest)
    tatoeba = chain(*(lines_of(data / "tatoeba" / pair / "train.en.gz") for pair in ("en-de", "en-fr")))
    news = chain(*(lines_of(p) for p in sorted((data / "newstest").glob("en-de/newstest*.en"))))
    captions = lines_of(data / "multi30k" / "train.en.gz")
    pool = chain(europarl, dict.fromkeys(tatoeba), news, captions)
    kept = [line for line in pool if line and letters(line) not in taken]
    apart = [" ".join(_APART.sub(r" \1 ", line).split()) for line in kept]
    mixed = [line.lower() if number % 2 else line for number, line in enumerate(apart)]
    few = [*lines_of(out / "sst2.train.tsv")][:FEW]
    write(out / "sst2.few.tsv", few)
    held = set(range(0, len(mixed), len(mixed) // 2000))
    write(out / "general.txt", (line for number, line in enumerate(mixed) if number not in held))
    write(out / "general.valid.txt", (mixed[number] for number in sorted(held)))


def write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

"""Data that the lab makes itself: strings to copy, to reverse or to remember, and a small made-up language
as pairs, as text alone, and with labels.

The same task gives the same files on every machine. Test sentences are never among the training ones where
there are enough different sentences.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from dragoman.errors import UserError
from dragoman.files import make_directories, replace_file
from dragoman.lab.language import gendered_pair, judged_sentence, pronoun_pair, sentence_pair, tagged_sentence

SYMBOLS = tuple("abcdefghijklmnopqrstuvwxyz")
PARTS = ("train", "valid", "test")
_ENDINGS = (".tsv", ".csv", ".jsonl", ".parquet", ".tmx")
TaskPair = tuple[str, str]


@dataclass(frozen=True)
class Task:
    """A task to learn. `longest_test` is the longest test sentence, by default `longest`."""

    kind: str
    pairs: int
    shortest: int = 1
    longest: int = 12
    longest_test: int | None = None
    tests: int = 200
    symbols: int = 20
    lines: tuple[str, ...] = ()
    """kind text: the lines themselves, in every part, instead of made-up ones."""

    def __post_init__(self) -> None:
        assert self.kind in MAKERS, self.kind

    @property
    def name(self) -> str:
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
        return f"{self.kind}-{digest[:8]}"


def _copy(task: Task, random: Random, longest: int) -> TaskPair:
    text = _symbols(task, random, longest)
    return " ".join(text), " ".join(text)


def _reverse(task: Task, random: Random, longest: int) -> TaskPair:
    text = _symbols(task, random, longest)
    return " ".join(text), " ".join(reversed(text))


def _recall(task: Task, random: Random, longest: int) -> TaskPair:
    """Say the first symbol again, after all the others."""
    text = _symbols(task, random, longest)
    return " ".join(text), text[0]


def _language(task: Task, random: Random, longest: int) -> TaskPair:
    return sentence_pair(random, task.shortest, longest)


def _symbols(task: Task, random: Random, longest: int) -> list[str]:
    return random.choices(SYMBOLS[: task.symbols], k=random.randint(task.shortest, longest))


MAKERS: dict[str, Callable[[Task, Random, int], TaskPair]] = {
    "copy": _copy,
    "reverse": _reverse,
    "recall": _recall,
    "language": _language,
    "text": lambda task, random, longest: ("", sentence_pair(random, task.shortest, longest)[1]),
    "labels": lambda _task, random, _longest: judged_sentence(random),
    "tags": lambda _task, random, _longest: tagged_sentence(random),
    "pronoun": lambda _task, random, _longest: pronoun_pair(random),
    "gender": lambda _task, random, _longest: gendered_pair(random),
}


ENDINGS = {"text": ".txt", "tags": ".conll"}


def make(task: Task) -> dict[str, list[TaskPair]]:
    """The pairs of each part."""
    if task.lines:
        return {part: [("", line) for line in task.lines] for part in PARTS}
    found: dict[str, list[TaskPair]] = {}
    taken: set[str] = set()
    for part, count in (("test", task.tests), ("valid", min(200, task.tests)), ("train", task.pairs)):
        random = Random(f"{task.name} {part}")
        longest = task.longest_test or task.longest if part == "test" else task.longest
        apart = taken if part == "train" and task.kind != "text" else set()
        found[part] = _draw(task, random, longest, count, apart)
        taken |= {source for source, _ in found[part]}
    return found


def _draw(task: Task, random: Random, longest: int, count: int, taken: set[str]) -> list[TaskPair]:
    pairs: list[TaskPair] = []
    for _ in range(40 * count):  # short strings are soon used up
        pair = MAKERS[task.kind](task, random, longest)
        if pair[0] not in taken:
            pairs.append(pair)
        if len(pairs) == count:
            break
    return pairs


def files_of(task: Task, folder: Path, given: Path | None = None) -> dict[str, list[str]]:
    """The files of each part, made where they are missing. `given` is a folder with a user's own pairs, which
    take the place of the made-up language."""
    if given is not None and task.kind == "language":
        return {part: own_files(given, part) for part in PARTS}
    here, ending = folder / task.name, ENDINGS.get(task.kind, ".tsv")
    if not (here / f"train{ending}").is_file():
        make_directories(here)
        made = make(task)
        for part in reversed(PARTS):  # training comes last: it is the sign that all are there
            replace_file(here / f"{part}{ending}", _written(task, made[part]).encode())
    return {part: [str(here / f"{part}{ending}")] for part in PARTS}


def _written(task: Task, pairs: Sequence[TaskPair]) -> str:
    if task.kind == "text":
        return "".join(f"{line}\n" for _, line in pairs)
    if task.kind == "tags":
        rows = (zip(words.split(), tags.split(), strict=True) for words, tags in pairs)
        return "\n".join("".join(f"{word}\t{tag}\n" for word, tag in row) for row in rows)
    names = "text\tlabel\n" if task.kind == "labels" else "src\ttgt\n"
    return names + "".join(f"{source}\t{target}\n" for source, target in pairs)


def own_files(folder: Path, part: str) -> list[str]:
    """`train.tsv` and the like, or two plain files such as `train.en` and `train.de`."""
    there = sorted(path for path in folder.glob(f"{part}.*") if path.is_file())
    tables = [path for path in there if path.suffix in _ENDINGS]
    chosen: Sequence[Path] = tables[:1] or there
    if len(chosen) not in (1, 2) or (len(chosen) == 1 and not tables):
        raise UserError(
            f"{folder}: expected {part}.tsv, or two files such as {part}.en and {part}.de, found "
            f"{', '.join(path.name for path in there) or 'none'}"
        )
    return [str(path) for path in chosen]

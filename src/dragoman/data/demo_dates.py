"""The task that `dragoman demo` learns: dates as people write them -> ISO 8601.

    «sábado, 9 de mayo de 2026» -> 2026-05-09        «9th of may 26» -> 2026-05-09

Two things are held out of training: one day in ten, in every form, and whole ways of writing.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import TypeVar

from dragoman.data.demo_date_formats import FIRST, LAST, LOCALES, Way, ways_of
from dragoman.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class DatePair:
    """A pair with its locale and its way of writing."""

    src: str
    tgt: str
    locale: str
    way: str


@dataclass(frozen=True)
class DateTask:
    """Training, validation and test pairs. No source text is in two of the lists."""

    train: list[tuple[str, str]]
    valid: list[tuple[str, str]]
    test_dates: list[DatePair]
    """Held-out days in known ways of writing."""
    test_ways: list[DatePair]
    """Held-out ways of writing, of days in the training set."""


def draw_dates(seed: int, train_size: int, valid_size: int, test_size: int) -> DateTask:
    """Draw the four lists. The same arguments give the same pairs. `test_size` is the size of each test
    list."""
    rng = random.Random(seed)
    known, unseen = split_ways()
    days: dict[str, list[date]] = {"train": [], "valid": [], "test": []}
    for day in all_days():
        days[part_of(day)].append(day)
    firsts = {part: [day for day in pool if day.day == 1] for part, pool in days.items()}
    taken: set[str] = set()

    def draw(size: int, ways: Mapping[str, Sequence[Way]], part: str) -> Iterator[DatePair]:
        locales, drawn, failures = list(ways), 0, 0
        while drawn < size:
            way = _pick(rng, ways[_pick(rng, locales)])
            day = _pick(rng, days[part])
            if day.day not in way.days:
                day = _pick(rng, firsts[part])  # «1er», «1º»
            text = way.write(day)
            if text in taken or (ways is unseen and _written_by(known, day, text)):
                failures += 1
                if failures == 1000:
                    raise UserError(
                        f"{size} pairs: there are not so many ways of writing them; ask for fewer"
                    )
                continue
            taken.add(text)
            drawn, failures = drawn + 1, 0
            yield DatePair(text, day.isoformat(), way.locale, way.name)

    return DateTask(
        train=[(e.src, e.tgt) for e in draw(train_size, known, "train")],
        valid=[(e.src, e.tgt) for e in draw(valid_size, known, "valid")],
        test_dates=list(draw(test_size, known, "test")),
        test_ways=list(draw(test_size, unseen, "train")),
    )


def paths(directory: Path) -> dict[str, Path]:
    return {name: directory / f"{name}.tsv" for name in ("train", "valid", "test_dates", "test_ways")}


def write_dates(files: Mapping[str, Path], task: DateTask) -> None:
    """Write the lists to `paths(directory)`: source, tab, target."""
    pairs = {
        "train": task.train,
        "valid": task.valid,
        "test_dates": [(e.src, e.tgt) for e in task.test_dates],
        "test_ways": [(e.src, e.tgt) for e in task.test_ways],
    }
    for name, path in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            "".join(f"{src}\t{tgt}\n" for src, tgt in pairs[name]), encoding="utf-8", newline="\n"
        )


def all_days() -> Iterator[date]:
    for offset in range((LAST - FIRST).days + 1):
        yield FIRST + timedelta(days=offset)


def part_of(day: date) -> str:
    """The list that a day belongs to, by its hash: 10 % of days are for testing, 2 % for validation."""
    share = _hash(day.isoformat()) % 100
    return "test" if share < 10 else "valid" if share < 12 else "train"


@cache
def split_ways() -> tuple[dict[str, list[Way]], dict[str, list[Way]]]:
    """The ways of each locale used in training, and about one in eight that is held out.

    A way is held out only if each of its words stays in at least three others, so that the test is about the
    new arrangement. Numeric ways look the same in many languages and are never held out.
    """
    known = {locale: list(ways_of(locale)) for locale in LOCALES}
    unseen: dict[str, list[Way]] = {}
    for locale, ways in known.items():
        uses = Counter(word for way in ways for word in way.vocabulary)
        held: list[Way] = []
        for way in sorted(ways, key=lambda way: _hash(f"{way.locale}/{way.name}")):
            spare = way.vocabulary and all(uses[word] > 3 for word in way.vocabulary)
            if spare and len(held) < len(ways) // 8:
                held.append(way)
                uses.subtract(way.vocabulary)
        unseen[locale] = held
        known[locale] = [way for way in ways if not any(way is other for other in held)]
    return known, unseen


def _written_by(ways: Mapping[str, Sequence[Way]], day: date, text: str) -> bool:
    return any(way.write(day) == text for several in ways.values() for way in several if day.day in way.days)


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _pick(rng: random.Random, items: Sequence[T]) -> T:
    return items[int(rng.random() * len(items))]

"""Tasks for `benchmarks/autopilot.py` that need no data set: their pairs follow from a rule.

They are the same every time. Each task is a list of distinct pairs, of which the last 500 test and the 500
before them validate. More of them are in `autopilot_unseen.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from autopilot_unseen import UNSEEN_RULES

HELD_BACK = 500
"""Pairs for validation, and as many for the test."""
Pair = tuple[str, str]
_MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_SMALL = (
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def sums(dice: Random) -> Pair:
    a, b = dice.randrange(1000), dice.randrange(1000)
    return f"{a} + {b}", str(a + b)


def sums_in_one_word(dice: Random) -> Pair:
    a, b = dice.randrange(1000), dice.randrange(1000)
    return f"{a}+{b}=", str(a + b)


def dates(dice: Random) -> Pair:
    day, month, year = dice.randint(1, 28), dice.randint(1, 12), dice.randint(1700, 2099)
    name = _MONTHS[month - 1]
    forms = (
        f"{day} {name} {year}",
        f"{name} {day}, {year}",
        f"{day}. {name[:3]} {year}",
        f"{day}/{month}/{year}",
    )
    return dice.choice(forms), f"{year}-{month:02}-{day:02}"


def number_words(dice: Random) -> Pair:
    number = dice.randrange(1_000_000)
    return f"{number}", _in_words(number)


def _in_words(number: int) -> str:
    if number < 20:
        return _SMALL[number]
    if number < 100:
        ones = f"-{_SMALL[number % 10]}" if number % 10 else ""
        return _TENS[number // 10 - 2] + ones
    unit, name, joint = (100, "hundred", " and ") if number < 1000 else (1000, "thousand", " ")
    rest = f"{joint}{_in_words(number % unit)}" if number % unit else ""
    return f"{_in_words(number // unit)} {name}{rest}"


def sorting(dice: Random) -> Pair:
    numbers = [dice.randrange(100) for _ in range(dice.randint(3, 10))]
    return " ".join(map(str, numbers)), " ".join(map(str, sorted(numbers)))


def shell(dice: Random) -> Pair:
    """Commands in words; names of files and folders are copied."""
    name, place = (f"{dice.choice('aeiou')}{dice.randrange(10_000)}" for _ in range(2))
    suffix = dice.choice(("txt", "py", "csv"))
    return dice.choice(
        (
            (f"list all {suffix} files in {place}", f"ls {place}/*.{suffix}"),
            (f"copy {name}.{suffix} to {place}", f"cp {name}.{suffix} {place}/"),
            (f"count the lines of {place}/{name}.{suffix}", f"wc -l < {place}/{name}.{suffix}"),
            (f"find files named {name} below {place}", f'find {place} -type f -name "{name}*"'),
            (f"delete {name} in {place} without asking", f"rm -f -- {place}/{name}"),
        )
    )


RULES: dict[str, tuple[Callable[[Random], Pair], int]] = {
    "sums 8k": (sums, 8000),
    "sums as words 8k": (sums_in_one_word, 8000),
    "dates 5k": (dates, 5000),
    "number words 5k": (number_words, 5000),
    "sorting 8k": (sorting, 8000),
    "shell 4k": (shell, 4000),
}
"""With the number of pairs for training."""


def pairs(name: str) -> Iterator[Pair]:
    rule, count = {**RULES, **UNSEEN_RULES}[name]
    dice, known = Random(name), set[Pair]()
    while len(known) < count + 2 * HELD_BACK:
        pair = rule(dice)
        if pair not in known:
            known.add(pair)
            yield pair


def writer(name: str) -> Callable[[Path, Path], None]:
    def write(data: Path, out: Path) -> None:  # noqa: ARG001
        rows = list(pairs(name))
        kept = len(rows) - 2 * HELD_BACK
        parts = {"train": rows[:kept], "dev": rows[kept:-HELD_BACK], "test": rows[-HELD_BACK:]}
        write_parts(parts, out)

    return write


def write_parts(parts: Mapping[str, Sequence[Pair]], out: Path) -> None:
    for part, chosen in parts.items():
        for side, suffix in enumerate(("src", "tgt")):
            text = "".join(f"{pair[side]}\n" for pair in chosen)
            (out / f"{part}.{suffix}").write_text(text, encoding="utf-8")

"""Made-up corpora of different kinds, and their profiles."""

import random

from dragoman.autopilot.profile import Profile
from dragoman.autopilot.profiler import Profiler
from dragoman.data.drop_reasons import is_empty

Pairs = list[tuple[str, str]]


def profile_of(pairs: Pairs) -> Profile:
    profiler = Profiler()
    for src, tgt in pairs:
        profiler.add(src, tgt, is_empty(src, tgt))
    return profiler.profile(duplicates=len(pairs) - len(set(pairs)))


def word(chance: random.Random, letters: str = "abcdefghiklmnoprstu", low: int = 3, high: int = 10) -> str:
    return "".join(chance.choices(letters, k=chance.randint(low, high)))


def words(count: int) -> Pairs:
    """Old spellings and new ones."""
    chance = random.Random(1)
    own = [word(chance) for _ in range(count)]
    return [(text.replace("u", "v"), text) for text in own]


def sounds(count: int) -> Pairs:
    chance = random.Random(2)
    return [(text, " ".join(text)) for text in (word(chance) for _ in range(count))]


def long_symbols(count: int) -> Pairs:
    """Words and symbols of several letters each."""
    chance = random.Random(3)
    return [(text, " ".join(f"{c.upper()}H1" for c in text)) for text in (word(chance) for _ in range(count))]


def inflections(count: int) -> Pairs:
    chance = random.Random(4)
    tags = ["V;PST;3;SG", "V;PRS;1;PL", "N;GEN;SG", "N;NOM;PL"]
    return [(f"{chance.choice(tags)} {text}", text + "ed") for text in (word(chance) for _ in range(count))]


def summed_up(count: int) -> Pairs:
    """Long texts of words that are mostly rare, a few much longer, and some words of their beginnings."""
    chance = random.Random(8)
    texts = [[word(chance) for _ in range(80 * (1 + 9 * (n % 20 == 0)))] for n in range(count)]
    return [(" ".join(text), " ".join(text[: chance.randint(4, 9)])) for text in texts]


def sentences(count: int, length: int = 12, types: int = 3000) -> Pairs:
    chance = random.Random(5)
    vocabulary = [(word(chance), word(chance, "aeioumnprst")) for _ in range(types)]
    pairs = []
    for _ in range(count):
        size = chance.randint(length // 2, 3 * length // 2)
        picked = [vocabulary[min(types - 1, int(chance.paretovariate(0.6)))] for _ in range(size)]
        pairs.append((" ".join(a for a, _ in picked) + ".", " ".join(b for _, b in picked) + "."))
    return pairs


def queries(count: int) -> Pairs:
    """Questions, and formal targets that are many times as long."""
    chance = random.Random(6)
    names = [word(chance) for _ in range(40)]

    def one(name: str) -> tuple[str, str]:
        conditions = " AND ".join(
            f"T{n}.NAME = ( SELECT MAX( X{n}.SIZE ) FROM X AS X{n} )" for n in range(chance.randint(1, 6))
        )
        return (
            f"what about {name}",
            f'SELECT T0.NAME FROM T AS T0 WHERE T0.NAME = "{name}" AND {conditions} ;',
        )

    return [one(chance.choice(names)) for _ in range(count)]


def labels(count: int) -> Pairs:
    """Sentences, and one of four words."""
    return [(src, ("english", "french", "german", "czech")[len(src) % 4]) for src, _ in sentences(count)]


def abstracts(count: int) -> Pairs:
    """Long sources and short targets."""
    return [(" ".join([src] * 40), tgt) for src, tgt in sentences(count)]


def commands(count: int) -> Pairs:
    """Targets that repeat themselves."""
    chance = random.Random(7)
    return [
        (f"{verb} around {times} times", " ".join(["I_TURN", f"I_{verb.upper()}"] * times))
        for verb, times in (
            (chance.choice(["run", "walk", "jump"]), chance.randint(8, 20)) for _ in range(count)
        )
    ]


def codes(count: int) -> Pairs:
    """Every letter becomes the next one, in words that nobody has seen."""
    chance = random.Random(9)
    texts = [" ".join(word(chance) for _ in range(chance.randint(2, 5))) for _ in range(count)]
    return [(text, "".join(chr(ord(c) + 1) if c != " " else c for c in text)) for text in texts]


def joined_up(count: int) -> Pairs:
    """Sentences without spaces, and with them."""
    return [(src.replace(" ", ""), src) for src, _ in sentences(count, types=300)]


def records(count: int) -> Pairs:
    """Records with names that occur once, and sentences about them."""
    chance = random.Random(10)
    rows = [(word(chance), word(chance), chance.choice(["Rome", "Oslo", "Lima"])) for _ in range(count)]
    return [
        (f"first[{a}], last[{b}], city[{c}]", f"The name of {a} {b} is known in {c}.") for a, b, c in rows
    ]


def terms(count: int) -> Pairs:
    """Words and their explanations in up to three words."""
    chance = random.Random(11)
    return [
        (word(chance), " ".join(word(chance, low=2, high=8) for _ in range(1 + n % 3))) for n in range(count)
    ]


def units(count: int) -> Pairs:
    chance = random.Random(12)
    numbers = (chance.randrange(1, 10_000) for _ in range(count))
    return [(f"{number} km in m", f"{1000 * number} m") for number in numbers]


def times(count: int) -> Pairs:
    chance = random.Random(13)
    pairs = ((chance.randrange(24), chance.randrange(60)) for _ in range(count))
    return [(f"{minute} minutes after {hour} o'clock", f"{hour:02}:{minute:02}") for hour, minute in pairs]


KINDS = {
    "words": words,
    "sounds": sounds,
    "long symbols": long_symbols,
    "inflections": inflections,
    "sentences": sentences,
    "queries": queries,
    "labels": labels,
    "abstracts": abstracts,
    "commands": commands,
    "codes": codes,
    "joined up": joined_up,
    "records": records,
    "terms": terms,
    "units": units,
    "times": times,
}

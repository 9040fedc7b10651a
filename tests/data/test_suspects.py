"""Pairs that look wrong are found, and left out where that is asked for; good ones stay."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dragoman.data.config import SUSPECTS, CleanConfig, DataConfig, SourceConfig
from dragoman.data.corpus import prepare
from dragoman.data.formats import Pair
from dragoman.data.lexicon import Lexicon
from dragoman.data.report import analyse
from dragoman.data.suspects import EXPLANATIONS, Judge
from dragoman.errors import UserError
from dragoman.text.tokenizer import TokenizerConfig

NOUNS = """
dog/Hund cat/Kater man/Mann tree/Baum table/Tisch chair/Stuhl bird/Vogel fish/Fisch letter/Brief apple/Apfel
boy/Junge son/Sohn uncle/Onkel train/Zug ball/Ball king/König garden/Garten key/Schlüssel river/Fluss
doctor/Arzt teacher/Lehrer forest/Wald mountain/Berg moon/Mond star/Stern shoe/Schuh hat/Hut coat/Mantel
"""
VERBS = (
    "sees/sieht finds/findet loves/liebt paints/malt hears/hört buys/kauft sells/verkauft follows/verfolgt"
)
ADJECTIVES = (
    "old/alte young/junge big/große small/kleine red/rote black/schwarze beautiful/schöne quiet/stille"
)
TIMES = "today/heute often/oft never/niemals quickly/schnell again/wieder here/hier now/jetzt always/immer"
FRENCH = ["Le petit garçon mange une pomme dans la cuisine.", "Elle a acheté des chaussures hier soir."]


def split(table: str) -> list[tuple[str, str]]:
    return [(word.split("/")[0], word.split("/")[1]) for word in table.split()]


def good_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    nouns, verbs, adjectives, times = map(split, (NOUNS, VERBS, ADJECTIVES, TIMES))
    found: dict[tuple[str, str], None] = {}
    while len(found) < count:
        (one, eins), (two, zwei) = chance.choice(nouns), chance.choice(nouns)
        (verb, wort), (like, wie), (time, zeit) = map(chance.choice, (verbs, adjectives, times))
        found[f"The {like} {one} {verb} the {two} {time}.", f"Der {wie} {eins} {wort} den {zwei} {zeit}."] = (
            None
        )
    return list(found)


PLANTED: dict[str, Callable[[tuple[str, str], tuple[str, str]], tuple[str, str]]] = {
    "language": lambda pair, _: (pair[0], FRENCH[len(pair[0]) % 2]),
    "swapped": lambda pair, _: (pair[1], pair[0]),
    "misaligned": lambda pair, other: (pair[0], other[1]),
    "script": lambda pair, _: (pair[0], "Собака видит дом сегодня."),
    "digits": lambda pair, _: (f"{pair[0]} 1,234", f"{pair[1]} 1.243"),
    "address": lambda pair, _: (f"{pair[0]} www.example.org", f"{pair[1]} www.example.com/x"),
    "length": lambda pair, _: (pair[0], f"{pair[1]} " + "Und dann noch etwas ganz anderes. " * 30),
    "near_duplicate": lambda pair, _: (pair[0].upper(), pair[1].rstrip(".") + "!"),
}


@pytest.fixture(scope="module")
def corpus() -> tuple[list[tuple[str, str]], dict[str, list[int]]]:
    """Good pairs, and fifteen of every kind of suspects at the end."""
    pairs = good_pairs(1500)
    places = {}
    for kind, plant in PLANTED.items():
        places[kind] = list(range(len(pairs), len(pairs) + 15))
        base = len(places) * 40
        pairs += [plant(pairs[base + n], pairs[base + n + 20]) for n in range(15)]
    return pairs, places


def written(pairs: list[tuple[str, str]], folder: Path) -> SourceConfig:
    for side, name in enumerate(("a.en", "a.de")):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs), "utf-8")
    return SourceConfig((str(folder / "a.en"), str(folder / "a.de")))


def test_what_is_planted_is_found(
    corpus: tuple[list[tuple[str, str]], dict[str, list[int]]], tmp_path: Path
) -> None:
    pairs, places = corpus
    judge = Judge([Pair(*pair, 1) for pair in pairs], ("en", "de"))
    assert judge.kinds == SUSPECTS[:-1]
    flags = judge.flags([Pair(*pair, 1) for pair in pairs])
    good = np.zeros(len(pairs), dtype=bool)
    good[:1500] = True
    for kind, flagged in flags.items():
        assert flagged[good].mean() <= 0.01, kind
        assert flagged[places[kind]].mean() >= 0.8, kind
    report = analyse([written(pairs, tmp_path)], src_lang="en", tgt_lang="de")
    assert set(report.rules) == set(SUSPECTS) == set(EXPLANATIONS)
    assert report.found["near_duplicate"] == 15 and report.found["swapped"] == 15
    assert not any(report.dropped[kind] for kind in SUSPECTS)  # nobody asked for it
    assert len(report.examples["swapped"]) == 3 and report.examples["swapped"][0][1].startswith("Der ")


def test_suspects_are_left_out_where_that_is_asked_for(
    corpus: tuple[list[tuple[str, str]], dict[str, list[int]]], tmp_path: Path
) -> None:
    source = written(corpus[0], tmp_path)
    data = DataConfig((source,), src_lang="en", tgt_lang="de", valid_size=10)
    options = {"tokenizer": TokenizerConfig(kind="byte"), "seed": 1, "cache": tmp_path / "cache"}
    assert not set(prepare(data, **options).dropped) & set(SUSPECTS)
    for kinds in (("all",), ("swapped", "digits")):
        clean = CleanConfig(max_length=2000, drop_suspects=kinds)
        prepared = prepare(replace(data, clean=clean), **options)
        report = analyse([source], src_lang="en", tgt_lang="de", clean=clean)
        counted = {kind: count for kind, count in report.dropped.items() if count and kind in SUSPECTS}
        assert {kind: count for kind, count in prepared.dropped.items() if kind in SUSPECTS} == counted
        assert counted["swapped"] == 15 and (len(counted) == 2) == (kinds != ("all",))
        assert len(list(prepared.dropped_origins("swapped"))) == 15


def test_only_what_a_corpus_can_answer_is_asked() -> None:
    numbers = [Pair(f"{n} + {n}", str(2 * n), n) for n in range(1, 2000)]
    assert Judge(numbers, ("src", "tgt")).kinds == ()
    assert Judge(numbers[:20], ("en", "de")).kinds == ()
    german = [Pair(*pair, 1) for pair in good_pairs(600)]
    assert Judge(german, ("en", "fr")).kinds == ()  # it is not what it is said to be
    assert "language" in Judge(german, ("src", "tgt")).kinds
    joined_at_random = [
        Pair(one.src, two.tgt, 1) for one, two in zip(german, german[300:] + german[:300], strict=True)
    ]
    assert "misaligned" not in Judge(joined_at_random, ("en", "de")).kinds


def test_no_pair_is_scored_by_what_was_learnt_from_it() -> None:
    pairs = good_pairs(400)
    strange = ("Quux zork blarg.", "Fnord wibble gronk.")
    alone, among = (Lexicon(sample).scores([strange])[0] for sample in (pairs, [*pairs, strange]))
    assert alone == pytest.approx(among, abs=1e-9)


def test_unknown_kinds_are_refused() -> None:
    with pytest.raises(UserError, match="drop_suspects: expected some of all, language"):
        CleanConfig(drop_suspects=("languages",))

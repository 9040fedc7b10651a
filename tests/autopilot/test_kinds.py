"""What is chosen for which kind of corpus."""

import dataclasses
import random
from typing import Any

import pytest
from tests.autopilot.corpora import (
    codes,
    commands,
    inflections,
    joined_up,
    labels,
    long_symbols,
    profile_of,
    queries,
    records,
    sentences,
    sounds,
    summed_up,
    terms,
    times,
    units,
    words,
)
from tests.autopilot.plans import CPU, LARGE_GPU, chosen, resolved, scaled

from dragoman.autopilot.choose import choose
from dragoman.autopilot.kinds import Kind, kind_of
from dragoman.autopilot.machine import Machine
from dragoman.autopilot.profile import Profile
from dragoman.autopilot.tokens import count_tokens
from dragoman.extras import EXTRAS
from dragoman.learning import LEARNING


@pytest.mark.parametrize(
    ("pairs", "kind"),
    [
        (sentences(300), Kind.TEXT),
        (queries(300), Kind.TEXT),
        (labels(300), Kind.TEXT),
        (records(300), Kind.TEXT),  # rare words are copied whole
        (times(300), Kind.TEXT),
        (words(300), Kind.WORDS),
        (sounds(300), Kind.WORDS),
        (inflections(300), Kind.WORDS),
        ([(form, tagged) for tagged, form in inflections(300)], Kind.WORDS),
        (terms(300), Kind.WORDS),
        ([(b, a) for a, b in terms(300)], Kind.WORDS),
        (codes(300), Kind.LETTERS),
        ([(src, src.translate(str.maketrans("aeo", "áéö"))) for src, _ in sentences(300)], Kind.LETTERS),
        ([(src, " ".join(reversed(src.split()))) for src, _ in sentences(300)], Kind.TEXT),
        (joined_up(300), Kind.LETTERS),
        (units(300), Kind.NUMBERS),
        ([(f"twenty {n % 7} and hundred {n % 9}", f"number{n}") for n in range(300)], Kind.TEXT),
        ([(f"the word{n % 7} has a number{n % 9}", f"{n}") for n in range(300)], Kind.TEXT),
        ([(f"{n} or {2 * n % 37}", "higher" if 2 * n % 37 < n else "lower") for n in range(300)], Kind.TEXT),
        ([(f"{n} ? {2 * n % 371}", ">" if 2 * n % 371 < n else "<") for n in range(300)], Kind.NUMBERS),
    ],
)
def test_the_kind_of_task(pairs: Any, kind: Kind) -> None:
    assert kind_of(profile_of(pairs)) is kind


def test_text_without_spaces_between_words_is_not_spelt_for_that() -> None:
    chance = random.Random(1)
    letters = "年月日本人大小中国出上下生学"
    clauses = ["".join(chance.choices(letters, k=chance.randint(10, 30))) for _ in range(600)]
    pairs = list(zip(clauses[:300], clauses[300:], strict=True))
    assert profile_of(pairs).src.known_words < 0.1
    found = chosen(profile_of(pairs)).sections
    assert (found["tokenizer"]["kind"], found["train"]["metric"]) == ("bpe", "chrf")
    words = [(clause[:2], clause[:3]) for clause in clauses]
    assert chosen(profile_of(words)).sections["tokenizer"]["kind"] == "char"


def test_features_have_letters() -> None:
    for form in ("{h:02}:{m:02}", "{h}/{m}/1999", "{h}+{m}="):
        rows = [(form.format(h=n % 24, m=n % 60), f"time {n}") for n in range(300)]
        assert profile_of(rows).src.tags == 0.0
    assert profile_of([("1SG;PST walk", "walked"), ("V;3 walk", "walks")]).src.tags == 1.0


@pytest.mark.parametrize(
    ("pairs", "kind"),
    [
        (words(300), "char"),
        (sounds(300), "char"),
        (long_symbols(300), "word"),
        (inflections(300), "char"),
        (inflections(6000), "word"),
        (codes(300), "char"),
        (joined_up(300), "char"),
        (terms(300), "char"),
        (records(300), "bpe"),
        (sentences(300), "bpe"),
        (queries(300), "bpe"),
    ],
)
def test_the_kind_of_tokenizer_follows_from_the_kind_of_text(pairs: Any, kind: str) -> None:
    assert chosen(profile_of(pairs)).sections["tokenizer"]["kind"] == kind


def test_features_become_pieces_and_words_are_spelt() -> None:
    from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

    pairs = inflections(6000)
    section = chosen(profile_of(pairs)).sections["tokenizer"]
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], TokenizerConfig(**section))
    pieces = tokenizer.pieces(tokenizer.encode("V;PST;3;SG prolog"))
    assert pieces[:3] == ["▁V", ";", "PST"] and pieces[-6:] == list("prolog")


def test_symbols_become_pieces_and_words_are_spelt() -> None:
    from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

    pairs = long_symbols(300)
    section = chosen(profile_of(pairs)).sections["tokenizer"]
    assert section["joint"] is False
    config = TokenizerConfig(**section)
    src, tgt = (Tokenizer.train([pair[side] for pair in pairs], config) for side in (0, 1))
    assert src.pieces(src.encode("prolog"))[-6:] == list("prolog")
    assert tgt.pieces(tgt.encode("AH1 BH1")) == ["▁AH1", "▁BH1"]


@pytest.mark.parametrize(
    ("pairs", "metric"),
    [
        (words(300), "exact"),
        (sounds(300), "exact"),
        (queries(300), "exact"),
        (codes(300), "exact"),
        (joined_up(300), "chrf"),
        (times(300), "exact"),
        ([(form, tagged) for tagged, form in inflections(300)], "exact"),
        (sentences(300), "chrf"),
        (sentences(6000), "bleu"),
    ],
)
def test_the_metric_follows_from_the_kind_of_target(pairs: Any, metric: str) -> None:
    assert chosen(profile_of(pairs)).sections["train"]["metric"] == metric


def test_words_of_closed_sets_are_pieces_with_their_punctuation() -> None:
    moves = [
        (f"please go left now {n} times", " ".join(["I_TURN_LEFT", "I_GO"] * n)) for n in (1, 2, 3, 4)
    ] * 100
    found = chosen(profile_of(moves))
    assert found.sections["tokenizer"]["split_punctuation"] is False
    copied = dataclasses.replace(profile_of(moves), copied_words=0.5)
    for other in (copied, profile_of(sentences(300))):
        assert "split_punctuation" not in chosen(other).sections["tokenizer"]


def test_identifiers_that_recur_are_pieces() -> None:
    """`T0.NAME` is one piece, so targets are shorter; names of variables that occur once are spelt."""
    profile = dataclasses.replace(profile_of(queries(300)), copied_words=0.9)
    found = chosen(profile)
    assert found.sections["tokenizer"] == {
        "kind": "bpe",
        "keep_identifiers": True,
        "joint": True,
        "vocab_size": found.sections["tokenizer"]["vocab_size"],
    }
    assert profile.tgt.segments_a_name > 1.3 > profile.src.segments_a_name
    shorter, longer = (
        count_tokens(dataclasses.replace(profile, tgt=tgt), "bpe").tgt_mean
        for tgt in (profile.tgt, dataclasses.replace(profile.tgt, segments_a_name=1.0))
    )
    assert shorter < 0.8 * longer
    rare = dataclasses.replace(profile, tgt=dataclasses.replace(profile.tgt, frequent_words=0.8))
    for other in (rare, profile_of(sentences(300))):
        assert "keep_identifiers" not in chosen(other).sections["tokenizer"]


@pytest.mark.parametrize("form", ["{a} + {b}", "{a}+{b}="])
def test_arithmetic_is_spelt_digit_by_digit_with_little_dropout(form: str) -> None:
    sums = [(form.format(a=a, b=7 * a % 600), str(a + 7 * a % 600)) for a in range(10, 900)]
    profile = scaled(profile_of(sums), 8000)
    for machine in (LARGE_GPU, Machine(2)):
        found = chosen(profile, machine, minutes=3.0)
        assert found.sections["tokenizer"]["kind"] == "char"
        assert found.sections["model"]["dropout"] == 0.1
        assert "r_drop" not in found.sections["objective"]
        assert found.sections["train"]["metric"] == "exact"
    dated = [
        (f"day {a % 28 + 1} of month {a % 12 + 1} in 20{a % 90 + 10}", f"20{a % 90 + 10}") for a in range(500)
    ]
    assert kind_of(profile_of(dated)) is not Kind.NUMBERS


def test_a_model_copies_where_what_is_rare_stands_in_the_source() -> None:
    def copies(profile: Profile, max_updates: int = 500, **given: Any) -> bool:
        found = chosen(profile, max_updates=max_updates, given=given)
        said = any("cannot be exported" in reason for name, reason in found.reasons if name == "copying")
        assert said == bool(found.sections["model"].get("copy"))
        return said

    queried = dataclasses.replace(profile_of(queries(300)), copied_words=0.9)
    named = dataclasses.replace(profile_of(sentences(300)), copied_words=0.85)
    retouched = dataclasses.replace(profile_of(sentences(300)), overlap=0.9, copied_letters=0.25)
    translated = dataclasses.replace(profile_of(sentences(300)), copied_words=0.35, copied_letters=0.9)
    spelt = dataclasses.replace(profile_of(sounds(300)), copied_words=0.9, copied_letters=0.1)
    assert copies(named) and copies(retouched) and copies(profile_of(records(300)))
    assert not copies(dataclasses.replace(retouched, copied_letters=0.05))
    for letters in (retouched, profile_of(inflections(300)), profile_of(words(300))):
        assert copies(letters)
        assert not copies(scaled(letters, 10_000), max_updates=2000)
        assert "copy" not in chosen(letters, LARGE_GPU, max_updates=500).sections["model"]
    symbols = dataclasses.replace(profile_of(long_symbols(300)), copied_letters=0.6, overlap=0.8)
    assert chosen(symbols).sections["tokenizer"]["joint"] is False and not copies(symbols)
    assert not copies(profile_of(words(300)), tokenizer={"joint": False})
    assert not copies(profile_of([(f"{n}/{n + 5}", f"{n + 5}-{n}") for n in range(300)]))
    assert chosen(profile_of(records(300)), LARGE_GPU).sections["model"]["copy"]
    assert (
        copies(queried) and copies(queried, max_updates=2000) and not copies(translated) and not copies(spelt)
    )
    assert not copies(scaled(queried, 1_000_000))
    assert copies(queried, model={"preset": "lstm"})
    for without in ({"preset": "lstm-no-attention"}, {"preset": "lstm", "attention": "none"}):
        assert not copies(queried, model=without)
    assert not copies(queried, model={"copy": False})


def test_summaries_are_scored_by_rouge_and_their_sources_are_cut() -> None:
    def read(pairs: Any, **given: Any) -> tuple[str, int | None]:
        config = resolved(chosen(profile_of(pairs), given=given))
        return config.train.metric, config.data.clean.cut_source

    summaries = summed_up(400)
    metric, cut = read(summaries)
    assert metric == ("chrf" if EXTRAS["rouge"].missing else "rouge")
    assert cut is not None and cut < max(len(src.split()) for src, _ in summaries)
    replies = [(src, other) for (src, _), (_, other) in zip(summaries, summaries[7:], strict=False)]
    assert read(replies) == ("chrf", None)
    assert read(summaries, data={"clean": {"max_length": 600}})[1] is None
    assert read(summaries, data={"clean": {"cut_source": 100}})[1] == 100
    assert read(sentences(400))[1] is None


def test_brackets_that_are_always_valid_are_kept_valid() -> None:
    def brackets(pairs: Any) -> str:
        return resolved(chosen(profile_of(pairs))).search.brackets

    assert brackets(queries(300)) == "()"
    assert brackets([*queries(300), ("which?", "a )( b")]) == ""
    assert (
        brackets([(src, f"[{tgt}]" if n % 2 else tgt) for n, (src, tgt) in enumerate(queries(300))]) == "()[]"
    )
    assert brackets([(src, f"{tgt} (1)") for src, tgt in sentences(300)]) == ""


def test_trees_over_the_words_of_their_sources_are_scored_by_their_brackets() -> None:
    trees = [
        (src, f"(S (NP (N {' (N '.join(src.split()).replace(' (N', ') (N')})))") for src, _ in sentences(300)
    ]
    config = resolved(chosen(profile_of(trees)))
    assert (config.train.metric, config.search.brackets) == ("brackets", "()")
    others = [(" ".join(src.split()[:3]), tree) for src, tree in trees]
    assert resolved(chosen(profile_of(others))).train.metric == "exact"


def test_outputs_may_be_as_long_as_targets_are() -> None:
    for make in (queries, commands):
        profile = profile_of(make(300))
        search = resolved(chosen(profile)).search

        counts = count_tokens(profile, "bpe")
        for src, tgt in zip(counts.src, counts.tgt, strict=True):
            assert search.longest(src + 1) > tgt
    assert resolved(chosen(profile_of(sentences(300)))).search.max_ratio == 2.0


def test_outputs_may_repeat_themselves_where_targets_do() -> None:
    assert resolved(chosen(profile_of(commands(300)))).search.loop_guard is False
    assert resolved(chosen(profile_of(sentences(300)))).search.loop_guard is True


def test_short_targets_bound_the_search() -> None:
    chance = random.Random(1)
    pairs = [(f"{src} " * 30, " ".join(tgt.split()[: chance.randint(2, 5)])) for src, tgt in sentences(200)]
    search = resolved(chosen(profile_of(pairs))).search
    assert search.max_length is not None and search.max_length < 100


def test_few_inflected_words_get_invented_pairs() -> None:
    def chosen(pairs: list[tuple[str, str]], **given: Any) -> int:
        found = choose(
            profile_of(pairs), Machine(cores=2), minutes=5.0, learning=LEARNING["translate"], given=given
        )
        return found.sections["objective"].get("invented", 0)

    words = [f"{a}{b}{c}m" for a in "bcdfghjklmnpqrst" for b in ("ar", "el", "ino", "us") for c in "bdgtkplr"]
    inflected = [(f"V;PST;{n % 3 + 1};SG {word}", f"{word}ed") for n, word in enumerate(words)]
    assert chosen(inflected[:100]) == 10
    assert 0 < chosen(inflected) < 10
    assert chosen([*inflected, *inflected]) == 0
    assert chosen(inflected, tokenizer={"joint": False}) == 0
    assert chosen(sounds(400)) == 0  # nothing is copied
    assert chosen([(a, a[::-1]) for a in words]) == 0


def test_careless_sources_are_for_sentences_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(pairs: list[tuple[str, str]], machine: Machine = LARGE_GPU, **given: Any) -> float:
        found = choose(profile_of(pairs), machine, learning=LEARNING["translate"], given=given)
        return found.sections["objective"].get("source_noise", 0.0)

    assert chosen(sentences(300)) == 0.0  # until it is measured
    monkeypatch.setattr("dragoman.autopilot.training._CARELESS", 0.05)
    assert chosen(sentences(300)) == 0.05
    assert chosen(sentences(300), CPU) == 0.0
    assert chosen(sounds(400)) == 0.0
    assert chosen(sentences(300), tokenizer={"dropout": 0.1}) == 0.0

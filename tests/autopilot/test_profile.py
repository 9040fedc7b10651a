"""A profile counts exactly what is cheap, and samples the rest."""

import dataclasses
import math
from collections.abc import Callable

import pytest
from tests.autopilot.corpora import KINDS, commands, inflections, profile_of, sounds

from dragoman.autopilot import profiler as profiler_module
from dragoman.autopilot.profile import QUANTILES, quantile, quantiles


def test_the_numbers_of_a_small_corpus_by_hand() -> None:
    profile = profile_of([("a b", "aa"), ("ab", "ab"), ("", "x"), ("cc dd e", "f"), ("ab", "ab")])
    assert (profile.pairs, profile.empty, profile.copies, profile.duplicates) == (4, 1, 2, 1)
    assert (profile.src.characters, profile.src.words, profile.src.longest) == (14, 7, 7)
    assert (profile.src.single_words, profile.tgt.single_words) == (2, 4)
    assert profile.src.alphabet == 6  # with the space
    assert profile.src.words_a_line[0] == 1 and profile.src.words_a_line[-1] == 3
    assert profile.log_ratios[0] == pytest.approx(math.log(1 / 7))
    assert profile.log_ratios[-1] == 0
    assert profile.overlap == pytest.approx((0.5 + 1 + 0 + 1) / 4)
    assert profile.src.scripts == (("LATIN", 1.0),)


def test_kinds_of_text_are_told_apart() -> None:
    assert profile_of(inflections(50)).src.tags == 1.0
    assert profile_of(sounds(300)).tgt.frequent_words > 0.99
    assert profile_of(commands(50)).repeating == 1.0
    numbers = profile_of([(f"{n} {n + 1}", f"{n + n + 1}") for n in range(50)])
    assert numbers.src.digits == numbers.tgt.digits == 1.0
    assert numbers.shared_letters == 1.0
    code = profile_of([("say a", 'print("a")'), ("add", "x[0] = y + {}")])
    assert code.tgt.code > 0.2 > code.src.code


def test_what_is_copied_above_chance() -> None:
    def pairs(make: Callable[[int], tuple[str, str]]) -> list[tuple[str, str]]:
        return [make(number) for number in range(40)]

    names = [f"{chr(97 + n // 6)}{chr(97 + n % 6)}ton" for n in range(40)]
    values = profile_of(pairs(lambda n: (f"where is {names[n]}", f"name = {names[n]} or {names[n][::-1]}")))
    assert values.copied_words == pytest.approx(0.5)  # of each two rare words one
    always = profile_of(pairs(lambda n: (" ".join(map(str, range(40))), str(n))))
    assert always.copied_words == 0.0  # every source has all of them
    signs = profile_of(pairs(lambda n: (chr(0x4E00 + n), f"{chr(0x4E00 + n)}!")))
    assert (signs.overlap, signs.copied_letters) == (0.5, 0.5)
    assert profile_of([("a", "a")]).copied_words == 0.0


def test_quantiles() -> None:
    assert quantile([], 0.5) == 0
    assert [quantile([1, 2, 3, 4], share) for share in (0.0, 0.25, 0.26, 1.0)] == [1, 1, 2, 4]
    assert len(quantiles([3.0])) == len(QUANTILES)


def test_counts_stay_exact_when_the_sample_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = KINDS["sentences"](500)
    whole = profile_of(pairs)
    monkeypatch.setattr(profiler_module, "_SAMPLE", 100)
    sampled = profile_of(pairs)
    assert len(sampled.lengths) == 100 and len(whole.lengths) == 500
    for name in ("pairs", "empty", "copies"):
        assert getattr(sampled, name) == getattr(whole, name)
    assert sampled.src.characters == whole.src.characters and sampled.tgt.words == whole.tgt.words
    assert sampled.src.longest == whole.src.longest


def test_every_part_of_a_corpus_has_the_same_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiler_module, "_SAMPLE", 1000)
    profile = profile_of([("a" * (1 + number // 1000), "b") for number in range(10_000)])
    parts = [sum(n.src_characters == 1 + part for n in profile.lengths) for part in range(10)]
    assert sum(parts) == 1000 and min(parts) > 60 and max(parts) < 140


def test_long_lines_are_counted_whole_and_kept_short() -> None:
    profile = profile_of([("ab " * 100_000, "x")] * 3)
    assert profile.src.longest == 300_000
    assert profile.lengths[0].src_segments == pytest.approx(100_000, rel=0.01)
    assert all(len(example.src) <= 60 for example in profile.examples)


def test_a_profile_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        profile_of([("a", "b")]).pairs = 2  # type: ignore[misc]

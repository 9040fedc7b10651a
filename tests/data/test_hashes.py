import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dragoman.data import text_hashes as hashes_module
from dragoman.data.config import CleanConfig
from dragoman.data.drop_reasons import (
    COPY,
    DUPLICATE,
    HELD_OUT,
    KEPT_CODE,
    RATIO,
    REASONS,
    TOO_LONG,
    is_copy,
    is_empty,
    length_codes,
    reason_of,
)
from dragoman.data.split import hold_out
from dragoman.data.text_hashes import (
    NumberWriter,
    contains,
    hash_pair,
    hash_text,
    map_numbers,
    mark_repeats,
    mix,
    normalise,
    write_sorted_set,
)
from dragoman.data.verified_files import OutputFiles


@pytest.mark.parametrize("partition", [1 << 21, 1000, 37])
def test_repeats_across_partitions_against_a_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, partition: int
) -> None:
    monkeypatch.setattr(hashes_module, "_PARTITION", partition)
    monkeypatch.setattr(hashes_module, "_CHUNK", 512)
    rng = np.random.default_rng(0)
    pool = rng.integers(0, 1 << 63, 1500, dtype=np.uint64) * np.uint64(2)
    hashes = rng.choice(pool, 5000)
    codes = (rng.random(5000) < 0.1).astype(np.uint8)  # some are left out already, and do not count
    skipped = codes.copy()
    mark_repeats(hashes, codes, DUPLICATE, tmp_path)
    seen: set[int] = set()
    for value, before, after in zip(hashes.tolist(), skipped.tolist(), codes.tolist(), strict=True):
        if before:
            assert after == before
        else:
            assert after == (DUPLICATE if value in seen else KEPT_CODE)
            seen.add(value)

    with OutputFiles() as output:
        write_sorted_set(hashes, codes, output.create(tmp_path / "set"), tmp_path)
    written = map_numbers(tmp_path / "set", np.uint64)
    assert written.tolist() == sorted(seen)
    probes = np.concatenate([pool, pool + np.uint64(1)])
    assert contains(written, probes).tolist() == [value in seen for value in probes.tolist()]
    assert [path.name for path in tmp_path.iterdir()] == ["set"]  # no partition is left behind


def test_empty_sets(tmp_path: Path) -> None:
    nothing = np.empty(0, dtype=np.uint64)
    mark_repeats(nothing, np.empty(0, dtype=np.uint8), DUPLICATE, tmp_path)
    with OutputFiles() as output:
        write_sorted_set(nothing, np.empty(0, dtype=np.uint8), output.create(tmp_path / "set"), tmp_path)
    assert len(map_numbers(tmp_path / "set", np.uint64)) == 0
    assert contains(nothing, np.array([1, 2], dtype=np.uint64)).tolist() == [False, False]


def test_number_writer(tmp_path: Path) -> None:
    numbers = [2**64 - 1, *range(100_000)]
    with NumberWriter(tmp_path / "n", "Q") as writer:
        for number in numbers:
            writer.append(number)
    assert map_numbers(tmp_path / "n", np.uint64).tolist() == numbers


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Hello, World!", "hello world", True),
        ("  a\u00a0\u2028b\t", "A b", True),
        ("straße", "STRASSE", True),
        ("ﬁne ＡＢＣ", "fine abc", True),
        ("cafe\u0301", "café", True),
        ("snake_case", "snake case", True),
        ("«Was?», sagte er …", "was sagte er", True),
        ("?", "!", False),
        ("?!", " ?! ", True),
        ("की", "का", False),  # vowel signs are combining marks
        ("שָׁלוֹם", "שלום", False),
        ("don't", "dont", False),
        ("1.5", "15", False),
    ],
)
def test_normalised_equality(one: str, other: str, same: bool) -> None:
    assert (normalise(one) == normalise(other)) is same
    assert normalise(normalise(one)) == normalise(one)


def test_hashes_are_the_same_in_every_process() -> None:
    assert hash_text("Grüße\u2028") == 0x9CA6A2FDABD696A7
    code = "from dragoman.data.text_hashes import hash_pair; print(hash_pair('a', 'b'))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{hash_pair('a', 'b')}\n"}
    assert hash_pair("ab", "c") != hash_pair("a", "bc")


def test_mix_is_one_to_one_and_depends_on_the_key() -> None:
    numbers = np.arange(100_000, dtype=np.uint64)
    mixed = mix(numbers, 1)
    assert len(np.unique(mixed)) == len(numbers)
    assert (mixed != mix(numbers, 2)).all()
    assert abs(float((mixed < np.uint64(1 << 63)).mean()) - 0.5) < 0.01


def test_conditions_of_cleaning() -> None:
    assert is_empty("", "x")
    assert is_empty("x", " \u3000\t")
    assert not is_empty("x", "y")
    assert is_copy("x y", " x y ")
    assert not is_copy("x", "X")
    clean = CleanConfig(max_length=50, max_ratio=3.0)
    src = np.array([50, 51, 1, 12, 13, 1, 30, 31])
    tgt = np.array([50, 1, 51, 1, 1, 13, 10, 10])
    expected = [KEPT_CODE, TOO_LONG, TOO_LONG, KEPT_CODE, RATIO, RATIO, KEPT_CODE, RATIO]
    assert length_codes(src, tgt, clean).tolist() == expected
    assert [reason_of(code) for code in (COPY, DUPLICATE, TOO_LONG)] == ["copy", "duplicate", "too_long"]
    assert len(REASONS) < HELD_OUT


def held(hashes: list[int], valid_size: int, seed: int = 0, left_out: int = 0) -> np.ndarray:
    codes = np.zeros(len(hashes), dtype=np.uint8)
    codes[:left_out] = DUPLICATE
    hold_out(np.array(hashes, dtype=np.uint64), codes, valid_size, seed)
    assert (codes[:left_out] == DUPLICATE).all()
    return np.flatnonzero(codes == HELD_OUT)


@pytest.mark.parametrize(
    ("pairs", "valid_size", "expected"),
    [
        (0, 10, 0),
        (1, 10, 0),
        (2, 10, 1),
        (9, 10, 1),
        (50, 10, 5),
        (1000, 10, 10),
        (1000, 0, 0),
        (100, 1000, 10),
    ],
)
def test_size_of_the_held_out_set(pairs: int, valid_size: int, expected: int) -> None:
    assert len(held([hash_text(str(n)) for n in range(pairs)], valid_size)) == expected


def test_held_out_sources_do_not_stay_in_training() -> None:
    rng = np.random.default_rng(0)
    for repeats in (1, 2, 40, 2000):
        hashes = [hash_text(str(n)) for n in rng.integers(0, max(2, 20_000 // repeats), 20_000)]
        chosen = set(held(hashes, 500, left_out=100).tolist())
        in_valid = {hashes[i] for i in chosen}
        in_train = {hashes[i] for i in range(100, len(hashes)) if i not in chosen}
        assert not in_valid & in_train
        if repeats <= 2:
            assert len(chosen) == 500
        else:  # whole groups only: as many as fit, or one
            assert 400 <= len(chosen) <= 500 or len(in_valid) == 1


def test_one_source_only_cannot_be_split() -> None:
    assert len(held([7] * 100, 10)) == 0


def test_the_seed_decides() -> None:
    hashes = [hash_text(str(n)) for n in range(5000)]
    assert held(hashes, 100, seed=1).tolist() == held(hashes, 100, seed=1).tolist()
    assert held(hashes, 100, seed=1).tolist() != held(hashes, 100, seed=2).tolist()
    # Spread over the whole corpus, not taken from one end.
    assert 2000 < held(hashes, 400, seed=1).mean() < 3000

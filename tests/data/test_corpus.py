from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from data.conftest import Decoded, MakePairs, WriteCorpus
from dragoman.data import corpus, encode, scan
from dragoman.data.corpus import CleanConfig, DataConfig, SourceConfig, overlap, prepare
from dragoman.data.drop_reasons import is_copy, is_empty
from dragoman.data.text_hashes import normalise
from dragoman.errors import UserError
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

CHARS = TokenizerConfig(kind="char", vocab_size=400)
BPE = TokenizerConfig(vocab_size=500)


def naive_clean(
    pairs: list[tuple[str, str]], clean: CleanConfig, src: Tokenizer, tgt: Tokenizer
) -> dict[str, list[int]]:
    """Line numbers by what becomes of them, computed the plain way."""
    seen: set[tuple[str, str]] = set()
    result: dict[str, list[int]] = {}
    for line, pair in enumerate(pairs, start=1):
        lengths = len(src.encode(pair[0])), len(tgt.encode(pair[1]))
        if is_empty(*pair):
            reason = "empty"
        elif clean.drop_copies and is_copy(*pair):
            reason = "copy"
        elif clean.drop_duplicates and pair in seen:
            reason = "duplicate"
        elif max(lengths) > clean.max_length:
            reason = "too_long"
        elif max(lengths) > 12 and max(lengths) > clean.max_ratio * min(lengths):
            reason = "ratio"
        else:
            reason = "kept"
        seen.add(pair)
        result.setdefault(reason, []).append(line)
    return result


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize(
    ("clean", "tokenizer"),
    [
        (CleanConfig(), BPE),
        (CleanConfig(max_length=60, max_ratio=1.2, drop_copies=True), CHARS),
        (CleanConfig(max_length=60, drop_duplicates=False), replace(BPE, joint=False)),
    ],
)
def test_store_holds_exactly_what_cleaning_keeps(
    tmp_path: Path,
    write_corpus: WriteCorpus,
    make_pairs: MakePairs,
    decoded: Decoded,
    monkeypatch: pytest.MonkeyPatch,
    zipped: bool,
    clean: CleanConfig,
    tokenizer: TokenizerConfig,
) -> None:
    monkeypatch.setattr(encode, "_CHUNK_PAIRS", 70)
    monkeypatch.setattr(scan, "_CHUNK", 100)
    pairs = make_pairs(600)
    pairs.append(next(pair for pair in pairs if not is_empty(*pair) and not is_copy(*pair)))
    source = write_corpus(pairs, zipped=zipped)
    data = DataConfig((source,), valid_size=0, clean=clean)
    prepared = prepare(data, tokenizer, seed=1, cache=tmp_path / "cache")
    expected = naive_clean(pairs, clean, prepared.src_tokenizer, prepared.tgt_tokenizer)
    kept = expected.pop("kept")
    assert decoded(prepared) == [pairs[line - 1] for line in kept]
    assert [prepared.train.origin(i) for i in range(len(kept))] == [
        f"{source.files[0]}:{line}" for line in kept
    ]
    assert prepared.dropped == {reason: len(lines) for reason, lines in expected.items()}
    for reason, lines in expected.items():
        assert list(prepared.dropped_origins(reason)) == [f"{source.files[0]}:{line}" for line in lines]
    assert len(prepared.valid) == 0
    for index, line in enumerate(kept):
        src, tgt = pairs[line - 1]
        assert prepared.train.src(index).tolist() == prepared.src_tokenizer.encode(src)
        assert prepared.train.tgt(index).tolist() == prepared.tgt_tokenizer.encode(tgt)
        assert prepared.train.src_lengths[index] == len(prepared.train.src(index))
        assert prepared.train.tgt_lengths[index] == len(prepared.train.tgt(index))
    assert prepared.train.src(0).dtype == np.uint16
    assert (prepared.src_tokenizer is prepared.tgt_tokenizer) is tokenizer.joint
    with pytest.raises(IndexError):
        prepared.train.src(len(kept))


def test_what_has_been_scanned_is_not_read_again_for_that(
    tmp_path: Path,
    write_corpus: WriteCorpus,
    make_pairs: MakePairs,
    decoded: Decoded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = DataConfig((write_corpus(make_pairs(200)),), valid_size=10)
    expected = prepare(data, CHARS, seed=1, cache=tmp_path / "first")
    with corpus.scanned_once(data, tmp_path / "second", 1, lambda *_: None) as scanned:
        monkeypatch.setattr(corpus, "scan", lambda *_: pytest.fail("it was scanned again"))
        found = prepare(data, CHARS, seed=1, cache=tmp_path / "second", scanned=scanned)
    assert decoded(found) == decoded(expected) and found.dropped == expected.dropped


def test_long_sources_are_cut_and_not_dropped(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    pairs = [(f"{src} " * 40, tgt[:30]) for src, tgt in make_pairs(90) if src.strip() and tgt.strip()]
    clean = CleanConfig(max_length=40, max_ratio=1000, cut_source=7, drop_duplicates=False)
    source = write_corpus(pairs)
    data = DataConfig((source,), valid=(source,), clean=clean)
    prepared = prepare(data, CHARS, seed=1, cache=tmp_path / "cache")
    assert prepared.dropped == {}
    for store in (prepared.train, prepared.valid):
        assert [store.src(row).tolist() for row in range(len(store))] == [
            prepared.src_tokenizer.encode(src)[:7] for src, _ in pairs
        ]
        assert store.tgt(3).tolist() == prepared.tgt_tokenizer.encode(pairs[3][1])
    with pytest.raises(UserError, match="cut_source: expected a number from 1 to max_length, which is 40"):
        replace(clean, cut_source=41)


@pytest.mark.parametrize(
    "config", [BPE, CHARS, TokenizerConfig(kind="word", vocab_size=400, min_frequency=2)]
)
@pytest.mark.parametrize("joint", [True, False])
def test_each_vocabulary_is_learnt_from_its_own_side(
    tmp_path: Path, write_corpus: WriteCorpus, config: TokenizerConfig, joint: bool
) -> None:
    pairs = [(f"{n} the source {n % 7}", f"{n} цель здесь {n % 5}") for n in range(300)]
    config = replace(config, joint=joint)
    data = DataConfig((write_corpus(pairs),), valid_size=0)
    prepared = prepare(data, config, seed=1, cache=tmp_path / "cache")
    src, tgt = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    expected = [src + tgt] * 2 if joint else [src, tgt]
    learnt = [Tokenizer.train(texts, config).sha256 for texts in expected]
    assert [prepared.src_tokenizer.sha256, prepared.tgt_tokenizer.sha256] == learnt


def test_split_is_disjoint_and_decided_by_the_seed(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs, decoded: Decoded
) -> None:
    pairs = make_pairs(800)
    # The same sources again in other clothes, with other targets.
    pairs += [(src.upper().replace(".", " !"), tgt + " x") for src, tgt in pairs[:200]]
    source = write_corpus(pairs)
    chosen = []
    for seed in (1, 1, 2):
        data = DataConfig((source,), valid_size=50)
        prepared = prepare(data, CHARS, seed=seed, cache=tmp_path / "cache")
        train, valid = decoded(prepared), decoded(prepared, "valid")
        assert 40 <= len(valid) <= 50
        assert not {normalise(src) for src, _ in valid} & {normalise(src) for src, _ in train}
        clean = {pair for pair in pairs if not is_empty(*pair)}
        assert set(train) | set(valid) == clean
        assert len(train) + len(valid) == len(clean)
        for index, pair in enumerate(valid):
            line = int(prepared.valid.origin(index).rpartition(":")[2])
            assert pairs[line - 1] == pair
        chosen.append(valid)
    assert chosen[0] == chosen[1] != chosen[2]


def test_validation_corpus_is_taken_as_it_is(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs, decoded: Decoded
) -> None:
    train = write_corpus(make_pairs(200, faults=False))
    long = "ab " * 100
    pairs = [("same", "same"), ("same", "same"), ("", "x"), ("a", "b " * 30), (long, long), ("c", "d")]
    valid = write_corpus(pairs, name="valid")
    data = DataConfig((train,), (valid,), clean=CleanConfig(max_length=299, drop_copies=True))
    prepared = prepare(data, CHARS, seed=1, cache=tmp_path / "cache")
    assert len(prepared.train) == 200
    assert decoded(prepared, "valid") == [pairs[i] for i in (0, 1, 3, 5)]
    assert prepared.valid_dropped == {"empty": 1, "too_long": 1}
    assert prepared.dropped == {}  # nothing of the validation corpus is counted here
    assert prepared.valid.origin(3) == f"{valid.files[0]}:6"


def test_several_corpora_keep_their_ranges_and_weights(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs
) -> None:
    first = write_corpus(make_pairs(100, seed=1, faults=False), "first", weight=2.0)
    table = tmp_path / "second.tsv"
    rows = make_pairs(60, seed=2, faults=False)
    table.write_text("src\ttgt\n" + "".join(f"{s}\t{t}\n" for s, t in rows), encoding="utf-8", newline="\n")
    third = write_corpus(make_pairs(100, seed=1, faults=False)[:30], "third", weight=0.5)  # all in the first
    data = DataConfig((first, SourceConfig((str(table),)), third), valid_size=0)
    prepared = prepare(data, CHARS, seed=1, cache=tmp_path / "cache")
    assert [(c.start, c.end, c.weight) for c in prepared.train.corpora] == [
        (0, 100, 2.0),
        (100, 160, 1.0),
        (160, 160, 0.5),
    ]
    assert prepared.train.origin(100) == f"{table}:2"
    assert prepared.train.origin(99) == f"{first.files[0]}:100"
    assert prepared.dropped == {"duplicate": 30}
    assert next(prepared.dropped_origins("duplicate")) == f"{third.files[0]}:1"


def test_overlap_with_training(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs, decoded: Decoded
) -> None:
    pairs = make_pairs(300)
    prepared = prepare(
        DataConfig((write_corpus(pairs),), valid_size=20), CHARS, seed=1, cache=tmp_path / "cache"
    )
    train, valid = decoded(prepared), decoded(prepared, "valid")
    probes = [src for src, _ in (*train, *valid)] + ["never seen", "", train[0][0].upper() + " ?!"]
    known = {normalise(src) for src, _ in train}
    assert overlap(prepared, probes, "src") == [normalise(text) in known for text in probes]
    assert overlap(prepared.directory, [tgt for _, tgt in train], "tgt") == [True] * len(train)
    assert not any(overlap(prepared, [src for src, _ in valid], "src"))
    assert overlap(prepared, [], "src") == []


@pytest.mark.parametrize(
    ("pairs", "clean", "message"),
    [
        ([("", "x"), ("y", " ")], CleanConfig(), r"train: no pair is left of 2 \(empty 2\)"),
        ([("abc", "abc")], CleanConfig(drop_copies=True), r"no pair is left of 1 \(copy 1\)"),
        (
            [("abcdef", "x"), ("abcdef", "y")],
            CleanConfig(max_length=3),
            r"no pair is left of 2 \(too_long 2\)",
        ),
    ],
)
def test_nothing_left(
    tmp_path: Path, write_corpus: WriteCorpus, pairs: list[tuple[str, str]], clean: CleanConfig, message: str
) -> None:
    data = DataConfig((write_corpus(pairs),), clean=clean, valid_size=0)
    with pytest.raises(UserError, match=message):
        prepare(data, CHARS, seed=1, cache=tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_huge_line_is_dropped_without_being_encoded(
    tmp_path: Path, write_corpus: WriteCorpus, make_pairs: MakePairs, decoded: Decoded
) -> None:
    pairs = [*make_pairs(50, faults=False), ("x" * 3_000_000, "y"), ("z", "w")]
    prepared = prepare(
        DataConfig((write_corpus(pairs),), valid_size=0), BPE, seed=1, cache=tmp_path / "cache"
    )
    assert prepared.dropped == {"too_long": 1}
    assert decoded(prepared)[-1] == ("z", "w")


def test_a_large_corpus_teaches_the_tokenizer_by_a_sample(
    tmp_path: Path,
    write_corpus: WriteCorpus,
    make_pairs: MakePairs,
    decoded: Decoded,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source = write_corpus(make_pairs(2000))
    monkeypatch.setattr(scan, "SAMPLE_CHARACTERS", 20_000)
    learnt: list[list[str]] = []

    def spy(texts: object, config: TokenizerConfig) -> Tokenizer:
        learnt.append(list(texts))  # type: ignore[call-overload]
        return original(learnt[-1], config)

    original = Tokenizer.train
    monkeypatch.setattr(Tokenizer, "train", spy)
    first = prepare(DataConfig((source,)), BPE, seed=1, cache=tmp_path / "one")
    again = prepare(DataConfig((source,)), BPE, seed=1, cache=tmp_path / "two")
    prepare(DataConfig((source,)), BPE, seed=2, cache=tmp_path / "three")
    assert 10_000 < sum(map(len, learnt[0])) < 25_000
    assert learnt[0] == learnt[1] != learnt[2]
    assert first.src_tokenizer.sha256 == again.src_tokenizer.sha256
    # Nothing that is held out for validation teaches the tokenizer.
    assert not set(learnt[0][::2]) & {src for src, _ in decoded(first, "valid")}

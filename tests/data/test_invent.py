"""Invented pairs: stems change on both sides alike, everything else stays."""

from pathlib import Path

import numpy as np
import pytest

from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.invented_pairs import Inventor, common_runs
from dragoman.data.sampler import CorpusRange
from dragoman.learning.translate import Pairs
from dragoman.text.tokenizer import TokenizerConfig

WORDS = ["walk", "jump", "talk", "paint", "rest", "climb", "ask", "go", "hunt", "mend"]


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    table = tmp_path / "a.tsv"
    table.write_text("".join(f"PST {word}\t{word}ed\n" for word in WORDS), encoding="utf-8")
    data = DataConfig(train=(SourceConfig((str(table),)),), valid_size=2)
    return prepare(data, TokenizerConfig(kind="char", vocab_size=400), seed=1, cache=tmp_path / "cache")


def test_stems_are_runs_that_both_sides_have() -> None:
    assert common_runs(np.array([1, 2, 3, 4, 5, 9]), np.array([3, 4, 5, 7])) == [(2, 0, 3)]
    assert common_runs(np.array([1, 2]), np.array([1, 2])) == []


def test_real_pairs_come_first_and_invented_ones_are_alike_on_both_sides(prepared: Prepared) -> None:
    store, tokenizer = prepared.train, prepared.src_tokenizer
    inventor = Inventor(store, np.arange(len(store)), times=3, seed=5)
    assert len(inventor) == 4 * len(store) == 36
    changed = 0
    for number, (src, tgt) in enumerate(inventor.pairs(np.arange(len(inventor)), epoch=0)):
        base = number % len(store)
        real = store.src(base), store.tgt(base)
        told, ends = tokenizer.decode(src.tolist()), tokenizer.decode(tgt.tolist())
        if number < len(store):
            assert np.array_equal(src, real[0]) and np.array_equal(tgt, real[1])
        assert told.startswith("PST ") and ends == told.removeprefix("PST ") + "ed"
        assert (len(src), len(tgt)) == (len(real[0]), len(real[1]))
        changed += not np.array_equal(tgt, real[1])
    assert changed >= 16  # `go` is too short, and letters may be drawn as they were
    assert set(inventor.letters.tolist()) <= {
        piece for n in range(len(store)) for piece in store.tgt(n).tolist()
    }


def test_a_pair_is_a_function_of_seed_epoch_and_number(prepared: Prepared) -> None:
    def drawn(seed: int, epoch: int) -> list[list[int]]:
        inventor = Inventor(prepared.train, np.arange(len(prepared.train)), times=2, seed=seed)
        backwards = [inventor.pairs(np.array([n]), epoch)[0] for n in reversed(range(len(inventor)))]
        together = inventor.pairs(np.arange(len(inventor)), epoch)
        assert [tgt.tolist() for _, tgt in together] == [tgt.tolist() for _, tgt in reversed(backwards)]
        return [tgt.tolist() for _, tgt in together]

    assert drawn(1, 0) == drawn(1, 0)
    assert drawn(1, 0) != drawn(1, 1)
    assert drawn(1, 0) != drawn(2, 0)


def test_examples_of_training_have_them_and_validation_has_not(prepared: Prepared) -> None:
    tokenizers = prepared.src_tokenizer, prepared.tgt_tokenizer
    pairs = Pairs(prepared.train, tokenizers, seed=3, invented=2)
    size = len(prepared.train)
    assert len(pairs) == len(pairs.src_lengths) == len(pairs.tgt_lengths) == 3 * size
    assert sum(corpus.draws for corpus in pairs.corpora) == 3 * size
    assert pairs.origin(size) == pairs.origin(0)
    batch = pairs.batch(np.arange(3 * size), epoch=0)
    assert len(batch.src_ids) == 3 * size
    assert len(Pairs(prepared.valid, tokenizers)) == len(prepared.valid)


def test_every_second_pair(prepared: Prepared) -> None:
    tokenizers = prepared.src_tokenizer, prepared.tgt_tokenizer
    store = prepared.train
    for invented in (0, 1):
        half = Pairs(store, tokenizers, every=2, invented=invented)
        assert half.real == 5 and len(half) == 5 * (1 + invented)
        assert half.src_lengths[:5].tolist() == store.src_lengths[::2].tolist()
        assert sum(corpus.draws for corpus in half.corpora) == len(half)
        batch = half.batch(np.array([1, 3]), epoch=0)
        assert batch.src_ids[0, : half.src_lengths[1]].tolist() == store.src(2).tolist()
        assert half.origin(3) == store.origin(6)


def test_every_second_pair_of_several_corpora(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared.train, "corpora", (CorpusRange(0, 3), CorpusRange(3, 9)))
    half = Pairs(prepared.train, (prepared.src_tokenizer, prepared.tgt_tokenizer), every=2)
    assert [(corpus.start, corpus.end) for corpus in half.corpora] == [(0, 2), (2, 5)]  # 0 2 and 4 6 8

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dragoman.data.corpus import DataConfig, Prepared, SourceConfig, prepare
from dragoman.data.store import load_pairs, load_pairs_dropout
from dragoman.text.tokenizer import TokenizerConfig


@pytest.fixture
def prepared(
    tmp_path: Path,
    write_corpus: Callable[..., SourceConfig],
    make_pairs: Callable[..., list[tuple[str, str]]],
) -> Prepared:
    data = DataConfig((write_corpus(make_pairs(200)),))
    return prepare(data, TokenizerConfig(vocab_size=700), seed=1, cache=tmp_path / "cache")


def test_pairs_as_they_were_encoded(prepared: Prepared) -> None:
    store = prepared.train
    for indices in ([3, 0, 3], np.array([7, 2]), []):
        pairs = load_pairs(store, indices)
        assert len(pairs) == len(indices)
        for index, (src, tgt) in zip(indices, pairs, strict=True):
            assert src.tolist() == store.src(index).tolist()
            assert tgt.tolist() == store.tgt(index).tolist()


def test_dropout_segments_anew_and_keeps_the_text(prepared: Prepared) -> None:
    store, src_tok, tgt_tok = prepared.train, prepared.src_tokenizer, prepared.tgt_tokenizer
    indices = np.arange(len(store))

    def load(
        rate: float = 0.3, seed: int = 1, epoch: int = 0, limit: int | None = None
    ) -> list[list[list[int]]]:
        pairs = load_pairs_dropout(
            store, indices, src_tok, tgt_tok, rate=rate, seed=seed, epoch=epoch, max_length=limit
        )
        return [[src.tolist(), tgt.tolist()] for src, tgt in pairs]

    plain = [[src.tolist(), tgt.tolist()] for src, tgt in load_pairs(store, indices)]
    assert load(rate=0.0) == plain
    first = load()
    assert first == load()  # a pure function
    assert first != plain
    assert first != load(epoch=1)
    assert first != load(seed=2)
    for (src, tgt), (plain_src, plain_tgt) in zip(first, plain, strict=True):
        assert src_tok.decode(src) == src_tok.decode(plain_src)
        assert tgt_tok.decode(tgt) == tgt_tok.decode(plain_tgt)
    # A pair is segmented the same in whatever company it is loaded.
    alone = load_pairs_dropout(store, [5], src_tok, tgt_tok, rate=0.3, seed=1, epoch=0)
    assert [[src.tolist(), tgt.tolist()] for src, tgt in alone] == [first[5]]
    limited = load(limit=30)
    for pair, anew, usual in zip(limited, first, plain, strict=True):
        for side in (0, 1):
            assert pair[side] == (anew[side] if len(anew[side]) <= 30 else usual[side])

"""BPE-dropout: a pure function of (text, rate, key), with the distribution of Provilkov et al. 2020."""

import itertools
import random
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def bpe(grid: dict[str, Tokenizer]) -> Tokenizer:
    return grid["bpe-start-punctuation-digits"]


def reload(tokenizer: Tokenizer, path: Path) -> Tokenizer:
    """The same tokenizer with nothing remembered."""
    tokenizer.save(path / "fresh.json")
    return Tokenizer.load(path / "fresh.json")


def test_rate_zero_is_encode(grid, corpus):
    for tokenizer in grid.values():
        for text in corpus:
            assert tokenizer.encode_dropout(text, 0.0, (1, 2, 3)) == tokenizer.encode(text)


def test_rate_one_is_characters(bpe: Tokenizer, corpus):
    for text in corpus:
        assert bpe.pieces(bpe.encode_dropout(text, 1.0, (1, 2, 3))) == bpe.merge_steps(text)[0]


def test_the_text_stays_the_same(grid, corpus):
    for name, tokenizer in grid.items():
        for index, text in enumerate([*corpus, "▁ </s> 船👍 \t", "", "x" * 400]):
            for rate in (0.1, 0.5, 0.9):
                ids = tokenizer.encode_dropout(text, rate, (7, 0, index))
                assert tokenizer.decode(ids) == text, name


def test_length_grows_with_the_rate(bpe: Tokenizer, corpus):
    means = []
    for rate in (0.0, 0.1, 0.3, 0.6, 1.0):
        lengths = [len(bpe.encode_dropout(text, rate, (1, 1, i))) for i, text in enumerate(corpus * 5)]
        means.append(sum(lengths) / len(lengths))
    assert means == sorted(means) and len(set(means)) == len(means)


def test_it_depends_on_text_rate_and_key_only(bpe: Tokenizer, corpus, tmp_path: Path):
    calls = [
        (text, rate, (1, epoch, i))
        for i, text in enumerate(corpus)
        for rate in (0.1, 0.4)
        for epoch in range(6)
    ]
    expected = {call: bpe.encode_dropout(*call) for call in calls}
    fresh = reload(bpe, tmp_path)
    shuffled = calls * 2
    random.Random(0).shuffle(shuffled)
    for call in shuffled:
        assert fresh.encode_dropout(*call) == expected[call]


def test_a_full_pool_changes_nothing(bpe: Tokenizer, corpus, tmp_path: Path, monkeypatch):
    expected = [bpe.encode_dropout(text, 0.3, (5, i)) for i, text in enumerate(corpus)]
    monkeypatch.setattr("dragoman.text.bpe._POOL_WORDS", 3)
    fresh = reload(bpe, tmp_path)
    assert [fresh.encode_dropout(text, 0.3, (5, i)) for i, text in enumerate(corpus)] == expected


def test_the_key_matters(bpe: Tokenizer, corpus):
    text = corpus[0]
    seen = {tuple(bpe.encode_dropout(text, 0.3, key)) for key in itertools.product((1, 2), (0, 1), range(10))}
    assert len(seen) > 30
    keys = ((1,), (1, 2), (1, 2, 3, 4), (-1, 2**70, 0), ())
    assert all(bpe.decode(bpe.encode_dropout(text, 0.3, key)) == text for key in keys)


def test_a_known_result_stays(train):
    """Resumed runs must see the same text, in later versions too."""
    tokenizer = train(["the lowest newest lowest newest"] * 3, vocab_size=300)
    assert tokenizer.pieces(tokenizer.encode("the lowest newest")) == ["▁the", "▁lowest", "▁newest"]
    pieces = tokenizer.pieces(tokenizer.encode_dropout("the lowest newest", 0.5, (1, 2, 3)))
    assert " ".join(pieces) == "▁ t h e ▁ l o wes t ▁ n e west"


def test_the_distribution_is_that_of_the_paper(bpe: Tokenizer):
    """Against algorithm 1 in plain form: every merge that can be made is dropped anew before each step."""
    text, rate, times = "the newest lowest boats", 0.3, 1500
    ranks = {pair: rank for rank, pair in enumerate(bpe._vocabulary.merges)}
    rng = random.Random(3)

    def plain(word: str) -> int:
        pieces = list(word)
        while True:
            pairs = enumerate(itertools.pairwise(pieces))
            left = [(ranks[pair], i) for i, pair in pairs if pair in ranks and rng.random() >= rate]
            if not left:
                return len(pieces)
            i = min(left)[1]
            pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]

    words = [f"▁{word}" for word in text.split(" ")]
    expected = sum(plain(word) for _ in range(times) for word in words) / times
    found = sum(len(bpe.encode_dropout(text, rate, (9, n, 0))) for n in range(times)) / times
    assert found == pytest.approx(expected, abs=0.25)
    assert expected > len(bpe.encode(text)) + 1


def test_a_rate_outside_0_to_1_is_refused(bpe: Tokenizer):
    for rate in (-0.1, 1.1, float("nan")):
        with pytest.raises(UserError, match="dropout: expected a rate from 0 to 1"):
            bpe.encode_dropout("text", rate, (1,))

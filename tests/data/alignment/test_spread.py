"""Links of words as links of pieces: for every kind of tokenizer, held against the places of the pieces."""

import itertools
import random
from pathlib import Path

import numpy as np
import pytest

from dragoman.data.alignment.piece_links import LinkSpread, PieceWords
from dragoman.data.store import PairStore
from dragoman.data.store_writer import StoreWriter
from dragoman.data.verified_files import OutputFiles, StoreFiles
from dragoman.text.incremental import offsets
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig
from dragoman.text.word_boundaries import words

TEXTS = [
    "the old house, on the hill.",
    "naïve  café\u00a0au lait",  # two spaces, and one that is two bytes
    "日本 語",  # spelt in bytes
    " tab\there ",
    "",
    "x",
    "hill the house old",
]
CONFIGS = [
    TokenizerConfig(vocab_size=300, min_frequency=1),
    TokenizerConfig(vocab_size=300, min_frequency=1, word_mark="end"),
    TokenizerConfig(kind="word", vocab_size=290, min_frequency=1),
    TokenizerConfig(kind="char", vocab_size=300, min_frequency=1),
    TokenizerConfig(kind="byte", vocab_size=300),
]


@pytest.mark.parametrize("config", CONFIGS, ids=["bpe", "bpe-end", "word", "char", "byte"])
def test_pieces_of_words(config: TokenizerConfig) -> None:
    tokenizer = Tokenizer.train([TEXTS[0]] * 3 + [TEXTS[-1]], config)
    rows = [np.array(tokenizer.encode(text), dtype=np.uint16) for text in TEXTS]
    if config.kind == "bpe":
        rows += [np.array(tokenizer.encode_dropout(text, 0.5, (1, i))) for i, text in enumerate(TEXTS)]
    found = PieceWords(tokenizer)(rows)
    ends = [*found.base[1:], len(found.first)]
    for ids, base, end in zip(rows, found.base, ends, strict=True):
        text, places = tokenizer.decode(ids.tolist()), offsets(tokenizer, ids.tolist())
        assert end - base == len(words(text)) == len(text.split())
        for (start, stop), first, count in zip(
            words(text), found.first[base:end], found.count[base:end], strict=True
        ):
            own = [k for k, (a, b) in enumerate(places) if a < stop and b > start]
            assert own == list(range(first, first + count))


def test_spreading_by_hand(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["ab cd"], TokenizerConfig(kind="char", vocab_size=300, min_frequency=1))
    texts = [("ab c", "d ab"), ("a", "b"), ("a b", "ab")]
    links = [[(0, 1), (1, 0)], [], [(0, 0), (1, 0)]]
    spread = LinkSpread(stored(tmp_path, tokenizer, texts, links), tokenizer, tokenizer)
    ids = [tuple(np.array(row) for row in tokenizer.encode_batch(list(pair))) for pair in texts]
    found = spread(np.array([0, 1, 2]), ids)  # type: ignore[arg-type]
    cells = zip(*(t.tolist() for t in (found.rows, found.tgt, found.src, found.weights)), strict=True)
    # «ab c» has pieces a b _ c; «d ab» has d _ a b; in the last pair a and b look at both of a _ b
    assert sorted(cells) == [
        (0, 0, 3, 1.0),
        (0, 2, 0, 0.5),
        (0, 2, 1, 0.5),
        (0, 3, 0, 0.5),
        (0, 3, 1, 0.5),
        (2, 0, 0, 0.5),
        (2, 0, 2, 0.5),
        (2, 1, 0, 0.5),
        (2, 1, 2, 0.5),
    ]
    none = spread(np.array([1]), ids[1:2])  # type: ignore[arg-type]
    assert len(none.rows) == len(none.weights) == 0


def test_every_target_piece_has_one_weight_in_all(tmp_path: Path) -> None:
    chance = random.Random(0)
    tokenizer = Tokenizer.train(TEXTS, TokenizerConfig(vocab_size=300, min_frequency=1))
    pairs = [(chance.choice(TEXTS), chance.choice(TEXTS)) for _ in range(30)]
    links = [
        sorted(
            cell
            for cell in itertools.product(range(len(src.split())), range(len(tgt.split())))
            if chance.random() < 0.4
        )
        for src, tgt in pairs
    ]
    spread = LinkSpread(stored(tmp_path, tokenizer, pairs, links), tokenizer, tokenizer)
    ids = [tuple(np.array(row, dtype=np.int64) for row in tokenizer.encode_batch(list(p))) for p in pairs]
    found = spread(np.arange(30), ids)  # type: ignore[arg-type]
    sums: dict[tuple[int, int], float] = {}
    for row, tgt, src, weight in zip(found.rows, found.tgt, found.src, found.weights, strict=True):
        assert int(src) < len(ids[row][0])
        assert int(tgt) < len(ids[row][1])
        sums[int(row), int(tgt)] = sums.get((int(row), int(tgt)), 0.0) + float(weight)
    np.testing.assert_allclose(list(sums.values()), 1.0, rtol=1e-5)


def stored(
    directory: Path, tokenizer: Tokenizer, pairs: list[tuple[str, str]], links: list[list[tuple[int, int]]]
) -> PairStore:
    dtype = np.dtype(np.uint16)

    def side(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
        return np.array(list(itertools.chain(*rows)), dtype=np.int64), np.array([len(row) for row in rows])

    with OutputFiles() as output:
        writer = StoreWriter(output, directory, "train", dtype, dtype, linked=True)
        sources, targets = ([tokenizer.encode(pair[k]) for pair in pairs] for k in (0, 1))
        flat = [[number for link in row for number in link] for row in links]
        keep = np.ones(len(pairs), dtype=bool)
        writer.append(side(sources), side(targets), np.arange(len(pairs)) + 1, keep, side(flat))
        writer.end_corpus()
        meta = writer.finish(["a"], [1.0])
    return PairStore(StoreFiles(directory, output.hashed), "train", meta)

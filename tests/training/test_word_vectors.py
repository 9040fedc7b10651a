"""Word vectors of a file as the first embeddings, and the bag of words, which knows no order."""

from pathlib import Path

import numpy as np
import pytest
import torch

from dragoman.checkpoint.model import load_network
from dragoman.data.labelled.example import Example
from dragoman.errors import UserError
from dragoman.runs.opening import open_predictor
from dragoman.training.api import train
from dragoman.training.word_vectors import read_vectors, whole_words

WORDS = ["good", "bad", "film", "the", "was", "Story"]
OVERRIDES = {
    **{
        "task.kind": "classify",
        "model.preset": "bag-of-words",
        "model.model_dim": 8,
        "tokenizer.kind": "word",
    },
    **{"train.max_updates": 1, "train.validate_every": 1, "train.device": "cpu", "optim.rate": 1e-12},
    **{"tokenizer.vocab_size": 300},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("vectors")
    rows = [f"the {a} Story was {b} film {c}\t{a}" for a in WORDS[:2] for b in "xyz" for c in "uvwpq"]
    (root / "a.tsv").write_text("".join(f"{row}\n" for row in rows))
    dice = np.random.default_rng(1).normal(size=(len(WORDS), 8))
    lines = [f"{word.lower()} {' '.join(map(str, row))}" for word, row in zip(WORDS, dice, strict=True)]
    (root / "a.vec").write_text("".join(f"{line}\n" for line in ["6 8", *lines, "good 1 1 1 1 1 1 1 1"]))
    return root


def test_embeddings_begin_with_the_vectors_of_their_words(folder: Path) -> None:
    changed = OVERRIDES | {"transfer.vectors": str(folder / "a.vec")}
    run = train(folder / "a.tsv", out=folder / "run", overrides=changed, quiet=True)
    loaded = load_network(run.directory)
    weights = dict(loaded.model.named_parameters())["network.encoder.embedding.weight"]
    expected = read_vectors(folder / "a.vec", {word.lower() for word in WORDS}, 8)
    assert len(expected) == len(WORDS) and expected["good"].tolist() != [1.0] * 8
    found = {word: piece for piece, word in whole_words(loaded.tgt_tokenizer).items()}
    for word in WORDS:
        torch.testing.assert_close(
            weights[found[word]], torch.from_numpy(expected[word.lower()]), atol=1e-6, rtol=0
        )
    log = (run.directory / "log.txt").read_text("utf-8")
    assert f"vectors of {len(WORDS)} of {len(found)} words of the vocabulary were found in" in log


def test_a_bag_of_words_knows_no_order(folder: Path) -> None:
    run = train(folder / "a.tsv", out=folder / "bag", overrides=OVERRIDES, quiet=True)
    assert run.config.task is not None and run.config.task.pooling == "mean"
    texts = ["the good Story was x film u", "u film x was Story good the", "the bad Story was x film u"]
    predictor = open_predictor(run, device="cpu")
    one, turned, other = (
        each.confidence for each in predictor.predict([Example((t,), None, "") for t in texts])
    )
    assert one == pytest.approx(turned, abs=1e-6) and one != pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("good 1 2 3\n", r"v\.txt:1: expected a word and 8 numbers, as model\.model_dim is, found 3"),
        ("good 1 2 3 4 5 6 7 x\n", r"v\.txt:1: expected numbers after the word"),
        ("good 1 2 3 4 5 6 7 nan\n", r"v\.txt:1: a number of this vector is not finite"),
    ],
)
def test_what_is_no_vector_is_told(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "v.txt").write_text(content)
    with pytest.raises(UserError, match=message):
        read_vectors(tmp_path / "v.txt", {"good"}, 8)

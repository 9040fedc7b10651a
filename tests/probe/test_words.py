"""Pieces merged into words: rows are means, columns are sums, and what is hidden stays hidden."""

import numpy as np
import pytest
import torch

from dragoman.probe.inside import Inside, Seen
from dragoman.probe.words import view
from dragoman.text.tokenizer import BOS_ID, EOS_ID, Tokenizer, TokenizerConfig


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["ab ab cd"], TokenizerConfig(kind="char"))


def inside(tokenizer: Tokenizer, kind: str, rows: int, columns: int) -> tuple[Inside, Seen]:
    """Source «ab c.», target «cd a»."""
    src, tgt = (*tokenizer.encode("ab c."), EOS_ID), (*tokenizer.encode("cd a"), EOS_ID)
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(2, rows, columns, dtype=torch.float64, generator=generator)
    if kind == "decoder":
        weights = weights.tril()
    attention = Seen("x", kind, 1, weights / weights.sum(dim=-1, keepdim=True))
    read = tuple(tokenizer.pieces((BOS_ID, *tgt[:-1])))
    names = tuple(tokenizer.pieces(src)), read, tuple(tokenizer.pieces(tgt))
    return Inside(src, tgt, *names, (), (), (attention,)), attention


def test_columns_are_sums_and_rows_are_means(tokenizer: Tokenizer) -> None:
    seen, attention = inside(tokenizer, "cross", 5, 6)
    found = view(seen, attention, 1, False, (tokenizer, tokenizer))
    assert found.columns == ("ab", "c", ".", "</s>") and found.rows == ("› cd", "› a", "› </s>")
    w = attention.weights[1].numpy()
    assert found.weights[0, 0] == pytest.approx((w[0, :2].sum() + w[1, :2].sum()) / 2)
    assert found.weights[1].tolist() == pytest.approx([w[3, :2].sum(), w[3, 3], w[3, 4], w[3, 5]])
    assert found.weights[2, 3] == w[4, 5]
    assert found.title == "cross attention, layer 1, head 2"


def test_the_step_decides_which_row_is_whose(tokenizer: Tokenizer) -> None:
    seen, attention = inside(tokenizer, "cross", 5, 6)
    mean = attention.weights.mean(dim=0).numpy()
    predicted, read, plain = (view(seen, attention, None, when) for when in (False, True, None))
    steps = tuple(f"{read} › {written}" for read, written in zip(seen.read, seen.written, strict=True))
    assert predicted.rows == steps and (predicted.weights == mean).all()
    assert read.rows == steps[1:] and (read.weights == mean[1:]).all()
    assert plain.rows == steps and not plain.hidden.any()


def test_what_is_hidden_stays_hidden(tokenizer: Tokenizer) -> None:
    seen, attention = inside(tokenizer, "decoder", 5, 5)
    pieces = view(seen, attention, 0)
    assert (pieces.hidden == np.triu(np.ones((5, 5), dtype=bool), 1)).all()
    merged = view(seen, attention, 0, None, (tokenizer, tokenizer))
    assert merged.rows == ("<s> ›", "cd ›", "a ›") and merged.columns == ("<s>", "cd", "a")
    assert merged.hidden.tolist() == [[False, True, True], [False, False, True], [False, False, False]]


def test_both_sides_of_a_joint_attention(tokenizer: Tokenizer) -> None:
    seen, attention = inside(tokenizer, "joint", 5, 11)
    merged = view(seen, attention, 0, None, (tokenizer, tokenizer))
    assert merged.columns == ("ab", "c", ".", "</s>", "<s>", "cd", "a")
    assert merged.hidden[0].tolist() == [False] * 5 + [True, True]

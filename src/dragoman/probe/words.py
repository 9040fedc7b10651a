"""Weights as a picture shows them: which rows and columns, as pieces or merged into words.

The weights of a decoder's position stand for the piece that it predicts or, in most layers of a Transformer,
for the one that it has just read (`decode/alignment/attention.py`). Merged, a row is the mean over the pieces
of a word, a column their sum, as in word alignment. Punctuation stands alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dragoman.decode.alignment.aligner import members, words_by_words
from dragoman.probe.inside import Inside, Seen
from dragoman.text.incremental import offsets
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import units


@dataclass(frozen=True)
class AxisLabels:
    """The rows or the columns: their labels, and the share of each piece (P) that stands in each of them."""

    labels: tuple[str, ...]
    share: np.ndarray


@dataclass(frozen=True)
class View:
    """Weights with labels; `hidden` are the cells that could not be looked at."""

    weights: np.ndarray
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    hidden: np.ndarray
    title: str


def view(
    seen: Inside,
    attention: Seen,
    head: int | None = None,
    when_read: bool | None = None,
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
) -> View:
    """One head, or the mean of all. A position of a decoder is labelled «read › written». With `tokenizers`,
    pieces are merged into words: those that the positions have read («word ›») where `when_read` is None or
    True, those that they predict («› word») where it is False. True leaves out `<s>`, which is no word."""
    weights = (attention.mean if head is None else attention.weights[head]).double().numpy()
    rows, columns = seen.labels(attention.kind)
    row_ids = seen.src_ids if attention.kind == "encoder" else _read_ids(seen)
    hidden = np.zeros(weights.shape, dtype=bool)
    if attention.kind in ("decoder", "joint"):
        first = weights.shape[1] - weights.shape[0]
        hidden[:, first:] = np.triu(np.ones((len(weights), len(weights)), dtype=bool), 1)
    if attention.kind != "encoder" and when_read is False:
        row_ids = seen.tgt_ids
    if attention.kind != "encoder" and when_read:
        weights, rows, row_ids, hidden = weights[1:], rows[1:], row_ids[1:], hidden[1:]
    heads = "mean of heads" if head is None else f"head {head + 1}"
    title = f"{attention.kind} attention, layer {attention.layer}"
    title += "" if len(attention.weights) == 1 else f", {heads}"
    if tokenizers is None:
        return View(weights, tuple(rows), tuple(columns), hidden, title)
    src, tgt = tokenizers
    of_rows = words_of(row_ids, src if attention.kind == "encoder" else tgt)
    of_columns = _columns(seen, attention, src, tgt)
    merged = words_by_words(weights, of_columns.share, of_rows.share)
    blind = words_by_words(hidden.astype(float), of_columns.share, of_rows.share)
    all_of_it = of_columns.share.sum(axis=0) - 1e-9
    names = of_rows.labels
    if attention.kind != "encoder":
        names = tuple(f"› {name}" if when_read is False else f"{name} ›" for name in names)
    return View(merged, names, of_columns.labels, blind >= all_of_it, title)


def _columns(seen: Inside, attention: Seen, src: Tokenizer, tgt: Tokenizer) -> AxisLabels:
    if attention.kind == "decoder":
        return words_of(_read_ids(seen), tgt)
    source = words_of(seen.src_ids, src)
    return source if attention.kind != "joint" else _joined(source, words_of(_read_ids(seen), tgt))


def _read_ids(seen: Inside) -> tuple[int, ...]:
    return (Tokenizer.bos_id, *seen.tgt_ids[:-1])


def words_of(ids: Sequence[int], tokenizer: Tokenizer) -> AxisLabels:
    """`<s>` and `</s>` stay what they are."""
    controls = (Tokenizer.bos_id, Tokenizer.eos_id)
    inner = [piece for piece in ids if piece not in controls]
    text = tokenizer.decode(inner)
    places = units(text)
    share = members(offsets(tokenizer, inner), places)
    labels = [text[start:end] for start, end in places]
    if ids and ids[0] == Tokenizer.bos_id:
        share, labels = _corner(share, first=True), [tokenizer.pieces(ids[:1])[0], *labels]
    if ids and ids[-1] == Tokenizer.eos_id:
        share, labels = _corner(share, first=False), [*labels, tokenizer.pieces(ids[-1:])[0]]
    return AxisLabels(tuple(labels), share)


def _corner(share: np.ndarray, first: bool) -> np.ndarray:
    """Add one piece that counts as a word."""
    grown = np.pad(share, ((1, 0), (1, 0)) if first else ((0, 1), (0, 1)))
    grown[(0, 0) if first else (-1, -1)] = 1.0
    return grown


def sides_of(seen: Inside, tokenizers: tuple[Tokenizer, Tokenizer]) -> dict[str, Any]:
    """Source, what has been read and what is written: their pieces, and the words these make up, as pages get
    them."""
    src, tgt = tokenizers
    return {
        "src": _side(seen.src_ids, src),
        "read": _side(_read_ids(seen), tgt),
        "written": _side(seen.tgt_ids, tgt),
    }


def _side(ids: tuple[int, ...], tokenizer: Tokenizer) -> dict[str, Any]:
    words = words_of(ids, tokenizer)
    shares = [
        [[int(word), round(float(row[word]), 4)] for word in np.flatnonzero(row)] for row in words.share
    ]
    return {"pieces": tokenizer.pieces(ids), "words": words.labels, "shares": shares}


def _joined(first: AxisLabels, second: AxisLabels) -> AxisLabels:
    share = np.zeros((len(first.share) + len(second.share), len(first.labels) + len(second.labels)))
    share[: len(first.share), : len(first.labels)] = first.share
    share[len(first.share) :, len(first.labels) :] = second.share
    return AxisLabels((*first.labels, *second.labels), share)

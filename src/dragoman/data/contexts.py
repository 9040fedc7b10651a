"""Pairs with the pairs before them in their documents, as one example each.

    A cat sleeps. | Un chat dort.        src   A cat sleeps . <sep> It is black .
    It is black.  | Il est noir.         tgt   Un chat dort . <sep> Il est noir .     (target: 1)
                                               Il est noir .                          (target: 0)

A store has one sentence per pair, in corpus order, and the number of its document. Operations on a sentence
(BPE-dropout, noise) therefore happen before the sentences are joined.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import tee

import numpy as np

from dragoman.data.boundaries import ends_document
from dragoman.data.formats import Pair
from dragoman.data.prepared import Prepared
from dragoman.data.store import IdPair, PairStore
from dragoman.text.context import Boundaries, ContextConfig, in_context, windows
from dragoman.text.tokenizer import Tokenizer

LoadPairs = Callable[[np.ndarray], Sequence[IdPair]]


class Contexts:
    """Finds the context of each pair of a store (the preceding pairs of its document, as many as fit) and
    builds the examples."""

    def __init__(
        self, store: PairStore, context: ContextConfig, tokenizers: tuple[Tokenizer, Tokenizer]
    ) -> None:
        assert store.documents is not None, "a corpus that was prepared with a context knows its documents"
        self._context = context
        self._separators = [own.separator for own in tokenizers]
        self._opening = len(tokenizers[0].opening_of(store.src(0))) if len(store) else 0
        src, tgt = (own.astype(np.int64) for own in (store.src_lengths, store.tgt_lengths))
        starts = np.zeros(len(store), dtype=bool)
        starts[1:] = np.diff(store.documents) != 0
        starts[[corpus.start for corpus in store.corpora if corpus.start < len(store)]] = True
        first = np.maximum.accumulate(np.where(starts, np.arange(len(store)), 0))
        available = np.arange(len(store)) - first
        self.counts = np.zeros(len(store), dtype=np.uint8)
        """Number of preceding sentences that each pair is trained with."""
        self.src_lengths, self.tgt_lengths = src.copy(), tgt.copy()
        for back in range(1, context.source + 1):
            before = np.maximum(0, np.arange(len(store)) - back)
            more_src = self.src_lengths + src[before] - self._opening + 1
            more_tgt = self.tgt_lengths + (tgt[before] + 1 if back <= context.target else 0)
            fits = np.maximum(more_src, more_tgt) <= context.max_tokens
            taken = (available >= back) & (self.counts == back - 1) & fits
            self.counts[taken] = back
            self.src_lengths[taken], self.tgt_lengths[taken] = more_src[taken], more_tgt[taken]

    def join(self, numbers: np.ndarray, load: LoadPairs) -> list[IdPair]:
        """The examples of these pairs. `load` reads the sentences, each only once."""
        rows = [np.arange(number - int(self.counts[number]), number + 1) for number in numbers.tolist()]
        wanted = np.unique(np.concatenate(rows)) if rows else np.zeros(0, dtype=np.int64)
        known = dict(zip(wanted.tolist(), load(wanted), strict=True))
        return [self._joined([known[number] for number in row.tolist()]) for row in rows]

    def _joined(self, row: Sequence[IdPair]) -> IdPair:
        sources = [src[self._opening :] for src, _ in row]
        targets = [tgt for _, tgt in row[-1 - self._context.target :]]
        src, tgt = (
            _with_separators(own, separator)
            for own, separator in zip((sources, targets), self._separators, strict=True)
        )
        return np.concatenate([row[-1][0][: self._opening], src]), tgt


def _with_separators(sentences: Sequence[np.ndarray], separator: int | None) -> np.ndarray:
    parts = [np.asarray(part) for ids in sentences for part in ([separator], ids)]
    return np.concatenate(parts[1:])


def sources_in_context(prepared: Prepared, places: Sequence[int]) -> list[str]:
    """Sources of the validation set, with their context if the run trains with context."""
    store, decode = prepared.valid, prepared.src_tokenizer.decode
    if prepared.context is None:
        return [decode(store.src(place).tolist()) for place in places]
    counts = Contexts(store, prepared.context, (prepared.src_tokenizer, prepared.tgt_tokenizer)).counts
    rows = [range(place - int(counts[place]), place + 1) for place in places]
    texts = [[decode(store.src(number).tolist()) for number in row] for row in rows]
    return [in_context(before, text) for *before, text in texts]


def in_their_documents(
    pairs: Iterable[Pair], context: ContextConfig | None, blank: bool = False
) -> Iterator[tuple[str, str]]:
    """Both sides of each pair with the preceding sentences. `blank` pairs, which end documents, are left out
    unless requested. Without a context config all pairs are returned as they are."""
    if context is None:
        yield from ((pair.src, pair.tgt) for pair in pairs)
        return
    boundaries = Boundaries()
    numbered = ((boundaries.number(ends_document(pair), pair.document), pair) for pair in pairs)
    both = tee((number, pair) for number, pair in numbered if blank or not ends_document(pair))
    sources = windows(((number, pair.src) for number, pair in both[0]), context.source)
    targets = windows(((number, pair.tgt) for number, pair in both[1]), context.target)
    yield from zip(sources, targets, strict=True)

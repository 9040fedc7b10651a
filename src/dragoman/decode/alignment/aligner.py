"""Aligner: word alignments from the attention of a model."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.errors import UserError
from dragoman.text.incremental import offsets
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.word_boundaries import Place, words

Links = list[tuple[int, int]]
"""Source word, target word; both counted from 0."""


def pieces_by_pieces(weights: np.ndarray, when_read: bool) -> np.ndarray:
    """One row per target token, one column per source token, without `<s>` and `</s>`."""
    return weights[1:, :-1] if when_read else weights[:-1, :-1]


def members(pieces: Sequence[Place], places: Sequence[Place]) -> np.ndarray:
    """P W: the share of each token that belongs to each word."""
    share = np.zeros((len(pieces), len(places)))
    word = 0
    for number, (start, end) in enumerate(pieces):
        while word and (word == len(places) or places[word][0] > start):
            word -= 1  # tokens that share a character overlap by one
        for other in range(word, len(places)):
            if places[other][0] >= end:
                break
            word = other
            overlap = min(end, places[other][1]) - max(start, places[other][0])
            share[number, other] = max(0, overlap) / max(1, end - start)
    return share


def words_by_words(weights: np.ndarray, of_src: np.ndarray, of_tgt: np.ndarray) -> np.ndarray:
    """Attention of each target word to each source word: the mean over target tokens of the sum over source
    tokens. `of_src`, `of_tgt` are their `members`."""
    own = np.maximum(of_tgt.sum(axis=0)[:, None], 1e-9)
    return (of_tgt.T @ weights @ of_src) / own


def links_of(weights: np.ndarray) -> Links:
    """Link every target word to the source word with the highest weight. A source word without a link joins
    the target word that attends to it most, if its weight is at least half of that of the target word's own
    choice: two source words that the target writes as one."""
    if not weights.size:
        return []
    most = weights.max(axis=1)
    found = {(int(s), t) for t, s in enumerate(weights.argmax(axis=1)) if most[t] > 0}
    chosen = {s for s, _ in found}
    for s, t in enumerate(weights.argmax(axis=0)):
        if s not in chosen and weights[t, s] > 0 and 2 * weights[t, s] >= most[t]:
            found.add((s, int(t)))
    return sorted(found)


WordSplitter = Callable[[str], list[Place]]


@dataclass(frozen=True)
class AlignmentTask:
    """A pair of token id sequences to align, and the positions of the words in their texts."""

    src_ids: Sequence[int]
    tgt_ids: Sequence[int]
    src_words: Sequence[Place]
    tgt_words: Sequence[Place]
    known: tuple[tuple[int, int], ...] = ()
    """Links that are known without the model."""


class Aligner(ABC):
    """Base of the aligners of all engines; each implements how to get its attention."""

    def __init__(self, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer) -> None:
        self.src_tokenizer, self.tgt_tokenizer = src_tokenizer, tgt_tokenizer

    @abstractmethod
    def attention(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int
    ) -> Iterator[tuple[int, np.ndarray]] | None:
        """The index of each pair, in any order, and the attention of its target tokens (rows) to its source
        tokens; None if the model has no cross-attention."""

    def task(
        self, src_ids: Sequence[int], tgt_ids: Sequence[int], split: WordSplitter = words
    ) -> AlignmentTask:
        """A task for the words of both texts, as found by `split`."""
        src, tgt = self.src_tokenizer.decode(src_ids), self.tgt_tokenizer.decode(tgt_ids)
        return AlignmentTask(src_ids, tgt_ids, split(src), split(tgt))

    def weights(self, tasks: Sequence[AlignmentTask], batch_tokens: int) -> list[np.ndarray] | None:
        """For each task one row per target word and one column per source word; None if the model has no
        cross-attention."""
        found = self.attention([(task.src_ids, task.tgt_ids) for task in tasks], batch_tokens)
        if found is None:
            return None
        results: list[np.ndarray] = [np.zeros((0, 0))] * len(tasks)
        for number, weights in found:
            task = tasks[number]
            results[number] = words_by_words(
                weights,
                members(offsets(self.src_tokenizer, task.src_ids), task.src_words),
                members(offsets(self.tgt_tokenizer, task.tgt_ids), task.tgt_words),
            )
        return results

    def links(self, tasks: Sequence[AlignmentTask], batch_tokens: int) -> list[Links]:
        """The word alignment of each task."""
        weights = self.weights(tasks, batch_tokens)
        if weights is None:
            raise UserError("align: this model has no attention to its source, so it aligns nothing")
        return [sorted({*links_of(w), *task.known}) for w, task in zip(weights, tasks, strict=True)]

    def links_of_texts(self, pairs: Sequence[tuple[str, str]], batch_tokens: int) -> list[Links]:
        """Word alignments of given translations; words are separated by white space."""
        sources = self.src_tokenizer.encode_batch([src for src, _ in pairs])
        targets = self.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs])
        return self.links([self.task(*ids) for ids in zip(sources, targets, strict=True)], batch_tokens)

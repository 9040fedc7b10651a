"""Aligner: a model, its tokenizers, and the attention of it that is read as an alignment."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from dragoman.decode.align import (
    Links,
    Look,
    Pair,
    attention_in_batches,
    choose,
    links_of,
    members,
    pieces_by_pieces,
    words_by_words,
)
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.text.incremental import offsets
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.words import Place, words

Split = Callable[[str], list[Place]]


@dataclass(frozen=True)
class Task:
    """A pair of ids to align, and where in their texts the words stand that are asked about."""

    src_ids: Sequence[int]
    tgt_ids: Sequence[int]
    src_words: Sequence[Place]
    tgt_words: Sequence[Place]
    known: tuple[tuple[int, int], ...] = ()
    """Links that need no model."""


class Aligner:
    """`examples` give pairs of ids to choose the attention by. They are asked once, when it is needed."""

    def __init__(
        self, model: EncoderDecoder, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, device: torch.device
    ) -> None:
        self.model, self.device = model, device
        self.src_tokenizer, self.tgt_tokenizer = src_tokenizer, tgt_tokenizer
        self.examples: Callable[[], Sequence[Pair]] = tuple

    @functools.cached_property
    def look(self) -> Look | None:
        return choose(self.model, self.examples(), self.device)

    def task(self, src_ids: Sequence[int], tgt_ids: Sequence[int], split: Split = words) -> Task:
        """The words of both texts as `split` finds them."""
        src, tgt = self.src_tokenizer.decode(src_ids), self.tgt_tokenizer.decode(tgt_ids)
        return Task(src_ids, tgt_ids, split(src), split(tgt))

    def weights(self, tasks: Sequence[Task], batch_tokens: int) -> list[np.ndarray] | None:
        """For each task a row a target word, a column a source word; None if the model has no attention to
        its source."""
        look = self.look
        if look is None:
            return None
        results: list[np.ndarray] = [np.zeros((0, 0))] * len(tasks)
        pairs = [(task.src_ids, task.tgt_ids) for task in tasks]
        batches = attention_in_batches(self.model, pairs, self.device, batch_tokens, look.guided_head)
        for number, found in batches:
            task = tasks[number]
            results[number] = words_by_words(
                pieces_by_pieces(found[look.module], look.when_read),
                members(offsets(self.src_tokenizer, task.src_ids), task.src_words),
                members(offsets(self.tgt_tokenizer, task.tgt_ids), task.tgt_words),
            )
        return results

    def links(self, tasks: Sequence[Task], batch_tokens: int) -> list[Links]:
        """The word alignment of each task."""
        weights = self.weights(tasks, batch_tokens)
        if weights is None:
            raise UserError("align: this model has no attention to its source, so it aligns nothing")
        return [sorted({*links_of(w), *task.known}) for w, task in zip(weights, tasks, strict=True)]

    def links_of_texts(self, pairs: Sequence[tuple[str, str]], batch_tokens: int) -> list[Links]:
        """The word alignment of given translations; words are what white space separates."""
        sources = self.src_tokenizer.encode_batch([src for src, _ in pairs])
        targets = self.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs])
        return self.links([self.task(*ids) for ids in zip(sources, targets, strict=True)], batch_tokens)

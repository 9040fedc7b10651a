"""Aligner: a model, its tokenizers, and the attention of it that is read as an alignment."""

import functools
from collections.abc import Callable, Sequence

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

    def weights(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], split: Split, batch_tokens: int
    ) -> list[np.ndarray] | None:
        """For each pair of ids a row a target word, a column a source word, as `split` finds them in the
        texts; None if the model has no attention to its source."""
        look = self.look
        if look is None:
            return None
        results: list[np.ndarray] = [np.zeros((0, 0))] * len(pairs)
        for number, found in attention_in_batches(self.model, pairs, self.device, batch_tokens):
            src, tgt = pairs[number]
            pieces = pieces_by_pieces(found[look.module], look.when_read)
            of_src = self._members(self.src_tokenizer, src, split)
            results[number] = words_by_words(pieces, of_src, self._members(self.tgt_tokenizer, tgt, split))
        return results

    def links(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int) -> list[Links]:
        """The word alignment of each pair of ids; words are what white space separates."""
        weights = self.weights(pairs, words, batch_tokens)
        if weights is None:
            raise UserError("align: this model has no attention to its source, so it aligns nothing")
        return [links_of(found) for found in weights]

    def links_of_texts(self, pairs: Sequence[tuple[str, str]], batch_tokens: int) -> list[Links]:
        sources = self.src_tokenizer.encode_batch([src for src, _ in pairs])
        targets = self.tgt_tokenizer.encode_batch([tgt for _, tgt in pairs])
        return self.links(list(zip(sources, targets, strict=True)), batch_tokens)

    @staticmethod
    def _members(tokenizer: Tokenizer, ids: Sequence[int], split: Split) -> np.ndarray:
        return members(offsets(tokenizer, ids), split(tokenizer.decode(ids)))

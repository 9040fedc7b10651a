"""Vectors of text from inside any network: of every layer, for every piece or word, or one for a whole text.

    text ─ pieces ─ marks around them ─ network ─▶ layers 0 … L  (B T D each; 0 are the embeddings)

The marks are those that the network has learnt with: `<s>` and `</s>` for BERT, `</s>` after the source of an
encoder, `</s> <s>` before the text of a language model. One that reads from left to right sees nothing of
what comes after a piece. Where a language model has an encoder too, that one sees no text at all, and the
vectors are the decoder's: only its last layer can be shown.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
import torch

from dragoman.data.batch import pad
from dragoman.decode.alignment.aligner import members
from dragoman.errors import UserError
from dragoman.models import Network
from dragoman.models.base import EncoderDecoder, Reader
from dragoman.shapes import Bool, Float, Int, Tensor
from dragoman.text.incremental import offsets
from dragoman.text.tokenizer import BOS_ID, EOS_ID, Tokenizer
from dragoman.text.word_boundaries import units

PoolChoice = Literal["mean", "first", "last", "none"]
VectorUnit = Literal["piece", "word"]


@dataclass(frozen=True)
class TextVectors:
    """The vectors of one text in the chosen layers: R rows, or one if pooled."""

    rows: Float[np.ndarray, "R L D"]
    labels: tuple[str, ...]
    """The pieces or words of the rows, or the text if one row stands for all of it."""
    layers: tuple[int, ...]
    """Their numbers; 0 are the embeddings."""


class Embedder:
    def __init__(
        self,
        network: Network,
        tokenizer: Tokenizer,
        *,
        layer: int | None = -1,
        pool: str = "mean",
        by: str = "piece",
        causal: bool = False,
    ) -> None:
        """`layer` None is all of them; negative ones count from the last. `causal`: the network has learnt as
        a language model."""
        if network.abilities.counts:
            raise UserError("embed: a model that counts has no vectors; choose another run")
        for name, value, known in (("--pool", pool, PoolChoice), ("--by", by, VectorUnit)):
            if value not in get_args(known):
                raise UserError(f"{name}: expected one of {', '.join(get_args(known))}, found '{value}'")
        self.network, self.tokenizer, self.causal = network.eval(), tokenizer, causal
        self.layer, self.pool, self.by = layer, pool, by
        self.device = next(network.parameters()).device
        encoder_decoder = isinstance(network, EncoderDecoder)
        self._reads = not encoder_decoder or network.abilities.reads_in_decoder or not causal
        if causal:
            self._before, self._after = ((EOS_ID, BOS_ID) if self._reads else (BOS_ID,)), ()
        else:
            self._before, self._after = (() if encoder_decoder else (BOS_ID,)), (EOS_ID,)

    def embed(self, texts: Sequence[str], batch_tokens: int = 4096) -> list[TextVectors]:
        """The vectors in the order of the texts, independent of the batches."""
        pieces = self.tokenizer.encode_batch(texts)
        found: dict[int, TextVectors] = {}
        for numbers in _batches([len(ids) for ids in pieces], batch_tokens, self._width):
            hidden, layers = self._layers([pieces[number] for number in numbers])
            for row, number in enumerate(numbers):
                own = hidden[row, : len(pieces[number]) + self._width]
                found[number] = TextVectors(*self._chosen(texts[number], pieces[number], own), layers)
        return [found[number] for number in range(len(texts))]

    @property
    def _width(self) -> int:
        return len(self._before) + len(self._after)

    @torch.inference_mode()
    def _layers(self, rows: Sequence[Sequence[int]]) -> tuple[Float[np.ndarray, "B T L D"], tuple[int, ...]]:
        ids, mask = pad([[*self._before, *row, *self._after] for row in rows])
        ids, mask = ids.to(self.device), mask.to(self.device)
        layers = self._read(ids, mask)
        numbers = tuple(range(len(layers)))
        if self.layer is not None:
            if not -len(layers) <= self.layer < len(layers):
                raise UserError(
                    f"--layer: expected a number from 0, the embeddings, to {len(layers) - 1}, or all, found "
                    f"{self.layer}"
                )
            layers, numbers = [layers[self.layer]], (numbers[self.layer],)
        if len({layer.size(-1) for layer in layers}) > 1:
            widths = ", ".join(str(layer.size(-1)) for layer in layers)
            raise UserError(f"--layer: all layers have to be as wide, found {widths}; choose one of them")
        return torch.stack([layer.float() for layer in layers], dim=2).cpu().numpy(), numbers

    def _read(self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"]) -> list[Float[Tensor, "B T D"]]:
        if self._reads:
            return cast(Reader, self.network).read_layers(ids, mask, torch.zeros_like(ids))
        assert isinstance(self.network, EncoderDecoder), "all others read"
        nothing = ids.new_full((len(ids), 1), EOS_ID)
        memory = self.network.encode(nothing, torch.ones_like(nothing, dtype=torch.bool))
        return [self.network.decode(ids, memory)]

    def _chosen(
        self, text: str, ids: Sequence[int], hidden: Float[np.ndarray, "T L D"]
    ) -> tuple[Float[np.ndarray, "R L D"], tuple[str, ...]]:
        inner = hidden[len(self._before) : len(self._before) + len(ids)]
        if self.pool == "first":
            return hidden[:1], (text,)
        if self.pool == "last":
            return hidden[-1:], (text,)
        if self.pool == "mean":  # of the text's own pieces; an empty text has only its marks
            return (inner if len(ids) else hidden).mean(axis=0, keepdims=True), (text,)
        if self.by == "piece":
            return inner, tuple(self.tokenizer.pieces(ids))
        whole = self.tokenizer.decode(ids)
        places = units(whole)
        share = members(offsets(self.tokenizer, ids), places).T  # W P
        share = share / np.maximum(share.sum(axis=1, keepdims=True), 1e-9)
        words = np.einsum("wp,pld->wld", share, inner).astype(np.float32)
        return words, tuple(whole[start:end] for start, end in places)


def _batches(lengths: Sequence[int], batch_tokens: int, marks: int) -> Iterator[list[int]]:
    """Numbers of texts of like lengths, as many as the budget has room for, padding counted."""
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * (lengths[number] + marks) > batch_tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch

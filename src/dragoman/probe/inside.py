"""One pair from inside: every attention of any model, with the tokens that its rows and columns stand for.

    pair ─ encode, decode under a recording ─▶ weights H Q M of each attention, log p of each target piece

    encoder   source pieces × source pieces
    decoder   what has been read × what has been read; cells ahead are hidden
    cross     what has been read × source pieces
    copy      what has been read × source pieces that can be copied             models with `copy`
    joint     what has been read × source pieces and what has been read     counting models with skips, GPT,
                                                                            and the pieces of UniLM

A hypothesis of a search is such a pair: run through `decode` it has the weights that it had when it was
found, whatever the search and its kernels were.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from dragoman.data.batch import Device, collate
from dragoman.decode.search.scorer import log_probs
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.probe.record import record
from dragoman.shapes import Float, Tensor
from dragoman.text.tokenizer import Tokenizer

AttentionKind = Literal["encoder", "decoder", "cross", "joint", "copy"]
LikelyPieces = tuple[tuple[int, float], ...]
"""Pieces and their log-probabilities, best first."""


@dataclass(frozen=True)
class Seen:
    """The weights of one attention."""

    module: str
    kind: AttentionKind
    layer: int
    """Among those of its kind, from 1."""
    weights: Float[Tensor, "H Q M"]

    @property
    def mean(self) -> Float[Tensor, "Q M"]:
        return self.weights.mean(dim=0)


@dataclass(frozen=True)
class Inside:
    src_ids: tuple[int, ...]
    """Source ids with `</s>`: the columns of cross-attention."""
    tgt_ids: tuple[int, ...]
    """Target ids with `</s>`: what each position predicts."""
    src: tuple[str, ...]
    read: tuple[str, ...]
    """`<s>` and all target pieces: what each position of the decoder has read last."""
    written: tuple[str, ...]
    """All target pieces and `</s>`: what each position predicts."""
    token_scores: tuple[float, ...]
    alternatives: tuple[LikelyPieces, ...]
    """The most probable pieces at each position."""
    attentions: tuple[Seen, ...]

    def of(self, kind: AttentionKind) -> tuple[Seen, ...]:
        """The attentions of one kind, from the first layer to the last."""
        return tuple(seen for seen in self.attentions if seen.kind == kind)

    def named(self, module: str) -> Seen:
        for seen in self.attentions:
            if seen.module == module:
                return seen
        known = ", ".join(seen.module for seen in self.attentions) or "none at all"
        raise UserError(f"attention: this model has no '{module}'; it has {known}")

    @property
    def steps(self) -> tuple[str, ...]:
        """Each position of the decoder as «read › written». Its weights may belong to either of the two, so
        every picture names both."""
        return tuple(f"{read} › {written}" for read, written in zip(self.read, self.written, strict=True))

    def labels(self, kind: AttentionKind) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Labels of the rows and columns for this kind of attention."""
        if kind == "encoder":
            return self.src, self.src
        columns = {
            "decoder": self.read,
            "cross": self.src,
            "copy": self.src,
            "joint": (*self.src, *self.read),
        }
        return self.steps, columns[kind]

    @property
    def log_prob(self) -> float:
        return sum(self.token_scores)


def look_inside(
    model: EncoderDecoder,
    src_ids: Sequence[int],
    tgt_ids: Sequence[int],
    tokenizers: tuple[Tokenizer, Tokenizer] | None = None,
    device: Device = None,
    num_alternatives: int = 5,
) -> Inside:
    """Record a given pair of ids, both without `</s>`. Without tokenizers, tokens are shown as numbers."""
    batch = collate([(src_ids, tgt_ids)], device)
    with torch.no_grad(), record(model) as calls:
        hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)
    with torch.no_grad():
        scores = log_probs(model.project(hidden[0]))  # T V
        own = scores.gather(1, batch.tgt_out[0][:, None])[:, 0]
        best = scores.topk(min(num_alternatives, scores.size(1)), dim=1)
    kinds: dict[AttentionKind, int] = {}
    attentions: list[Seen] = []
    modules = dict(model.named_modules())
    for name, parts in calls.items():
        weights = torch.cat(parts, dim=2)[0].cpu()  # a decoder that goes one by one calls once a position
        src, both = batch.src_ids.size(1), batch.src_ids.size(1) + batch.tgt_in.size(1)
        if weights.size(1) >= both:  # it has read the source too; what UniLM adds behind them are blanks
            weights = weights[:, src:both, :both]
        kind = _kind(name, modules[name], weights)
        kinds[kind] = kinds.get(kind, 0) + 1
        attentions.append(Seen(name, kind, kinds[kind], weights))
    ids = [batch.src_ids[0].tolist(), batch.tgt_in[0].tolist(), batch.tgt_out[0].tolist()]
    src, read, written = (_names(row, side, tokenizers) for row, side in zip(ids, (0, 1, 1), strict=True))
    alternatives = tuple(
        tuple(zip(pieces, values, strict=True))
        for pieces, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    )
    return Inside(
        src_ids=tuple(ids[0]),
        tgt_ids=tuple(ids[2]),
        src=src,
        read=read,
        written=written,
        token_scores=tuple(own.tolist()),
        alternatives=alternatives,
        attentions=tuple(attentions),
    )


def inside_texts(translator: Translator, source: str, target: str) -> Inside:
    """Record a given translation of a text."""
    src, tgt = translator.src_tokenizer, translator.tgt_tokenizer
    return look_inside(
        translator.model, src.encode(source), tgt.encode(target), (src, tgt), translator.device
    )


def inside_hypothesis(translator: Translator, source: str, found: Hypothesis) -> Inside:
    """Record a hypothesis of any search, with exactly its tokens."""
    src, tgt = translator.src_tokenizer, translator.tgt_tokenizer
    return look_inside(translator.model, src.encode(source), found.tokens, (src, tgt), translator.device)


def _kind(name: str, module: nn.Module, weights: Float[Tensor, "H Q M"]) -> AttentionKind:
    if getattr(module, "looks_at_memory", False):
        return "cross"
    if getattr(module, "points_at_source", False):
        return "copy"
    if name.startswith("encoder."):
        return "encoder"
    return "decoder" if weights.size(1) == weights.size(2) else "joint"


def _names(ids: Sequence[int], side: int, tokenizers: tuple[Tokenizer, Tokenizer] | None) -> tuple[str, ...]:
    return tuple(map(str, ids)) if tokenizers is None else tuple(tokenizers[side].pieces(ids))

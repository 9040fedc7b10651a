"""Word alignment from cross-attention.

    pairs ─ decode under a tap ─▶ weights of every cross-attention   T S, mean over heads
          ─ choose one (`Look`) ─▶ tokens × tokens
          ─ merge tokens ───────▶ words × words ─ links ─▶ 0-0 1-2 …

Which attention aligns best differs from model to model, and so does its step. A position of a decoder reads
y[t−1] and predicts y[t]: its weights may belong to the word that is predicted (Bahdanau et al.
2015) or, in most layers of a Transformer, to the word that has just been read (Chen et al. 2020, «Accurate
Word Alignment Induction from Neural Machine Translation», section 3). `best_look` tries both for each layer.

This needs no gold alignment: a good alignment links the same words consistently. Each candidate links the
tokens of some pairs; the one whose links predict target tokens best from source tokens is used. The
probability is that of a lexicon counted from the links, as in IBM model 1 after one hard step, with each link
excluded from the counts that predict it:

    score = mean of log p(t | s),   p(t | s) = (c(s, t) − 1 + p(t)) / (c(s) − 1 + 1)
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from dragoman.data.batch import Device, IdSequence, collate
from dragoman.decode.alignment.aligner import Aligner, pieces_by_pieces
from dragoman.decode.search.job import by_length
from dragoman.models.base import AlignmentGuide, EncoderDecoder
from dragoman.nn.attention_kernels import open_tap
from dragoman.shapes import Tensor
from dragoman.text.tokenizer import Tokenizer

SequencePair = tuple[IdSequence, IdSequence]


@dataclass(frozen=True, order=True)
class Look:
    """An attention by the name of its module, and the step that aligns a word: the one that predicts the
    word, or the next one, which reads it."""

    module: str
    when_read: bool
    guided_head: int | None = None
    """The head that was trained to align; None if all heads are averaged."""

    def __str__(self) -> str:
        heads = "mean of its heads" if self.guided_head is None else f"guided head {self.guided_head + 1}"
        return f"{self.module}, {heads}, when a word is {'read' if self.when_read else 'predicted'}"


def guided_look(model: EncoderDecoder, guide: AlignmentGuide) -> Look:
    """The alignment head of a model that was trained with guided alignment."""
    return Look(guide.find(model)[0], guide.step == "read", guide.head)


def source_attention(
    model: EncoderDecoder, pairs: Sequence[SequencePair], device: Device = None, head: int | None = None
) -> dict[str, list[np.ndarray]]:
    """The weights of every cross-attention for each pair: one row for `<s>` and each target token as the
    decoder reads them, one column for each source token and `</s>`. Of one head (attentions with fewer heads
    are left out), or the mean of all.

    The source is padded until it is longer than the target. Then an attention with that many columns is a
    cross-attention, whatever the model.
    """
    batch = collate(pairs, device)
    room = max(0, batch.tgt_in.size(1) + 2 - batch.src_ids.size(1))
    src_ids = F.pad(batch.src_ids, (0, room), value=model.vocab.pad_id)
    src_mask = F.pad(batch.src_mask, (0, room), value=False)
    names = {module: name for name, module in model.named_modules()}
    seen: dict[str, list[Tensor]] = {}

    def keep(module: torch.nn.Module, weights: Tensor) -> None:
        if getattr(module, "points_at_source", False):  # it looks only where something can be copied
            return
        if head is not None and head >= weights.size(1):
            return
        if module in names and len(weights) == len(src_ids) and weights.size(-1) == src_ids.size(1):
            shown = weights.mean(dim=1) if head is None else weights[:, head]  # B Q S
            seen.setdefault(names[module], []).append(shown)

    with torch.inference_mode():
        memory = model.encode(src_ids, src_mask)
        with open_tap(keep):
            model.decode(batch.tgt_in, memory)
    whole = {name: torch.cat(calls, dim=1).float().cpu().numpy() for name, calls in seen.items()}
    rows = batch.tgt_in.size(1)
    return {
        name: [w[i, : len(tgt) + 1, : len(src) + 1] for i, (src, tgt) in enumerate(pairs)]
        for name, w in whole.items()
        if w.shape[1] == rows
    }


def attention_in_batches(
    model: EncoderDecoder,
    pairs: Sequence[SequencePair],
    device: Device,
    batch_tokens: int,
    head: int | None = None,
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """The index of each pair and its weights, in order of length."""
    lengths = [max(len(src), len(tgt)) + 1 for src, tgt in pairs]
    for numbers in by_length(lengths, batch_tokens):
        found = source_attention(model, [pairs[number] for number in numbers], device, head)
        for place, number in enumerate(numbers):
            yield number, {name: weights[place] for name, weights in found.items()}


def best_look(
    model: EncoderDecoder, examples: Sequence[SequencePair], device: Device = None, batch_tokens: int = 2048
) -> Look | None:
    """The attention that aligns best on example pairs of ids; None if there is no cross-attention.

    Without examples it is the last layer but one, at the step that reads the word, or a decoder's only
    attention, at the step that predicts it.
    """
    links: dict[Look, list[tuple[int, int]]] = {}
    pairs = [pair for pair in examples if len(pair[0]) and len(pair[1])]
    for number, found in attention_in_batches(model, pairs, device, batch_tokens):
        src, tgt = pairs[number]
        for name, weights in found.items():
            for look in (Look(name, False), Look(name, True)):
                best = pieces_by_pieces(weights, look.when_read).argmax(axis=1)
                links.setdefault(look, []).extend(
                    (int(src[s]), int(t)) for s, t in zip(best, tgt, strict=True)
                )
    if links:
        return max(links, key=lambda look: lexical_score(links[look]))
    names = list(source_attention(model, [([model.vocab.eos_id], [model.vocab.eos_id])], device))
    return Look(names[max(0, len(names) - 2)], len(names) > 1) if names else None


def lexical_score(links: Sequence[tuple[int, int]]) -> float:
    """Mean log-probability of the target tokens under a lexicon counted from all other links."""
    joint, sources, targets = Counter(links), Counter(s for s, _ in links), Counter(t for _, t in links)
    total = 0.0
    for (source, target), count in joint.items():
        prior = targets[target] / len(links)
        total += count * math.log((count - 1 + prior) / sources[source])
    return total / len(links)


class ModelAligner(Aligner):
    """The aligner of a PyTorch model. `examples` returns pairs of ids for choosing the attention. It is
    called once, when needed."""

    def __init__(
        self,
        model: EncoderDecoder,
        src_tokenizer: Tokenizer,
        tgt_tokenizer: Tokenizer,
        device: torch.device,
        examples: Callable[[], Sequence[SequencePair]] = tuple,
    ) -> None:
        super().__init__(src_tokenizer, tgt_tokenizer)
        self.model, self.device, self.examples = model, device, examples

    @functools.cached_property
    def look(self) -> Look | None:
        return best_look(self.model, self.examples(), self.device)

    def attention(
        self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]], batch_tokens: int
    ) -> Iterator[tuple[int, np.ndarray]] | None:
        look = self.look
        if look is None:
            return None
        found = attention_in_batches(self.model, pairs, self.device, batch_tokens, look.guided_head)
        return ((number, pieces_by_pieces(weights[look.module], look.when_read)) for number, weights in found)

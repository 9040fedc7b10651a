"""One text in a network that only reads: its attention, what it guesses at every place, what it says of it.

BERT          p(piece | all others) of each piece, hidden in turn
ELMo          p(piece | left), p(piece | right)
classifiers   probabilities of the labels, and what each piece contributes to the first of them: integrated
              gradients (Sundararajan et al. 2017, equation 1, baseline 0) of log p(label)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import nn

from dragoman.data.batch import TaskBatch
from dragoman.data.labelled.example import Example
from dragoman.data.labelled.examples import Labelled, collate_rows
from dragoman.decode.predict import Prediction, Predictor
from dragoman.errors import UserError
from dragoman.models import Network
from dragoman.models.base import EncoderDecoder
from dragoman.probe.attribution import in_place_of
from dragoman.probe.guess import BothWaysGuesser, Guesser
from dragoman.probe.inside import Inside, LikelyPieces, Seen
from dragoman.probe.record import record
from dragoman.probe.words import words_of
from dragoman.shapes import Tensor
from dragoman.text.tokenizer import BOS_ID, EOS_ID, Tokenizer

ALTERNATIVES = 5
_ROWS = 64  # texts with one piece hidden that are read at once


@dataclass(frozen=True)
class Read:
    text: str
    seen: Inside
    """Its source is the text with special pieces; `written` and the scores are those of predicted pieces."""
    said: Prediction | None = None
    """The prediction of a fine-tuned network."""
    units: tuple[str, ...] = ()
    """The words of a text, or the pieces of two, with marks."""
    shares: tuple[float, ...] = ()
    """The contribution of each unit to log p of the prediction."""
    sides: tuple[tuple[float, float], ...] = ()
    """log p of each piece from the left and from the right, where the network reads both ways."""
    word_labels: tuple[dict[str, float], ...] = ()
    """tag: the probabilities of the labels of each word."""
    log_prob: float | None = None
    """Log-probability of the prediction, if it has one; for tags, their sum."""

    def about(self, said: Prediction) -> "Read":
        """The result for another possible prediction."""
        if self.word_labels and isinstance(said.value, tuple):
            shares = [
                labels[value] for labels, value in zip(self.word_labels, said.value, strict=True) if labels
            ]
            return replace(self, log_prob=sum(map(_log, shares)))
        if self.said is None or not self.said.probabilities:
            return self
        return replace(self, log_prob=_log(self.said.probabilities[str(said.value)]))


def read_text(guesser: Guesser, text: str, ids: Sequence[int]) -> Read:
    """Read a text with a pre-trained network: every piece is predicted from the others."""
    tokenizer, network = guesser.tokenizer, guesser.network
    ids = list(ids)
    if not ids:
        raise UserError("explain: the text is blank")
    scores, best, sides = [], [], []
    for start in range(0, len(ids), _ROWS):
        places = list(range(start, min(start + _ROWS, len(ids))))
        found = guesser.guess([ids] * len(places), places)
        scores += [found[row, ids[place]].item() for row, place in enumerate(places)]
        top = found.topk(min(ALTERNATIVES, found.size(1)), dim=1)
        best += [
            tuple(zip(pieces, values, strict=True))
            for pieces, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ]
        if isinstance(guesser, BothWaysGuesser):
            left, right = guesser.sides([ids] * len(places), places)
            own = [ids[place] for place in places]
            rows = range(len(places))
            sides += [(left[row, own[row]].item(), right[row, own[row]].item()) for row in rows]
    marked = [BOS_ID, *ids, EOS_ID]
    device = next(network.parameters()).device
    batch = torch.tensor([marked], device=device)
    with torch.inference_mode(), record(network) as calls:
        network.read(batch, torch.ones_like(batch, dtype=torch.bool), torch.zeros_like(batch))
    seen = _inside(marked, tokenizer, calls, ids, scores, best)
    return Read(text, seen, sides=tuple(sides))


def read_example(predictor: Predictor, texts: Sequence[str], steps: int = 64) -> Read:
    """Read one or two texts with a fine-tuned network: its prediction, and attributions."""
    task, tokenizer = predictor.task, predictor.tokenizer
    example = Example(tuple(texts), None, "the text")
    item = Labelled([example], task, tokenizer).items[0]
    batch = collate_rows([item], task).to(predictor.device)
    said = predictor.predict([example])[0]
    with torch.inference_mode(), record(predictor.model) as calls:
        scores = predictor.model(batch)
    marked = item.rows[0].ids.tolist()
    seen = _inside(marked, tokenizer, {name: [parts[0][:1]] for name, parts in calls.items()})
    found = Read(" ".join(texts), seen, said=said)
    if task.kind == "tag":
        found = replace(found, word_labels=_word_labels(len(texts), item.words, scores, task.labels))
    found = found.about(said)
    if task.kind not in ("classify", "pair") or len(item.rows) > 1 or not steps:
        return found
    shares = contributions(predictor, batch, task.labels.index(str(said.value)), steps)
    if len(texts) > 1:
        return replace(found, units=seen.src, shares=tuple(shares.tolist()))
    words = words_of(marked, tokenizer)
    return replace(found, units=words.labels, shares=tuple((words.share.T @ shares).tolist()))


def _word_labels(
    count: int, words: Sequence[int], scores: Tensor, labels: Sequence[str]
) -> tuple[dict[str, float], ...]:
    """The label of every word; empty for a word without pieces or beyond the maximum length."""
    rows = dict(zip(words, scores.float().softmax(dim=-1).tolist(), strict=True))
    return tuple(dict(zip(labels, rows[word], strict=True)) if word in rows else {} for word in range(count))


def _log(share: float) -> float:
    return math.log(share) if share > 0 else -math.inf


def contributions(predictor: Predictor, batch: TaskBatch, label: int, steps: int) -> np.ndarray:
    """Integrated gradients of log p(label) by the embeddings of one row."""
    model = predictor.model
    embedding = _embedding(model.network)  # type: ignore[arg-type]
    with torch.no_grad():
        vectors = embedding(batch.ids)
    total = torch.zeros_like(vectors)
    points, weights = np.polynomial.legendre.leggauss(steps)
    for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
        scaled = (vectors * float(point)).requires_grad_()
        with (
            torch.enable_grad(),
            torch.backends.cudnn.flags(enabled=False),
            in_place_of([embedding], [scaled]),
        ):
            score = model(batch).log_softmax(dim=-1)[0, label]
            total += weight * torch.autograd.grad(score, scaled)[0]
    return (vectors * total).sum(dim=-1)[0].double().cpu().numpy()


def _embedding(network: Network) -> nn.Module:
    half: object = network
    if isinstance(network, EncoderDecoder):
        half = network.decoder if network.abilities.reads_in_decoder else network.encoder
    found = getattr(half, "embedding", None)
    if not isinstance(found, nn.Module):
        raise UserError("explain: this model has no embeddings that a gradient could be taken by")
    return found


def _inside(
    marked: Sequence[int],
    tokenizer: Tokenizer,
    calls: dict[str, list[Tensor]],
    ids: Sequence[int] = (),
    scores: Sequence[float] = (),
    best: Sequence[LikelyPieces] = (),
) -> Inside:
    attentions = []
    for name, parts in calls.items():
        weights = parts[0][0].float().cpu()
        if weights.size(1) == weights.size(2) == len(marked):
            attentions.append(Seen(name, "encoder", len(attentions) + 1, weights))
    pieces = tuple(tokenizer.pieces(marked))
    return Inside(
        src_ids=tuple(marked),
        tgt_ids=tuple(ids),
        src=pieces,
        read=(),
        written=tuple(tokenizer.pieces(ids)),
        token_scores=tuple(scores),
        alternatives=tuple(best),
        attentions=tuple(attentions),
    )


def reading_table(read: Read, tokenizer: Tokenizer) -> list[str]:
    """The results as lines for a terminal."""
    if read.said is not None:
        return [*_said(read.said), *_shares(read)]
    width = max(map(len, read.seen.written))
    lines = []
    for number, (piece, score) in enumerate(zip(read.seen.written, read.seen.token_scores, strict=True)):
        line = f"{piece.ljust(width)}  {100 * math.exp(score):6.2f}%"
        if read.sides:
            left, right = (100 * math.exp(side) for side in read.sides[number])
            line += f"  left {left:6.2f}%  right {right:6.2f}%"
        others = [
            f"{tokenizer.pieces([token])[0]} {100 * math.exp(own):.1f}%"
            for token, own in read.seen.alternatives[number][:3]
        ]
        lines.append(f"{line}  best: {', '.join(others)}")
    return lines


def _said(said: Prediction) -> list[str]:
    if isinstance(said.value, tuple):
        return [" ".join(said.value)]
    if said.probabilities:
        ranked = sorted(said.probabilities.items(), key=lambda each: -each[1])
        width = max(len(name) for name, _ in ranked)
        return [f"{name.ljust(width)}  {100 * share:6.2f}%" for name, share in ranked]
    return [f"{said.value}"] if said.confidence is None else [f"{said.value}  {100 * said.confidence:.2f}%"]


def _shares(read: Read) -> list[str]:
    if not read.shares or read.said is None:
        return []
    width = max(map(len, read.units))
    lines = [f"contribution to log p({read.said.value}), by integrated gradients:"]
    for unit, share in zip(read.units, read.shares, strict=True):
        lines.append(f"  {unit.ljust(width)}  {'−' if share < 0 else '+'}{abs(share):.3f}")
    return lines


def attention_of(read: Read, layer: int | None) -> Seen:
    """The attention of a layer, counted from 1; by default the last."""
    found = read.seen.attentions
    if not found:
        raise UserError("explain: this model has no attention to show")
    if layer is not None and layer > len(found):
        raise UserError(f"--layer {layer}: there are {len(found)}, numbered from 1")
    return found[(layer or len(found)) - 1]

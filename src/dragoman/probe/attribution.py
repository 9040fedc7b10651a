"""What each input piece contributes to each output piece, by gradients of log p(y_t | y_<t, x).

    gradient               ‖∂ log p / ∂e_j‖                            Simonyan et al. 2014
    gradient_x_input       e_j · ∂ log p / ∂e_j                        Denil et al. 2014
    integrated_gradients   e_j · mean over a in (0, 1) of ∂ log p(a e) / ∂e_j      Sundararajan et al. 2017,
                                                                                   equation 1, baseline 0

e_j are the embeddings of the source and of the target that has been read, before positions are added.
Integrated gradients are complete: a row sums to log p(y_t) less what it is when all embeddings are 0.

All positions are asked at once: row t of a batch of T copies is differentiated at position t.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import nn

from dragoman.data.batch import Device, PairBatch, collate
from dragoman.decode.search.scorer import log_probs
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.linear import TokenEmbedding
from dragoman.probe.hooks import standing
from dragoman.shapes import Float, Tensor

AttributionMethod = Literal["gradient", "gradient_x_input", "integrated_gradients"]


@dataclass(frozen=True)
class Attribution:
    source: np.ndarray
    """T S: what is predicted, source pieces with `</s>`."""
    target: np.ndarray
    """T T: what is predicted, `<s>` and target pieces that were read; 0 ahead."""
    token_scores: np.ndarray
    """log p(y_t | y_<t, x)"""
    baseline: np.ndarray
    """The output with all embeddings set to 0."""

    @property
    def gap(self) -> float:
        """The largest completeness error of integrated gradients; more steps reduce it."""
        sums = self.source.sum(axis=1) + self.target.sum(axis=1)
        return float(np.abs(sums - (self.token_scores - self.baseline)).max())


def mean_by_place(
    model: EncoderDecoder,
    pairs: Sequence[tuple[Sequence[int], Sequence[int]]],
    parts: int = 10,
    device: Device = None,
) -> np.ndarray:
    """How the gradient of a target piece is distributed over the source, averaged over pairs: parts of the
    target × parts of the source. A row sums to 1."""
    total, counts = np.zeros((parts, parts)), np.zeros(parts)
    for src_ids, tgt_ids in pairs:
        norms = attribute(model, src_ids, tgt_ids, "gradient", device=device).source[:-1, :-1]
        shares = norms / np.maximum(norms.sum(axis=1, keepdims=True), 1e-30)
        spread = _parts(len(src_ids), parts)
        for row, share in zip(np.arange(len(tgt_ids)) * parts // len(tgt_ids), shares, strict=True):
            total[row] += share @ spread
            counts[row] += 1
    return total / np.maximum(counts, 1)[:, None]


def _parts(length: int, parts: int) -> np.ndarray:
    """length × parts: which share of each piece lies in each part of a line that they divide equally."""
    edges, marks = np.arange(length + 1) / length, np.arange(parts + 1) / parts
    left = np.maximum(edges[:-1, None], marks[None, :-1])
    right = np.minimum(edges[1:, None], marks[None, 1:])
    return np.maximum(right - left, 0) * length


def attribute(
    model: EncoderDecoder,
    src_ids: Sequence[int],
    tgt_ids: Sequence[int],
    method: AttributionMethod = "integrated_gradients",
    steps: int = 64,
    device: Device = None,
) -> Attribution:
    """Attributions for a given pair of ids. `steps` is the number of Gauss–Legendre points: few are enough
    for smooth models; ReLU needs hundreds for errors below 0.01. See `gap`."""
    if steps < 1:
        raise UserError(f"steps: expected at least 1, found {steps}")
    batch = collate([(src_ids, tgt_ids)] * (len(tgt_ids) + 1), device)
    embeddings = _embeddings(model)
    with torch.no_grad():
        source, target = embeddings[0](batch.src_ids), embeddings[1](batch.tgt_in)

    def at(share: float) -> tuple[Tensor, Tensor, Tensor]:
        """log p of each piece, and its gradients where the embeddings are multiplied by `share`."""
        scaled = [(part * share).requires_grad_() for part in (source, target)]
        with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False), in_place_of(embeddings, scaled):
            scores = _diagonal(model, batch)
            of_source, of_target = torch.autograd.grad(scores.sum(), scaled)
        return scores.detach(), of_source, of_target

    scores, of_source, of_target = at(1.0)
    baseline = at(0.0)[0]
    if method == "integrated_gradients":
        of_source, of_target = torch.zeros_like(source), torch.zeros_like(target)
        points, weights = np.polynomial.legendre.leggauss(steps)
        for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
            _, on_source, on_target = at(float(point))
            of_source, of_target = of_source + weight * on_source, of_target + weight * on_target
    if method == "gradient":
        found = [of_source.norm(dim=-1), of_target.norm(dim=-1)]
    else:
        found = [(source * of_source).sum(dim=-1), (target * of_target).sum(dim=-1)]
    return Attribution(*(part.double().cpu().numpy() for part in (*found, scores, baseline)))


def _embeddings(model: EncoderDecoder) -> tuple[TokenEmbedding, TokenEmbedding]:
    found = [getattr(half, "embedding", None) for half in (model.encoder, model.decoder)]
    source, target = found
    if not isinstance(source, TokenEmbedding) or not isinstance(target, TokenEmbedding):
        raise UserError("attribution: this model has no embeddings that a gradient could be taken by")
    return source, target


def _diagonal(model: EncoderDecoder, batch: PairBatch) -> Float[Tensor, "T"]:
    """log p of piece t in row t."""
    hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)
    rows = torch.arange(len(hidden), device=hidden.device)
    scores = log_probs(model.project(hidden[rows, rows]))
    return scores[rows, batch.tgt_out[rows, rows]]


@contextmanager
def in_place_of(embeddings: Sequence[nn.Module], vectors: Sequence[Tensor]) -> Iterator[None]:
    """Inside the `with` block the embeddings give these vectors, whatever they are asked."""
    hooks = [
        module.register_forward_hook(lambda _module, _inputs, _output, given=given: given)
        for module, given in zip(embeddings, vectors, strict=True)
    ]
    with standing(hooks):
        yield

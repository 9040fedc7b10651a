"""Guided alignment: its loss by hand, what its gradient reaches, and every model that attends."""

import dataclasses

import numpy as np
import pytest
import torch

from battery.models import CASES, make
from dragoman.data.batch import PairBatch, PieceLinks, collate
from dragoman.errors import UserError
from dragoman.learning.cross_entropy import CrossEntropy, GuidedAlignment, alignment_loss
from dragoman.models import build_model
from dragoman.models.base import AlignmentGuide, EncoderDecoder, Vocab, source_attentions
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.attention_kernels import open_tap

PAIRS = [([3, 4, 5], [6, 7, 8, 9]), ([5, 6], [4]), ([7, 8], [3, 4])]
CELLS = [(0, 0, 1, 1.0), (0, 2, 0, 0.5), (0, 2, 2, 0.5), (0, 3, 2, 1.0), (1, 0, 0, 1.0)]
"""Row, target piece, source piece, weight; the last pair has no links."""


def guided_batch(cells: list[tuple[int, int, int, float]]) -> PairBatch:
    numbers = np.array(cells, dtype=np.float64).reshape(-1, 4)
    rows, tgt, src = (torch.from_numpy(numbers[:, k].astype(np.int64)) for k in range(3))
    weights = torch.from_numpy(numbers[:, 3].astype(np.float32))
    return dataclasses.replace(collate(PAIRS), links=PieceLinks(rows, tgt, src, weights))


def test_the_loss_by_hand() -> None:
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(3, 5, 4, generator=generator, dtype=torch.float64).softmax(dim=-1)
    links = guided_batch(CELLS).links
    assert links is not None
    for shift in (0, 1):
        expected = -sum(g * np.log(weights[row, t + shift, s].item()) for row, t, s, g in CELLS)
        assert alignment_loss(weights, links, bool(shift)).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("step", ["read", "predict"])
def test_the_objective_is_the_other_one_and_the_weighted_loss(step: str) -> None:
    model, batch = make("transformer"), guided_batch(CELLS)
    assert batch.links is not None
    plain = CrossEntropy(0.1)(model, batch)
    guide = AlignmentGuide(0.3, layer=1, head=2, step=step)  # type: ignore[arg-type]
    seen: list[torch.Tensor] = []
    with open_tap(lambda _, weights: seen.append(weights), only=model.decoder.layers[1].cross_attention):
        model(batch.src_ids, batch.src_mask, batch.tgt_in)
    (weights,) = seen  # the tap is on one attention alone
    expected = plain.total + 0.3 * alignment_loss(weights[:, 2], batch.links, step == "read")
    found = GuidedAlignment(CrossEntropy(0.1), guide, model)(model, batch, 1)
    assert found.total.item() == pytest.approx(expected.item(), rel=1e-9)
    assert (found.nll.item(), found.count) == (pytest.approx(plain.nll.item(), rel=1e-9), plain.count)
    none = GuidedAlignment(CrossEntropy(0.1), guide, model)(model, guided_batch([]), 1)
    assert none.total.item() == pytest.approx(plain.total.item(), rel=1e-9)


def test_the_gradient_reaches_what_leads_to_the_head_and_nothing_else() -> None:
    torch.manual_seed(0)
    config = TransformerConfig(num_layers=3, model_dim=8, num_heads=2, ff_dim=12, dropout=0.0)
    model = build_model("transformer", config, Vocab(13, 13, shared=False)).double()
    batch = guided_batch(CELLS)
    guided = GuidedAlignment(CrossEntropy(), AlignmentGuide(1.0, head=1), model)
    (guided(model, batch, 1).total - CrossEntropy()(model, batch).total).backward()
    reached = {
        name for name, p in model.named_parameters() if p.grad is not None and p.grad.abs().max() > 1e-12
    }
    assert not {name for name in reached if name.startswith(("projection", "decoder.layers.2"))}
    layer = model.decoder.layers[1]
    own = {name.removeprefix("decoder.layers.1.") for name in reached if name.startswith("decoder.layers.1.")}
    assert not {name for name in own if name.startswith(("feedforward", "ff_", "cross_attention.out"))}
    # of the head's own attention: the queries and keys of head 1, no values; a key's bias changes no softmax
    query, key_value = layer.cross_attention.query.weight.grad, layer.cross_attention.key_value.weight.grad
    nothing = 1e-12  # what is left of a difference of two gradients
    assert query[4:].abs().min() > nothing > query[:4].abs().max()
    assert key_value[4:8].abs().min() > nothing > max(key_value[:4].abs().max(), key_value[8:].abs().max())
    for part in ("encoder.layers.2.feedforward", "decoder.layers.0.feedforward", "decoder.embedding"):
        assert any(name.startswith(part) for name in reached), part


@pytest.mark.parametrize("name", [name for name in CASES if source_attentions(make(name))])
def test_every_model_that_attends_can_be_guided(name: str) -> None:
    """A step down the guided loss alone makes the head look more where it is told."""
    model, batch = make(name), guided_batch(CELLS)
    guided = GuidedAlignment(CrossEntropy(), AlignmentGuide(1.0), model)
    before = guided_only(guided, model, batch)
    before.backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= 1e-4 * parameter.grad
    assert guided_only(guided, model, batch).item() < before.item()


def guided_only(guided: GuidedAlignment, model: EncoderDecoder, batch: PairBatch) -> torch.Tensor:
    return guided(model, batch, 1).total - guided.objective(model, batch, 1).total


def test_what_cannot_be_guided_says_so() -> None:
    with pytest.raises(UserError, match="no attention to its source"):
        AlignmentGuide(0.1).find(make("rnn-none"))
    model = make("transformer")
    with pytest.raises(UserError, match=r"layer: the model has 2 attentions to its source, found 2"):
        AlignmentGuide(0.1, layer=2).find(model)
    with pytest.raises(UserError, match=r"head: decoder\.layers\.1\.cross_attention has 4 heads.*found 4"):
        AlignmentGuide(0.1, layer=-1, head=4).find(model)
    with pytest.raises(UserError, match="weight: expected a number of 0 or more, found -1"):
        AlignmentGuide(-1.0)
    with pytest.raises(UserError, match="head: "):
        AlignmentGuide(head=-1)
    assert AlignmentGuide(0.1).find(model)[0] == "decoder.layers.0.cross_attention"

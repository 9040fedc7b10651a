"""Every head over every kind of network: shapes, padding, pooling by hand, and losses by hand."""

import math
from typing import Any

import pytest
import torch

from battery.models import CASES
from battery.models import make as make_case
from dragoman.data.batch import TaskBatch
from dragoman.data.labelled.config import VECTORS
from dragoman.errors import UserError
from dragoman.learning.labels import TaskLoss
from dragoman.learning.loss import Loss
from dragoman.models import build_network
from dragoman.models.base import Vocab
from dragoman.models.bert import BertConfig
from dragoman.models.task_heads import HEADS, HeadConfig, TaskNetwork, pool

VOCAB = Vocab(23, 23, shared=True)
ABOUT_TEXT = [kind for kind in HEADS if kind not in VECTORS]
NETWORKS = ("transformer", "transformer-t5", "lstm-bahdanau", "convs2s", "gpt-2", "bert")


def network(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    if name == "bert":
        return build_network("bert", BertConfig(2, 16, 4, 24, max_positions=16), VOCAB).double().eval()
    cases = {case: CASES[case][0] for case in CASES}
    return make_case(next(case for case in cases if case.startswith(name)))


def batch_for(kind: str, wider: int = 0) -> TaskBatch:
    ids = torch.tensor([[1, 5, 3, 2, 7, 2], [1, 3, 2, 9, 2, 0], [1, 8, 2, 0, 0, 0], [1, 4, 4, 2, 0, 0]])
    mask, segments = ids != 0, torch.tensor([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0], [0] * 6, [0] * 6])
    ids, mask, segments = (torch.nn.functional.pad(x, (0, wider)) for x in (ids, mask, segments))
    width = ids.size(1)
    targets = {
        "classify": torch.tensor([0, 2, 1, 1]),
        "pair": torch.tensor([0, 2]),
        "similarity": torch.tensor([0.0, 1.0, 0.5, 0.2]),
        "regress": torch.tensor([0.0, 1.0, 0.5, 0.2]),
        "choice": torch.tensor([2, 0]),
        "tag": torch.tensor([0, 1, 2]),
        "span": torch.tensor([[4, 4], [3, 3], [0, 0], [0, 0]]),
    }[kind]
    allowed = (segments == 1) & mask
    allowed[:, 0] = True
    return TaskBatch(
        ids=ids,
        mask=mask,
        segments=segments,
        targets=targets,
        asked=torch.tensor([1, width + 1, 3 * width + 2]) if kind == "tag" else None,
        allowed=allowed if kind == "span" else None,
        choices=torch.tensor([3, 1]) if kind == "choice" else None,
        num_tokens=len(targets),
    )


def with_head(name: str, kind: Any, **fields: Any) -> TaskNetwork:
    labels = 3 if kind in ("classify", "pair", "tag") else 1
    both = kind == "pair"
    model = TaskNetwork(network(name), HeadConfig(kind, labels, both_orders=both, **fields)).double().eval()
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.normal_()
    return model


SHAPES = {"classify": (4, 3), "pair": (2, 3), "similarity": (4,), "regress": (4,), "choice": (2, 3)}
SHAPES |= {"tag": (3, 3), "span": (4, 2, 6)}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("kind", ABOUT_TEXT)
def test_any_head_goes_on_any_network_and_padding_is_inert(name: str, kind: str) -> None:
    model = with_head(name, kind)
    with torch.no_grad():
        scores, wider = model(batch_for(kind)), model(batch_for(kind, wider=2))
    assert scores.shape == SHAPES[kind]
    torch.testing.assert_close(wider[..., : scores.size(-1)], scores, atol=1e-10, rtol=0)
    loss = TaskLoss()(model, batch_for(kind))
    loss.total.backward()
    assert isinstance(loss, Loss)
    assert math.isfinite(loss.total.item())
    assert all(parameter.grad is not None for parameter in model.head.parameters())


def test_pooling_by_hand() -> None:
    torch.manual_seed(1)
    hidden, mask = torch.randn(2, 3, 4), torch.tensor([[True, True, True], [True, True, False]])
    rows = [hidden[0], hidden[1, :2]]
    expected = {
        "first": torch.stack([row[0] for row in rows]),
        "last": torch.stack([row[-1] for row in rows]),
        "mean": torch.stack([row.mean(0) for row in rows]),
        "max": torch.stack([row.max(0).values for row in rows]),
    }
    expected["concat"] = torch.cat([expected[how] for how in ("last", "max", "mean")], dim=1)
    for how, by_hand in expected.items():
        torch.testing.assert_close(pool(hidden, mask, how), by_hand)  # type: ignore[arg-type]


def test_both_orders_are_added_up() -> None:
    model, batch = with_head("gpt-2", "pair"), batch_for("pair")
    with torch.no_grad():
        hidden = model.read(batch.ids, batch.mask, batch.segments)
        last = hidden[torch.arange(4), batch.mask.sum(1) - 1]
        expected = torch.stack([last[0] + last[1], last[2] + last[3]]) @ model.head.out.weight.t()
        torch.testing.assert_close(model(batch), expected + model.head.out.bias)


@pytest.mark.parametrize("kind", ABOUT_TEXT)
def test_losses_by_hand(kind: str) -> None:
    model, batch = with_head("bert", kind), batch_for(kind)
    scores = model(batch).detach()
    targets = batch.targets
    if kind in ("similarity", "regress"):
        expected = sum((a - b) ** 2 for a, b in zip(scores.tolist(), targets.tolist(), strict=True))
    elif kind == "span":
        said = scores.softmax(-1)
        expected = -sum(
            math.log(said[row, end, place]) / 2
            for row, places in enumerate(targets.tolist())
            for end, place in enumerate(places)
        )
    else:
        said = scores.softmax(-1)
        expected = -sum(math.log(said[row, label]) for row, label in enumerate(targets.tolist()))
    loss = TaskLoss()(model, batch)
    # targets of scores are float32, as batches are
    assert loss.total.item() == pytest.approx(expected, rel=1e-6)
    assert loss.nll.item() == loss.total.item()
    assert loss.count == len(targets)
    smoothed = TaskLoss(0.1)(model, batch)
    changes = kind in ("classify", "pair", "tag")
    assert (smoothed.total.item() != loss.total.item()) == changes
    assert smoothed.nll.item() == loss.total.item()


def test_what_has_no_pooler_says_so() -> None:
    with pytest.raises(UserError, match=r"task\.pooling: this model has no pooler; choose another one"):
        TaskNetwork(network("gpt-2"), HeadConfig("classify", 2, "pooler"))


def test_the_layers_of_a_network_are_mixed() -> None:
    """γ Σ s_j h_j by hand (Peters et al. 2018, equation 1), and how much each counts is told."""
    model, batch = with_head("bert", "tag", layers="mix"), batch_for("tag")
    mix = model.head.mix
    assert mix is not None
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.scale.fill_(0.3)
        layers = model.read_layers(batch.ids, batch.mask, batch.segments)
        parts = [math.exp(weight) for weight in (0.5, -1.0, 2.0)]
        hidden = 0.3 * sum(part / sum(parts) * layer for part, layer in zip(parts, layers, strict=True))
        words = hidden.flatten(0, 1)[batch.asked]
        torch.testing.assert_close(model(batch), words @ model.head.out.weight.t() + model.head.out.bias)
    told = model.mixture()
    assert list(told) == ["layer_0", "layer_1", "layer_2", "layers_scale"]
    assert told["layer_2"] == pytest.approx(parts[2] / sum(parts))
    assert told["layers_scale"] == pytest.approx(0.3)


def test_embeddings_alone_know_no_neighbours() -> None:
    model, batch = with_head("bert", "tag", layers="embeddings"), batch_for("tag")
    assert model.mixture() == {}
    with torch.no_grad():
        embeddings = model.read_layers(batch.ids, batch.mask, batch.segments)[0]
        words = embeddings.flatten(0, 1)[batch.asked]
        torch.testing.assert_close(model(batch), words @ model.head.out.weight.t() + model.head.out.bias)


@pytest.mark.parametrize("kind", ["tag", "classify"])
def test_a_head_reads_by_an_lstm_of_its_own(kind: str) -> None:
    """Row by row, without padding, through torch's."""
    how = {} if kind == "tag" else {"pooling": "last"}
    model, batch = with_head("gpt-2", kind, recurrent=6, layers="mix", **how), batch_for(kind)
    stack, mix = model.head.lstm, model.head.mix
    assert stack is not None and mix is not None
    with torch.no_grad():
        found = model(batch)
        hidden = mix(model.read_layers(batch.ids, batch.mask, batch.segments))
        rows = []
        for row, mask in zip(hidden, batch.mask, strict=True):
            rows.append(stack.layers[0](row[mask][None])[0][0])
        picked = [rows[0][1], rows[1][1], rows[3][2]] if kind == "tag" else [row[-1] for row in rows]
        expected = torch.stack(picked) @ model.head.out.weight.t() + model.head.out.bias
        torch.testing.assert_close(found, expected)


def test_layers_of_many_widths_are_not_mixed() -> None:
    with pytest.raises(UserError, match=r"task\.layers: mix needs layers of one width"):
        TaskNetwork(network("ulmfit"), HeadConfig("tag", 3, layers="mix"))
    with pytest.raises(UserError, match=r"task\.pooling: the pooler knows nothing of task\.recurrent"):
        TaskNetwork(network("bert"), HeadConfig("classify", 2, recurrent=4))

"""One battery for every model: what the contract promises, whatever is inside."""

import math

import pytest
import torch

from battery.models import BY_COUNTING, CASES, WITHOUT_ATTENTION, make, random_batch
from dragoman.data.batch import collate
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.nn.attention_kernels import open_tap
from until_learnt import learn_by_heart

LENGTHS = [7, 4, 1, 6]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5}


def assert_same(ours: torch.Tensor, expected: torch.Tensor) -> None:
    """To the tolerance of the type, times the greatest number where that is above 1."""
    scale = max(1.0, expected[expected.isfinite()].abs().max().item())
    torch.testing.assert_close(ours, expected, atol=TOLERANCE[expected.dtype] * scale, rtol=0)


@pytest.fixture(params=list(CASES))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[torch.float64, torch.float32], ids=["fp64", "fp32"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


def step_by_step(model, memory, tgt: torch.Tensor) -> torch.Tensor:
    state, hidden = model.start(memory), []
    for t in range(tgt.size(1)):
        out, state = model.step(tgt[:, t], state)
        hidden.append(out)
    return torch.stack(hidden, 1)


def test_shapes(name: str) -> None:
    model = make(name)
    src, mask, tgt = random_batch(model.vocab, LENGTHS, 5)
    memory = model.encode(src, mask)
    hidden = model.decode(tgt, memory)
    assert memory.hidden.shape[:2] == src.shape
    assert hidden.shape[:2] == tgt.shape
    assert model.project(hidden).shape == (*tgt.shape, model.vocab.tgt_size)
    assert torch.equal(model(src, mask, tgt), hidden)


def test_step_by_step_equals_parallel(name: str, dtype: torch.dtype) -> None:
    model = make(name, dtype)
    src, mask, tgt = random_batch(model.vocab, LENGTHS, 20)
    with torch.no_grad():
        memory = model.encode(src, mask)
        parallel, steps = model.decode(tgt, memory), step_by_step(model, memory, tgt)
    assert_same(steps, parallel)


@pytest.mark.parametrize("name", sorted(set(CASES) - BY_COUNTING))
def test_no_gradient_from_the_future(name: str) -> None:
    model = make(name)
    src, mask, tgt = random_batch(model.vocab, LENGTHS, 6)
    embedded: list[torch.Tensor] = []

    def catch(_module, _inputs, output):
        output.retain_grad()
        embedded.append(output)

    model.decoder.embedding.register_forward_hook(catch)
    hidden = model(src, mask, tgt)
    for t in range(tgt.size(1)):
        gradient = torch.autograd.grad(hidden[:, t].pow(2).sum(), embedded[0], retain_graph=True)[0]
        assert (gradient[:, t + 1 :] == 0).all()
        assert (gradient[:, : t + 1] != 0).any(dim=-1).all()


@pytest.mark.parametrize("name", sorted(BY_COUNTING))
def test_another_future_changes_no_bit(name: str) -> None:
    model = make(name)
    src, mask, tgt = random_batch(model.vocab, LENGTHS, 8)
    expected = model(src, mask, tgt)
    for t in range(1, tgt.size(1)):
        found = model(src, mask, torch.cat([tgt[:, :t], tgt[:, t:].flip(0, 1)], dim=1))
        assert torch.equal(found[:, :t], expected[:, :t])
        assert not torch.equal(found[:, t:], expected[:, t:])


def test_padding_is_inert(name: str, dtype: torch.dtype) -> None:
    """Other ids under the padding, a wider batch, even a pad row that is not a number: nothing changes."""
    model = make(name, dtype)
    src, mask, tgt = random_batch(model.vocab, LENGTHS, 5)
    with torch.no_grad():
        expected = model(src, mask, tgt)
        wider_src = torch.nn.functional.pad(src, (0, 5), value=model.vocab.pad_id)
        wider_mask = torch.nn.functional.pad(mask, (0, 5), value=False)
        assert_same(model(wider_src, wider_mask, tgt), expected)
        other_src = wider_src.masked_fill(~wider_mask, model.vocab.src_size - 1)
        assert_same(model(other_src, wider_mask, tgt), expected)
        if name not in BY_COUNTING:
            model.encoder.embedding.weight[model.vocab.pad_id] = math.nan
            model.decoder.embedding.weight[model.vocab.pad_id] = math.nan
        longer = torch.nn.functional.pad(tgt, (0, 3), value=model.vocab.pad_id)
        with_nan = model(wider_src, wider_mask, longer)[:, :5]
    assert_same(with_nan, expected)


def test_a_sentence_alone_equals_a_sentence_in_a_batch(name: str, dtype: torch.dtype) -> None:
    model = make(name, dtype)
    lengths = [1 + i % 9 for i in range(64)]
    src, mask, tgt = random_batch(model.vocab, lengths, 7)
    with torch.no_grad():
        together = model(src, mask, tgt)
        for row in range(0, 64, 7):
            n = lengths[row]
            alone = model(src[row : row + 1, :n], mask[row : row + 1, :n], tgt[row : row + 1])
            assert_same(alone[0], together[row])


def test_expand_select_and_keep_are_what_they_say(name: str) -> None:
    """Rows moved in a state go on as if their own prefix had been fed from the start."""
    model = make(name)
    src, mask, _ = random_batch(model.vocab, LENGTHS, 1)
    generator = torch.Generator().manual_seed(5)
    prefixes = torch.randint(3, model.vocab.tgt_size, (len(LENGTHS) * 3, 18), generator=generator)
    with torch.no_grad():
        memory = model.encode(src, mask)
        first = prefixes[::3, 0]
        _, state = model.step(first, model.start(memory))
        state = state.expand(3)
        rows = first.repeat_interleave(3)[:, None]  # N 1
        for t in range(1, 17):
            _, state = model.step(prefixes[:, t], state)
            rows = torch.cat([rows, prefixes[:, t : t + 1]], 1)
            picked = torch.randint(0, 3, (len(LENGTHS), 3), generator=generator)
            order = (torch.arange(len(LENGTHS))[:, None] * 3 + picked).flatten()
            state, rows = state.select(order), rows[order]
        keep = torch.tensor([3, 0])
        state, rows = state.keep(keep), rows.view(len(LENGTHS), 3, -1)[keep].flatten(0, 1)
        last = torch.full((6,), 4)
        hidden, _ = model.step(last, state)
        for i, row in enumerate(rows):
            sentence = int(keep[i // 3])
            n = LENGTHS[sentence]
            alone = model.encode(src[sentence : sentence + 1, :n], mask[sentence : sentence + 1, :n])
            expected = model.decode(torch.cat([row, last[:1]])[None], alone)[0, -1]
            torch.testing.assert_close(hidden[i], expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", sorted(set(CASES) - BY_COUNTING))
def test_gradients_reach_every_parameter(name: str) -> None:
    model = make(name).train()
    pairs = [(range(3, 3 + n), range(4, 4 + n)) for n in (5, 3, 1)]
    loss = CrossEntropy(0.1)(model, collate([(list(s), list(t)) for s, t in pairs]))
    loss.total.backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0 or parameter_name.endswith("query_key_value.bias"), (
            parameter_name
        )
    assert loss.count == 5 + 3 + 1 + 3


def test_a_tap_sees_weights_that_sum_to_one_and_changes_nothing(name: str) -> None:
    model = make(name)
    src, mask, tgt = random_batch(model.vocab, LENGTHS, 5)
    seen: list[torch.Tensor] = []
    with torch.no_grad():
        plain = model(src, mask, tgt)
        with open_tap(lambda _module, weights: seen.append(weights)):
            tapped = model(src, mask, tgt)
    assert bool(seen) == (name not in WITHOUT_ATTENTION)
    for weights in seen:
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]), atol=1e-12, rtol=0)
    torch.testing.assert_close(tapped, plain, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", sorted(BY_COUNTING))
def test_one_pair_can_be_counted_by_heart(name: str) -> None:
    model = make(name)
    assert not list(model.parameters())
    batch = collate([([3, 4, 5], [6, 7, 8, 9])] * 100)
    model.count([batch])
    loss = CrossEntropy()(model, batch)
    assert (loss.nll / loss.count).item() < 0.05


@pytest.mark.parametrize("name", sorted(set(CASES) - BY_COUNTING))
def test_one_batch_can_be_learnt_by_heart(name: str) -> None:
    """It took 20 to 210 updates, whatever the seed and the instruction set; the limit is 2000."""
    model = make(name, torch.float32, seed=3)  # eval mode: without dropout
    pairs = [([3 + i, 4 + i, 5], [6 + i, 7, 8 + i, 9]) for i in range(8)]
    batch, objective = collate(pairs), CrossEntropy()
    learn_by_heart(model, lambda: objective(model, batch), rate=5e-3)


@pytest.mark.parametrize("name", sorted(set(CASES) - BY_COUNTING))
def test_reads_layers(name: str) -> None:
    """What a head or an embedding asks for: of every layer a vector a piece, whatever is padded behind."""
    model = make(name)
    src, mask, _ = random_batch(model.vocab, LENGTHS, 5)
    wider, wider_mask = (torch.nn.functional.pad(x, (0, 3)) for x in (src, mask))
    with torch.no_grad():
        layers = model.read_layers(src, mask, torch.zeros_like(src))
        again = model.read_layers(wider, wider_mask, torch.zeros_like(wider))
        last = model.read(src, mask, torch.zeros_like(src))
    assert torch.equal(layers[-1], last)
    assert {layer.shape[:2] for layer in layers} == {src.shape}  # their widths may differ: ulmfit
    for layer, padded in zip(layers, again, strict=True):
        assert_same(padded[:, : src.size(1)][mask], layer[mask])

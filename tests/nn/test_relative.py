"""Relative positions against their definitions in NumPy, in float64."""

import math

import numpy as np
import pytest
import torch

from dragoman.nn.attention import SelfAttention, attend
from dragoman.nn.attention_kernels import open_tap
from dragoman.nn.mask import CAUSAL, EVERYTHING, Mask, padding
from dragoman.nn.positions import (
    BucketedBias,
    ClippedDistances,
    DistanceVectors,
    Rotary,
    distance_buckets,
)

LIKE = torch.zeros(1, dtype=torch.float64)
PADDED = torch.tensor([[True] * 7, [True] * 4 + [False] * 3])


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def test_buckets_of_both_sides_by_hand() -> None:
    """32 buckets, 16 a side: 0 to 7 exactly, then 8·2^(n/2) up to 128."""
    buckets = distance_buckets(32, 128, causal=False).tolist()
    bounds = [8, 12, 16, 23, 32, 46, 64, 91]  # ⌈8·16^(n/8)⌉
    behind = {d: d if d < 8 else 7 + sum(d >= bound for bound in bounds) for d in range(129)}
    assert behind[128] == 15
    for distance in range(129):
        assert buckets[128 - distance] == behind[distance], distance
        assert buckets[128 + distance] == (behind[distance] + 16 if distance else 0), distance


def test_causal_buckets_by_hand() -> None:
    """8 buckets: 0 to 3 exactly, then 4·(20/4)^(n/4) up to 20; what lies ahead is bucket 0."""
    buckets = distance_buckets(8, 20, causal=True).tolist()
    behind = [0, 1, 2, 3, 4, 4, 5, 5, 5, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7]
    assert buckets[20::-1] == behind
    assert buckets[20:] == [0] * 21


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "memory"), [(9, 9), (1, 9), (3, 9), (1, 1)])
def test_a_bucketed_bias_looks_up_every_pair(causal: bool, queries: int, memory: int) -> None:
    torch.manual_seed(0)
    module = BucketedBias(3, 16, num_buckets=8, max_distance=5, causal=causal).double()
    buckets, weight = distance_buckets(8, 5, causal).numpy(), module.weight.detach().numpy()
    expected = np.zeros((1, 3, queries, memory))
    for i in range(queries):
        for j in range(memory):
            distance = min(max(j - (memory - queries + i), -5), 5)
            expected[0, :, i, j] = weight[buckets[distance + 5]]
    bias = module(queries, memory, LIKE).bias
    assert bias is not None
    np.testing.assert_array_equal(bias.detach().numpy(), expected)


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(
    ("mask", "visible"),
    [
        (EVERYTHING, np.ones((2, 7, 7), dtype=bool)),
        (CAUSAL, np.tril(np.ones((2, 7, 7), dtype=bool))),
        (padding(PADDED), PADDED.numpy()[:, None].repeat(7, 1)),
        (
            Mask(PADDED[:, None, None], causal=True),
            np.tril(np.ones((2, 7, 7), dtype=bool)) & PADDED.numpy()[:, None],
        ),
    ],
    ids=["everything", "causal", "padding", "causal and padding"],
)
def test_a_bias_is_added_to_the_scores_in_both_paths(mask: Mask, visible: np.ndarray, scaled: bool) -> None:
    generator = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(2, 3, 7, 4, generator=generator, dtype=torch.float64) for _ in range(3))
    bias = torch.randn(1, 3, 7, 7, generator=generator, dtype=torch.float64)
    scores = q.numpy() @ k.numpy().swapaxes(-1, -2) / (2 if scaled else 1) + bias.numpy()
    weights = softmax(np.where(visible[:, None], scores, -np.inf))
    seen: list[torch.Tensor] = []
    owner = torch.nn.Identity()
    fused = attend(owner, q, k, v, mask, bias=bias, scaled=scaled)
    with open_tap(lambda _owner, shown: seen.append(shown)):
        explicit = attend(owner, q, k, v, mask, bias=bias, scaled=scaled)
    np.testing.assert_allclose(fused.numpy(), weights @ v.numpy(), atol=1e-12)
    np.testing.assert_allclose(explicit.numpy(), weights @ v.numpy(), atol=1e-12)
    np.testing.assert_allclose(seen[0].numpy(), weights, atol=1e-12)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
@pytest.mark.parametrize("base", [10000.0, 50.0])
def test_rotary_turns_pairs(layout: str, base: float) -> None:
    x = torch.randn(2, 3, 6, 8, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    expected = np.zeros(x.shape)
    for t in range(6):
        for i in range(4):
            first, second = (2 * i, 2 * i + 1) if layout == "interleaved" else (i, i + 4)
            angle = (t + 5) * base ** (-2 * i / 8)
            a, b = x[:, :, t, first].numpy(), x[:, :, t, second].numpy()
            expected[:, :, t, first] = a * math.cos(angle) - b * math.sin(angle)
            expected[:, :, t, second] = a * math.sin(angle) + b * math.cos(angle)
    rotation = Rotary(8, base, layout)(6, 11, x).rotation  # type: ignore[arg-type]
    assert rotation is not None
    np.testing.assert_allclose(rotation(x).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotary_products_depend_on_the_distance_alone_beyond_any_table(layout: str) -> None:
    generator = torch.Generator().manual_seed(2)
    q, k = (torch.randn(1, 1, 1, 8, generator=generator, dtype=torch.float64) for _ in range(2))
    rotary = Rotary(8, 10000.0, layout)  # type: ignore[arg-type]

    def product(i: int, j: int) -> float:
        turned_q, turned_k = rotary(1, i + 1, q).rotation, rotary(1, j + 1, k).rotation
        assert turned_q is not None
        assert turned_k is not None
        return (turned_q(q) * turned_k(k)).sum().item()

    for distance in (-7, 0, 3, 40):
        products = [product(i, i + distance) for i in (7, 20, 505, 900)]
        assert products == pytest.approx([products[0]] * 4, abs=1e-11)
    assert abs(product(7, 7) - product(7, 9)) > 1e-3


def test_rotary_keeps_the_type_of_what_it_turns() -> None:
    x = torch.randn(1, 2, 3, 8).bfloat16()
    rotation = Rotary(8, 10000.0, "halves")(3, 3, x).rotation
    assert rotation is not None
    assert rotation(x).dtype == torch.bfloat16


@pytest.mark.parametrize(("causal", "mask"), [(False, padding(PADDED)), (True, CAUSAL)])
@pytest.mark.parametrize("scaled", [True, False])
def test_shaw_is_the_double_loop(causal: bool, mask: Mask, scaled: bool) -> None:
    """Equations 3 and 4 with a_ij laid out for every pair."""
    torch.manual_seed(0)
    window, heads, width, value_width = 2, 2, 3, 5
    vectors = DistanceVectors(window, width, value_width, causal)
    module = SelfAttention(8, heads, width, value_width, scaled=scaled, distances=vectors).double()
    relation = ClippedDistances(window, causal)(7, 7, LIKE)
    x = torch.randn(2, 7, 8, dtype=torch.float64)
    visible = np.tril(np.ones((2, 7, 7), dtype=bool)) if causal else PADDED.numpy()[:, None].repeat(7, 1)
    numbers = {name: value.detach().numpy() for name, value in module.named_parameters()}
    projected = x.numpy() @ numbers["query_key_value.weight"].T + numbers["query_key_value.bias"]
    joined = np.zeros((2, 7, heads * value_width))
    for b in range(2):
        for h in range(heads):
            q = projected[b, :, h * width : (h + 1) * width]
            k = projected[b, :, (heads + h) * width : (heads + h + 1) * width]
            v = projected[b, :, 2 * heads * width + h * value_width :][:, :value_width]
            for i in range(7):
                seen = np.flatnonzero(visible[b, i])
                rows = [min(max(j - i, -window), window) + window for j in seen]
                scores = [
                    q[i] @ (k[j] + numbers["distances.key"][row]) for j, row in zip(seen, rows, strict=True)
                ]
                weights = softmax(np.array(scores) / (math.sqrt(width) if scaled else 1))
                mixed = sum(
                    a * (v[j] + numbers["distances.value"][row])
                    for a, j, row in zip(weights, seen, rows, strict=True)
                )
                joined[b, i, h * value_width : (h + 1) * value_width] = mixed
    expected = joined @ numbers["out.weight"].T + numbers["out.bias"]
    seen_weights: list[torch.Tensor] = []
    with torch.no_grad(), open_tap(lambda _owner, weights: seen_weights.append(weights)):
        np.testing.assert_allclose(module(x, mask, relation).numpy(), expected, atol=1e-12)
    assert seen_weights[0].shape == (2, heads, 7, 7)
    torch.testing.assert_close(seen_weights[0].sum(-1), torch.ones(2, heads, 7, dtype=torch.float64))


def test_a_causal_table_has_no_rows_for_what_lies_ahead() -> None:
    assert DistanceVectors(16, 4, 6, causal=True).key.shape == (17, 4)
    assert DistanceVectors(16, 4, 6, causal=False).value.shape == (33, 6)
    clipped = ClippedDistances(16, causal=True)(40, 40, LIKE).clipped
    assert clipped is not None
    assert clipped.max().item() == 16


@pytest.mark.parametrize("kind", ["t5", "rotary", "shaw"])
def test_cached_steps_equal_all_positions_at_once(kind: str) -> None:
    torch.manual_seed(0)
    vectors = DistanceVectors(4, 4, 4, causal=True) if kind == "shaw" else None
    module = SelfAttention(8, 2, 4, 4, distances=vectors).double().eval()
    relations = {
        "t5": BucketedBias(2, 8, 8, 12, causal=True),
        "rotary": Rotary(4, 10000.0, "interleaved"),
        "shaw": ClippedDistances(4, causal=True),
    }[kind].double()
    x = torch.randn(3, 40, 8, dtype=torch.float64)
    with torch.no_grad():
        cache, steps = module.start(3, like=x), []
        for t in range(40):
            out, cache = module.step(x[:, t : t + 1], cache, relations(1, t + 1, x))
            steps.append(out)
        whole = module(x, CAUSAL, relations(40, 40, x))
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-12, rtol=0)


def test_unscaled_attention_begins_as_scaled_attention_does() -> None:
    torch.manual_seed(0)
    scaled = SelfAttention(16, 2, 4, 4)
    torch.manual_seed(0)
    unscaled = SelfAttention(16, 2, 4, 4, scaled=False)
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(unscaled(x, EVERYTHING), scaled(x, EVERYTHING))

"""Attention against its formula written out in NumPy, in float64."""

import numpy as np
import pytest
import torch

from dragoman.nn.attention import CrossAttention, SelfAttention, attend
from dragoman.nn.attention_kernels import open_tap, weigh
from dragoman.nn.mask import CAUSAL, EVERYTHING, Mask, padding
from dragoman.nn.state import KeyValueCache


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def by_hand(q: np.ndarray, k: np.ndarray, v: np.ndarray, visible: np.ndarray) -> np.ndarray:
    out = np.zeros((*q.shape[:3], v.shape[-1]))
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                seen = np.flatnonzero(visible[b, i])
                scores = np.array([q[b, h, i] @ k[b, h, j] for j in seen]) / np.sqrt(q.shape[-1])
                out[b, h, i] = softmax(scores) @ v[b, h, seen]
    return out


def random_qkv(queries: int, memory: int, value_dim: int = 3) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(queries * 100 + memory)
    sizes = [(2, 2, queries, 5), (2, 2, memory, 5), (2, 2, memory, value_dim)]
    return [torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes]


OWNER = torch.nn.Identity()
PADDED = torch.tensor([[True] * 6, [True, True, True, True, False, False]])


@pytest.mark.parametrize("kind", ["everything", "causal", "padding", "causal and padding"])
@pytest.mark.parametrize("tapped", [False, True])
def test_attend_is_the_formula(kind: str, tapped: bool) -> None:
    q, k, v = random_qkv(6, 6)
    lower = np.tril(np.ones((6, 6), dtype=bool))[None].repeat(2, axis=0)
    columns = PADDED.numpy()[:, None].repeat(6, axis=1)
    mask, visible = {
        "everything": (EVERYTHING, np.ones((2, 6, 6), dtype=bool)),
        "causal": (CAUSAL, lower),
        "padding": (padding(PADDED), columns),
        "causal and padding": (Mask(PADDED[:, None, None], causal=True), lower & columns),
    }[kind]
    seen: list[torch.Tensor] = []
    if tapped:
        with open_tap(lambda _owner, weights: seen.append(weights)):
            out = attend(OWNER, q, k, v, mask)
        weights = seen[0].numpy()
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-12)
        assert (weights[~np.broadcast_to(visible[:, None], weights.shape)] == 0).all()
    else:
        out = attend(OWNER, q, k, v, mask)
    np.testing.assert_allclose(out.numpy(), by_hand(q.numpy(), k.numpy(), v.numpy(), visible), atol=1e-12)


def test_causal_queries_are_the_last_positions_of_a_longer_memory() -> None:
    q, k, v = random_qkv(2, 5)
    visible = np.tril(np.ones((2, 5), dtype=bool), 3)[None].repeat(2, axis=0)
    out = attend(OWNER, q, k, v, CAUSAL)
    np.testing.assert_allclose(out.numpy(), by_hand(q.numpy(), k.numpy(), v.numpy(), visible), atol=1e-12)


def test_the_textbook_numbers() -> None:
    """Scores 112 and 96 with d_k = 64 become 14 and 12, and the weights 0.88 and 0.12."""
    query = torch.zeros(1, 1, 1, 64, dtype=torch.float64)
    query[..., 0] = 1
    key = torch.zeros(1, 1, 2, 64, dtype=torch.float64)
    key[0, 0, :, 0] = torch.tensor([112.0, 96.0])
    out = attend(OWNER, query, key, torch.eye(2, dtype=torch.float64)[None, None])
    assert out.flatten().tolist() == pytest.approx([0.8808, 0.1192], abs=1e-4)


def test_self_attention_joins_heads_in_order() -> None:
    torch.manual_seed(0)
    module = SelfAttention(8, num_heads=2, head_dim=3, value_dim=5).double()
    x = torch.randn(2, 4, 8, dtype=torch.float64)
    weight, bias = (
        module.query_key_value.weight.detach().numpy(),
        module.query_key_value.bias.detach().numpy(),
    )
    projected = x.numpy() @ weight.T + bias
    q, k, v = projected[..., :6], projected[..., 6:12], projected[..., 12:]
    heads = []
    for h in range(2):
        qh, kh, vh = q[..., h * 3 : h * 3 + 3], k[..., h * 3 : h * 3 + 3], v[..., h * 5 : h * 5 + 5]
        heads.append(softmax(qh @ kh.transpose(0, 2, 1) / np.sqrt(3)) @ vh)
    expected = (
        np.concatenate(heads, -1) @ module.out.weight.detach().numpy().T + module.out.bias.detach().numpy()
    )
    np.testing.assert_allclose(module(x, EVERYTHING).detach().numpy(), expected, atol=1e-12)


def test_cached_steps_equal_all_positions_at_once() -> None:
    torch.manual_seed(0)
    module = SelfAttention(8, 2, 4, 4).double().eval()
    x = torch.randn(3, 40, 8, dtype=torch.float64)  # longer than the first buffer of the cache
    with torch.no_grad():
        cache = KeyValueCache.empty(3, 2, 4, 4, like=x)
        steps = []
        for t in range(x.size(1)):
            out, cache = module.step(x[:, t : t + 1], cache)
            steps.append(out)
        torch.testing.assert_close(torch.cat(steps, 1), module(x, CAUSAL), atol=1e-12, rtol=0)


def test_without_positions_self_attention_is_permutation_equivariant() -> None:
    torch.manual_seed(0)
    module = SelfAttention(8, 2, 4, 4).double()
    x = torch.randn(1, 6, 8, dtype=torch.float64)
    order = torch.tensor([3, 0, 5, 1, 2, 4])
    torch.testing.assert_close(module(x[:, order], EVERYTHING), module(x, EVERYTHING)[:, order])


def test_cross_attention_takes_a_memory_of_another_width() -> None:
    module = CrossAttention(8, 2, 4, 4, dropout=0.0, memory_dim=12)
    key, value = module.project_memory(torch.randn(2, 7, 12))
    assert module(torch.randn(2, 3, 8), key, value, EVERYTHING).shape == (2, 3, 8)


def test_a_single_query_has_dropout_while_it_learns() -> None:
    """The quick way of a search has none, so it is not for training."""
    torch.manual_seed(0)
    query, memory = torch.randn(1, 2, 1, 4), torch.randn(1, 2, 6, 4)
    owner = torch.nn.Identity()
    found = set()
    for seed in range(4):
        torch.manual_seed(seed)
        found.add(tuple(attend(owner, query, memory, memory, dropout=0.5).flatten().tolist()))
    assert len(found) > 1


def test_queries_at_the_end_of_a_longer_memory_see_what_came_before() -> None:
    value = torch.eye(5, dtype=torch.float64)[None, None]
    weights = weigh(torch.nn.Identity(), torch.zeros(1, 1, 2, 5, dtype=torch.float64), value, CAUSAL)
    torch.testing.assert_close(weights[0, 0].tolist(), [[0.25] * 4 + [0.0], [0.2] * 5])

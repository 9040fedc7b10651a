"""Every attention score against its formula written out in NumPy, in float64, position by position."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from dragoman.errors import UserError
from dragoman.nn.attention_kernels import open_tap
from dragoman.nn.scores import SCORES, PreparedMemory, ScoredAttention, make_score

QUERY, MEMORY, INNER, PLACES = 6, 6, 5, 9
Formula = Callable[[dict[str, np.ndarray], np.ndarray, np.ndarray, int], float]


def cosine(weights: dict[str, np.ndarray], q: np.ndarray, h: np.ndarray, _place: int) -> float:
    h = projected(weights, h)
    return np.exp(weights["log_sharpness"][0]) * (q @ h) / (np.sqrt(q @ q) * np.sqrt(h @ h))


def projected(weights: dict[str, np.ndarray], h: np.ndarray) -> np.ndarray:
    return weights["key.weight"] @ h if "key.weight" in weights else h


FORMULAS: dict[str, Formula] = {
    "basic": lambda _w, q, h, _j: q @ h,
    "dot": lambda w, q, h, _j: q @ projected(w, h),
    "scaled_dot": lambda w, q, h, _j: q @ projected(w, h) / np.sqrt(len(q)),
    "general": lambda w, q, h, _j: q @ w["key.weight"] @ h,
    "concat": lambda w, q, h, _j: w["energy.weight"][0] @ np.tanh(w["joint.weight"] @ np.concatenate([q, h])),
    "additive": lambda w, q, h, _j: (
        w["energy.weight"][0] @ np.tanh(w["query.weight"] @ q + w["key.weight"] @ h)
    ),
    "cosine": cosine,
    "location": lambda w, q, _h, j: w["places.weight"][j] @ q,
}


def make(name: str, memory_dim: int = MEMORY) -> ScoredAttention:
    torch.manual_seed(0)
    return ScoredAttention(make_score(name, QUERY, memory_dim, INNER, PLACES)).double()  # type: ignore[arg-type]


def inputs(memory_dim: int = MEMORY, positions: int = 4) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(2, 3, QUERY, generator=generator, dtype=torch.float64)
    memory = torch.randn(2, positions, memory_dim, generator=generator, dtype=torch.float64)
    visible = torch.ones(2, positions, dtype=torch.bool)
    visible[1, -2:] = False
    return query, memory, visible


def test_every_score_has_its_formula() -> None:
    assert set(FORMULAS) == set(SCORES)


@pytest.mark.parametrize("memory_dim", [MEMORY, 8])
@pytest.mark.parametrize("name", SCORES)
def test_the_score_and_its_attention_are_the_formula(name: str, memory_dim: int) -> None:
    if name == "basic" and memory_dim != QUERY:
        with pytest.raises(UserError, match="basic compares vectors of one width, not 6 and 8"):
            make(name, memory_dim)
        return
    attention = make(name, memory_dim)
    query, memory, visible = inputs(memory_dim)
    weights = {key: value.detach().numpy() for key, value in attention.score.state_dict().items()}
    prepared, seen = attention.prepare(memory, visible), []
    with open_tap(lambda owner, shown: seen.append((owner, shown.detach().numpy()))):
        context = attention(query, prepared).detach().numpy()
    scores = attention.score(query, prepared.keys).detach().numpy()
    ((owner, shown),) = seen
    assert owner is attention
    assert shown.shape == (2, 1, 3, 4)
    for b in range(2):
        there = np.flatnonzero(visible[b].numpy())
        for i in range(3):
            expected = [
                FORMULAS[name](weights, query[b, i].numpy(), memory[b, j].numpy(), j) for j in range(4)
            ]
            np.testing.assert_allclose(scores[b, i], expected, atol=1e-12)
            alpha = np.exp(np.array(expected)[there])
            alpha /= alpha.sum()
            np.testing.assert_allclose(shown[b, 0, i, there], alpha, atol=1e-12)
            assert (np.delete(shown[b, 0, i], there) == 0).all()
            np.testing.assert_allclose(context[b, i], alpha @ memory[b, there].numpy(), atol=1e-12)


@pytest.mark.parametrize("name", SCORES)
def test_gradients(name: str) -> None:
    attention = make(name)
    query, memory, visible = inputs()
    parameters = dict(attention.named_parameters())

    def context(query: torch.Tensor, memory: torch.Tensor, *values: torch.Tensor) -> torch.Tensor:
        swapped = dict(zip(parameters, values, strict=True))
        return torch.func.functional_call(
            _Whole(attention),
            {f"inner.{k}": v for k, v in swapped.items()},
            (
                query,
                memory,
                visible,
            ),
        )

    leaves = [query, memory, *(p.detach().clone() for p in parameters.values())]
    assert torch.autograd.gradcheck(context, [leaf.requires_grad_() for leaf in leaves])


class _Whole(torch.nn.Module):
    """Preparation and attention as one call, so that weights can be exchanged for both."""

    def __init__(self, inner: ScoredAttention) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, query: torch.Tensor, memory: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        return self.inner(query, self.inner.prepare(memory, visible))


def test_location_never_looks_beyond_its_places() -> None:
    attention = make("location")
    query, memory, _ = inputs(positions=PLACES + 3)
    whole = attention(query, attention.prepare(memory, torch.ones(2, PLACES + 3, dtype=torch.bool)))
    short = attention(query, attention.prepare(memory[:, :PLACES], torch.ones(2, PLACES, dtype=torch.bool)))
    torch.testing.assert_close(whole, short, atol=1e-12, rtol=0)


def test_a_longer_memory_still_gives_finite_weights_for_location() -> None:
    """Even where only places beyond may be looked at, which no padded batch has."""
    attention = make("location")
    query, memory, _ = inputs(positions=PLACES + 3)
    visible = (torch.arange(PLACES + 3) >= PLACES).expand(2, -1)
    assert attention(query, attention.prepare(memory, visible)).isfinite().all()


def test_kept_sentences_keep_their_memory() -> None:
    attention = make("additive")
    query, memory, visible = inputs()
    kept: PreparedMemory = attention.prepare(memory, visible).keep(torch.tensor([1]))
    expected = attention(query, attention.prepare(memory, visible))[1:]
    torch.testing.assert_close(attention(query[1:], kept), expected, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("basic", {}),
        ("dot", {"key.weight": (6, 5)}),
        ("scaled_dot", {"key.weight": (6, 5)}),
        ("general", {"key.weight": (6, 5)}),
        ("concat", {"joint.weight": (4, 11), "energy.weight": (1, 4)}),
        ("additive", {"query.weight": (4, 6), "key.weight": (4, 5), "energy.weight": (1, 4)}),
        ("cosine", {"log_sharpness": (1,), "key.weight": (6, 5)}),
        ("location", {"places.weight": (7, 6)}),
    ],
)
def test_a_score_has_the_parameters_of_its_formula(name: str, expected: dict[str, tuple[int, ...]]) -> None:
    """And no bias: one that all keys share would be lost in the softmax."""
    score = make_score(name, 6, 5 if expected else 6, 4, 7)
    assert isinstance(score, torch.nn.Module)
    assert {key: tuple(p.shape) for key, p in score.named_parameters()} == expected

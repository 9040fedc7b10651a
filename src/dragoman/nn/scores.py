"""The classic attention scores: how well a query q of a decoder matches a memory position h.

    basic         qᵀh                       no parameters; both have one width
    dot           qᵀh                       h is projected where its width is another
    scaled_dot    qᵀh / √d                  Vaswani et al. 2017
    general       qᵀ W h                    Luong et al. 2015, equation 8
    concat        vᵀ tanh(W [q; h])         Luong et al. 2015, equation 8
    additive      vᵀ tanh(W₁ q + W₂ h)      Bahdanau et al. 2015, appendix A.1.2
    cosine        β cos(q, h)               Graves et al. 2014, equation 5; the sharpness β is learnt
    location      W q                       Luong et al. 2015, equation 7: only the place of h counts

    memory ─ prepare ─ keys ─┐
    query ───────────────── score ─ softmax over visible positions ─ Σ weights · memory ─▶ context

`prepare` runs once per sentence and computes everything that does not depend on the query. No score has a
bias that is the same for every position: a softmax cancels it. `concat` and `additive` are the same function
of q and h; they differ in their initial weights.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.errors import UserError
from dragoman.nn.attention_kernels import weigh
from dragoman.nn.linear import xavier_linear
from dragoman.nn.mask import padding
from dragoman.shapes import Bool, Float, Int, Tensor


class Score(Protocol):
    takes: ClassVar[tuple[str, ...]]
    """The arguments of its constructor, of those that `make_score` knows."""

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M E"]: ...
    def __call__(
        self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M E"]
    ) -> Float[Tensor, "B Q M"]: ...


class BasicScore(nn.Module):
    takes = ("query_dim", "memory_dim")

    def __init__(self, query_dim: int, memory_dim: int) -> None:
        super().__init__()
        if query_dim != memory_dim:
            raise UserError(
                f"attention: basic compares vectors of one width, not {query_dim} and {memory_dim}; "
                "choose dot"
            )

    def prepare(self, memory: Float[Tensor, "B M D"]) -> Float[Tensor, "B M D"]:
        return memory

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M D"]) -> Float[Tensor, "B Q M"]:
        return query @ keys.transpose(1, 2)


class DotScore(nn.Module):
    takes = ("query_dim", "memory_dim")

    def __init__(self, query_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.key = _to_width(memory_dim, query_dim)

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M D"]:
        return self.key(memory)

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M D"]) -> Float[Tensor, "B Q M"]:
        return query @ keys.transpose(1, 2)


class ScaledDotScore(nn.Module):
    takes = ("query_dim", "memory_dim")

    def __init__(self, query_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.key = _to_width(memory_dim, query_dim)
        self.scale = 1 / math.sqrt(query_dim)

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M D"]:
        return self.key(memory) * self.scale

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M D"]) -> Float[Tensor, "B Q M"]:
        return query @ keys.transpose(1, 2)


class GeneralScore(nn.Module):
    takes = ("query_dim", "memory_dim")

    def __init__(self, query_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.key = xavier_linear(memory_dim, [query_dim], bias=False)

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M D"]:
        return self.key(memory)

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M D"]) -> Float[Tensor, "B Q M"]:
        return query @ keys.transpose(1, 2)


class ConcatScore(nn.Module):
    takes = ("query_dim", "memory_dim", "inner_dim")

    def __init__(self, query_dim: int, memory_dim: int, inner_dim: int) -> None:
        super().__init__()
        self.query_dim = query_dim
        self.joint = xavier_linear(query_dim + memory_dim, [inner_dim], bias=False)
        self.energy = xavier_linear(inner_dim, [1], bias=False)

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M A"]:
        return F.linear(memory, self.joint.weight[:, self.query_dim :])

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M A"]) -> Float[Tensor, "B Q M"]:
        asked = F.linear(query, self.joint.weight[:, : self.query_dim])
        return self.energy(torch.tanh(asked[:, :, None] + keys[:, None])).squeeze(-1)


class AdditiveScore(nn.Module):
    takes = ("query_dim", "memory_dim", "inner_dim")

    def __init__(self, query_dim: int, memory_dim: int, inner_dim: int) -> None:
        super().__init__()
        self.query = xavier_linear(query_dim, [inner_dim], bias=False)
        self.key = xavier_linear(memory_dim, [inner_dim], bias=False)
        self.energy = xavier_linear(inner_dim, [1], bias=False)

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M A"]:
        return self.key(memory)

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M A"]) -> Float[Tensor, "B Q M"]:
        return self.energy(torch.tanh(self.query(query)[:, :, None] + keys[:, None])).squeeze(-1)


class CosineScore(nn.Module):
    """β begins at √d: random vectors of unit variance then have the scores of the scaled dot product."""

    takes = ("query_dim", "memory_dim")

    def __init__(self, query_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.key = _to_width(memory_dim, query_dim)
        self.log_sharpness = nn.Parameter(torch.full((1,), math.log(query_dim) / 2))

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M D"]:
        return F.normalize(self.key(memory), dim=-1)

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M D"]) -> Float[Tensor, "B Q M"]:
        return self.log_sharpness.exp() * (F.normalize(query, dim=-1) @ keys.transpose(1, 2))


class LocationScore(nn.Module):
    """One learnt row for each of `max_positions` positions. Positions beyond them get the lowest finite
    score, so they have weight 0 as long as an earlier one is visible."""

    takes = ("query_dim", "max_positions")

    def __init__(self, query_dim: int, max_positions: int) -> None:
        super().__init__()
        self.places = xavier_linear(query_dim, [max_positions], bias=False)

    def prepare(self, memory: Float[Tensor, "B M G"]) -> Float[Tensor, "B M 0"]:
        return memory[:, :, :0]  # only the number of positions counts

    def forward(self, query: Float[Tensor, "B Q D"], keys: Float[Tensor, "B M 0"]) -> Float[Tensor, "B Q M"]:
        known = F.linear(query, self.places.weight[: keys.size(1)])
        return F.pad(known, (0, keys.size(1) - known.size(-1)), value=torch.finfo(known.dtype).min)


SCORES: dict[str, Any] = {
    "basic": BasicScore,
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
    "general": GeneralScore,
    "concat": ConcatScore,
    "additive": AdditiveScore,
    "cosine": CosineScore,
    "location": LocationScore,
}


def check_score(name: str, attention_dim: int | None, others: tuple[str, ...] = ()) -> None:
    """Check the name of a score, or of one of the `others`, and that it has a width if one is given."""
    known = (*others, *SCORES)
    if name not in known:
        raise UserError(f"attention: expected one of {', '.join(known)}, found '{name}'")
    with_width = [score for score, kind in SCORES.items() if "inner_dim" in kind.takes]
    if attention_dim is not None and name not in with_width:
        raise UserError(
            f"attention_dim: only {' and '.join(with_width)} have one, {name} has none; leave it out"
        )


def make_score(name: str, query_dim: int, memory_dim: int, inner_dim: int, max_positions: int) -> Score:
    """A score by name, with the sizes that it needs."""
    sizes = {
        "query_dim": query_dim,
        "memory_dim": memory_dim,
        "inner_dim": inner_dim,
        "max_positions": max_positions,
    }
    return SCORES[name](*(sizes[size] for size in SCORES[name].takes))


@dataclass(frozen=True)
class PreparedMemory:
    """Keys and values of the source: one row a sentence, shared by all its beams."""

    keys: Float[Tensor, "B M E"]
    values: Float[Tensor, "B M G"]
    visible: Bool[Tensor, "B M"]

    def keep(self, sentences: Int[Tensor, "A"]) -> "PreparedMemory":
        return PreparedMemory(self.keys[sentences], self.values[sentences], self.visible[sentences])


class ScoredAttention(nn.Module):
    """Any score, a softmax over the visible positions, and the weighted sum of the memory or of other values
    at its positions."""

    looks_at_memory = True

    def __init__(self, score: Score) -> None:
        super().__init__()
        self.score = score

    def prepare(
        self,
        memory: Float[Tensor, "B M G"],
        visible: Bool[Tensor, "B M"],
        values: Float[Tensor, "B M W"] | None = None,
    ) -> PreparedMemory:
        return PreparedMemory(self.score.prepare(memory), memory if values is None else values, visible)

    def forward(self, query: Float[Tensor, "B Q D"], memory: PreparedMemory) -> Float[Tensor, "B Q G"]:
        scores = self.score(query, memory.keys)[:, None]  # B 1 Q M
        return weigh(self, scores, memory.values[:, None], padding(memory.visible))[:, 0]


def _to_width(dim: int, wanted: int) -> nn.Module:
    return nn.Identity() if dim == wanted else xavier_linear(dim, [wanted], bias=False)

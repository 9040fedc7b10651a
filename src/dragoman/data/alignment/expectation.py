"""The E-step for one block: expected links under the current parameters.

These functions depend on nothing but their argument, so they can be computed anywhere. `OrderedMap` is the
built-in `map`, or hands the blocks to other machines (`cli/clustered.py`). Sums over a block are made here,
sums over blocks by the caller in the order of the blocks. So the result does not depend on where a block was
computed.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from dragoman.data.alignment.hmm import Expectations, Jumps, add_jumps, forward_backward

NULL_PROBABILITY = 0.08
T = TypeVar("T")
R = TypeVar("R")


class OrderedMap(Protocol):
    """A function applied to all arguments; the results come in the order of the arguments."""

    def __call__(self, do: Callable[[T], R], asked: Iterable[T], /) -> Iterator[R]: ...


@dataclass(frozen=True)
class Block:
    """Pairs with n given and m generated words each."""

    numbers: np.ndarray
    """B: the index of each pair."""
    generated: np.ndarray
    """B m: ids of the generated words."""
    given: np.ndarray
    """B n: ids of the given words."""
    own: np.ndarray
    """Entries of the table that occur in this block, without duplicates."""
    places: np.ndarray
    """B m n: the index in `own` of each word pair."""

    @property
    def entries(self) -> np.ndarray:
        """B m n: the index of each word pair in the table."""
        return self.own[self.places]

    def turned(self) -> "Block":
        """The same pairs with the two sides exchanged."""
        return Block(self.numbers, self.given, self.generated, self.own, self.places.transpose(0, 2, 1))

    def counted(self, weights: np.ndarray) -> np.ndarray:
        """The sum of the weights (B m n) of each own entry."""
        return np.bincount(self.places.ravel(), weights.ravel(), minlength=len(self.own))


@dataclass(frozen=True)
class BlockView:
    """The parameters of one direction that a block needs."""

    theta: np.ndarray
    """θ of the block's own entries."""
    none: np.ndarray
    """B m: θ of the generated words, from none."""
    tension: float
    jumps: Jumps | None


@dataclass(frozen=True, repr=False)
class BlockQuestion:
    """A block, and the parameters of one direction; `back`: those of the other one for the turned block."""

    block: Block
    view: BlockView
    back: BlockView | None = None

    def __repr__(self) -> str:
        """A hash of all numbers: messages between machines are compared by it."""
        digest = hashlib.sha256()
        views = [view for view in (self.view, self.back) if view is not None]
        parts = [self.block.own, self.block.places]
        parts += [part for view in views for part in (view.theta, view.none)]
        parts += [view.jumps.counts for view in views if view.jumps is not None]
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return f"BlockQuestion({digest.hexdigest()}, {[view.tension for view in views]})"


class Diagonal(NamedTuple):
    """Expected counts of a block under the diagonal prior."""

    counts: np.ndarray
    """Of the own entries."""
    none: np.ndarray
    """B m: the probability of none."""
    linked: np.ndarray
    """m: links of each generated place."""
    distance: float


class Agreed(NamedTuple):
    """Expected counts of a block where both directions have to agree."""

    counts: np.ndarray
    none: tuple[np.ndarray, np.ndarray]
    """B m and B n: the probability of none, forward and backward."""
    widths: tuple[np.ndarray, np.ndarray]
    """Jumps by their width."""


def diagonal_counts(asked: BlockQuestion) -> Diagonal:
    posterior, none = posteriors(asked)
    together = posterior.sum(axis=0)  # m n
    distance = float((together * distances(*together.shape)).sum())
    return Diagonal(asked.block.counted(posterior), none, together.sum(axis=1), distance)


def agreed_counts(asked: BlockQuestion) -> Agreed:
    assert asked.back is not None
    found: list[Expectations] = []
    widths: list[np.ndarray] = []
    for block, view in ((asked.block, asked.view), (asked.block.turned(), asked.back)):
        assert view.jumps is not None
        passes = _passes(block, view, view.jumps)
        found.append(passes)
        widths.append(np.zeros_like(view.jumps.counts))
        add_jumps(widths[-1], passes.jumps, passes.first)
    forward, backward = found
    agreed = forward.posterior * backward.posterior.transpose(0, 2, 1)
    return Agreed(asked.block.counted(agreed), (forward.none, backward.none), (widths[0], widths[1]))


def best_origins(asked: BlockQuestion) -> np.ndarray:
    """B m: the given word that each generated word comes from, or −1 for none."""
    posterior, none = posteriors(asked)
    return np.where(posterior.max(axis=2) > none, posterior.argmax(axis=2), -1)


def posteriors(asked: BlockQuestion) -> tuple[np.ndarray, np.ndarray]:
    """The probability that each generated word comes from each given word (B m n), or from none (B m)."""
    block, view = asked.block, asked.view
    if view.jumps is not None:
        passes = _passes(block, view, view.jumps)
        return passes.posterior, passes.none
    _, m, n = block.places.shape
    near = (1 - NULL_PROBABILITY) * diagonal(m, n, view.tension)
    joint = view.theta[block.places] * near
    none = NULL_PROBABILITY * view.none
    whole = joint.sum(axis=2) + none
    return joint / whole[:, :, None], none / whole


E_STEPS: dict[str, Callable[[BlockQuestion], Any]] = {
    step.__name__: step for step in (diagonal_counts, agreed_counts, best_origins)
}


def _passes(block: Block, view: BlockView, jumps: Jumps) -> Expectations:
    """Expected links under the hidden Markov model."""
    return forward_backward(view.theta[block.places], view.none, jumps, NULL_PROBABILITY)


def distances(m: int, n: int) -> np.ndarray:
    """m n: |i/n − j/m|, with i and j from 1."""
    return np.abs(np.arange(1, n + 1)[None, :] / n - np.arange(1, m + 1)[:, None] / m)


def diagonal(m: int, n: int, tension: float) -> np.ndarray:
    """m n: e^{−λ |i/n − j/m|} / Z_j."""
    near = np.exp(-tension * distances(m, n))
    return near / near.sum(axis=1, keepdims=True)

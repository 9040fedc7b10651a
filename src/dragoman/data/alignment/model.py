"""A word aligner that learns from parallel text alone: a translation table and a preference for the diagonal.

The model of «A Simple, Fast, and Effective Reparameterization of IBM Model 2» (Dyer et al. 2013): word j of m
generated words comes from word i of n given ones, or from none, with

    p(none) = p₀                              δ(i | j, m, n) = (1 − p₀) · e^{−λ |i/n − j/m|} / Z_j
    p(words | given) = Π_j [ p₀ · θ(w_j | none) + Σ_i δ(i | j, m, n) · θ(w_j | g_i) ]

EM finds θ, under a Dirichlet prior that keeps rare words from collecting everything (the mean-field step
exp(ψ(c + α) − ψ(Σ c + α))), and λ, whose part of the likelihood is concave, by Newton's method.

    pairs of equal shape ─▶ blocks   B m n: which entry of θ joins which two words
          ┌───────────────────────────────┐
          ▼                               │
    posteriors ─▶ counts, distances ─▶ θ, λ
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.alignment.expectation import (
    Block,
    BlockQuestion,
    BlockView,
    OrderedMap,
    agreed_counts,
    best_origins,
    diagonal,
    diagonal_counts,
    distances,
    posteriors,
)
from dragoman.data.alignment.hmm import Jumps

CONCENTRATION = 0.01
"""α of the prior."""
FIRST_TENSION = 4.0
_TENSIONS = (0.1, 30.0)
_NEWTON_STEPS = 8
_CELLS = 1 << 20
"""Largest number of cells (B × m × n) of a block. A block is computed at once."""

IdRow = Sequence[int]


@dataclass(frozen=True)
class Table:
    """The word pairs that occur together in some sentence pair."""

    given: np.ndarray
    generated: np.ndarray

    def turned(self) -> "Table":
        return Table(self.generated, self.given)


def make_blocks(pairs: Sequence[tuple[IdRow, IdRow]]) -> tuple[list[Block], Table]:
    """Blocks of all pairs (given, generated) that have words on both sides, and the table they point into."""
    shapes: dict[tuple[int, int], list[int]] = {}
    for number, (given, generated) in enumerate(pairs):
        if len(given) and len(generated):
            shapes.setdefault((len(given), len(generated)), []).append(number)
    parts = [
        np.array(numbers[first : first + size])
        for (n, m), numbers in sorted(shapes.items())
        for size in (max(1, _CELLS // (n * m)),)
        for first in range(0, len(numbers), size)
    ]
    sides = [
        tuple(np.array([pairs[number][side] for number in part], dtype=np.int64) for side in (0, 1))
        for part in parts
    ]
    width = 1 + max((int(generated.max()) for _, generated in sides), default=0)
    pending = []  # the entries of a block, numbered within it, and the keys of these numbers
    for given, generated in sides:
        key = generated[:, :, None] + given[:, None, :] * width
        own, places = np.unique(key, return_inverse=True)
        pending.append((own, places.astype(np.int32).reshape(key.shape)))
    known = _distinct([own for own, _ in pending])
    blocks = [
        Block(part, generated, given, np.searchsorted(known, own).astype(np.int32), places)
        for part, (given, generated), (own, places) in zip(parts, sides, pending, strict=True)
    ]
    return blocks, Table(known // width, known % width)


def _distinct(rows: list[np.ndarray]) -> np.ndarray:
    """All numbers of the rows, sorted, without duplicates. (`np.unique` hashes, which is slow when most
    numbers differ.)"""
    numbers = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *rows]))
    return numbers[np.append(numbers[:-1] != numbers[1:], True)] if len(numbers) else numbers


class Direction:
    """The model of one side given the other."""

    def __init__(self, blocks: Sequence[Block], table: Table) -> None:
        self.blocks, self.table = blocks, table
        self.translation = np.ones(len(table.given))
        """θ of every entry. All entries start equal."""
        self.from_none = np.ones(int(table.generated.max(initial=-1)) + 1)
        self.tension = FIRST_TENSION
        self.jumps: Jumps | None = None
        """The jump model. Once set, it replaces the diagonal prior."""

    def follow_jumps(self) -> None:
        """Switch to the jump model: the origin of a word then depends on the origin of the previous word."""
        self.jumps = Jumps.first()

    def learn(self, each: OrderedMap = map) -> None:
        """One EM step with the diagonal prior."""
        counts, none_counts = np.zeros_like(self.translation), np.zeros_like(self.from_none)
        linked: dict[tuple[int, int], np.ndarray] = {}
        distance = 0.0
        for block, found in zip(self.blocks, each(diagonal_counts, self._questions()), strict=True):
            counts[block.own] += found.counts
            np.add.at(none_counts, block.generated.ravel(), found.none.ravel())
            shape = (block.generated.shape[1], block.given.shape[1])
            linked[shape] = linked.get(shape, 0.0) + found.linked
            distance += found.distance
        self.translate_as(counts, none_counts)
        self.tension = best_tension(self.tension, distance, linked)

    def translate_as(self, counts: np.ndarray, none_counts: np.ndarray) -> None:
        """Update θ from the expected counts of the links."""
        totals = np.bincount(self.table.given, weights=counts + CONCENTRATION)
        self.translation = _expected(counts, totals[self.table.given])
        self.from_none = _expected(none_counts, (none_counts + CONCENTRATION).sum())

    def view(self, block: Block) -> BlockView:
        """What the block needs of the parameters."""
        none = self.from_none[block.generated]
        return BlockView(self.translation[block.own], none, self.tension, self.jumps)

    def posteriors(self, block: Block) -> tuple[np.ndarray, np.ndarray]:
        """The probability that each generated word comes from each given word (B m n), or from none (B m)."""
        return posteriors(BlockQuestion(block, self.view(block)))

    def best(self, each: OrderedMap = map) -> Iterator[tuple[int, np.ndarray]]:
        """The index of each pair and, for each generated word, the given word it comes from, or −1 for
        none."""
        for block, chosen in zip(self.blocks, each(best_origins, self._questions()), strict=True):
            yield from zip(block.numbers.tolist(), chosen, strict=True)

    def _questions(self) -> Iterator[BlockQuestion]:
        return (BlockQuestion(block, self.view(block)) for block in self.blocks)


def learn_together(forward: Direction, backward: Direction, each: OrderedMap = map) -> None:
    """One EM step with jumps in which both directions have to agree (Liang, Taskar and Klein 2006): the count
    of a link is the product of its two posteriors. Links that only one direction invents to explain a rare
    word disappear, so precision rises."""
    assert forward.jumps is not None and backward.jumps is not None
    counts = np.zeros_like(forward.translation)
    none_counts = [np.zeros_like(direction.from_none) for direction in (forward, backward)]
    widths = [np.zeros_like(jumps.counts) for jumps in (forward.jumps, backward.jumps)]
    sides = list(zip(forward.blocks, backward.blocks, strict=True))
    asked = (BlockQuestion(ahead, forward.view(ahead), backward.view(back)) for ahead, back in sides)
    for blocks, found in zip(sides, each(agreed_counts, asked), strict=True):
        counts[blocks[0].own] += found.counts
        for side, block in enumerate(blocks):
            np.add.at(none_counts[side], block.generated.ravel(), found.none[side].ravel())
            widths[side] += found.widths[side]
    for side, direction in enumerate((forward, backward)):
        direction.translate_as(counts, none_counts[side])
        direction.jumps = Jumps(widths[side])


def best_tension(tension: float, distance: float, linked: dict[tuple[int, int], np.ndarray]) -> float:
    """The λ for which the expected total distance equals `distance`, the total over the links found. `linked`
    has the number of links at each place, by m and n."""
    for _ in range(_NEWTON_STEPS):
        expected = spread = 0.0
        for (m, n), counts in linked.items():
            far, near = distances(m, n), diagonal(m, n, tension)
            mean = (near * far).sum(axis=1)
            expected += float(counts @ mean)
            spread += float(counts @ ((near * far**2).sum(axis=1) - mean**2))
        if spread <= 0:  # single words: the distance does not vary
            break
        tension = min(max(tension + (expected - distance) / spread, _TENSIONS[0]), _TENSIONS[1])
    return tension


def _expected(counts: np.ndarray, totals: np.ndarray | float) -> np.ndarray:
    """exp of the expected log θ under its posterior. `totals` already contain the prior's α."""
    return np.exp(digamma(counts + CONCENTRATION) - digamma(np.asarray(totals)))


def digamma(x: np.ndarray) -> np.ndarray:
    """ψ(x) for x > 0, from its asymptotic series at x + 6, to about ten digits."""
    far = x + 6.0
    square = 1 / far**2
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (1 / 240 - square / 132))))
    value = np.log(far) - 0.5 / far - series
    for step in range(6):
        value = value - 1 / (x + step)
    return value

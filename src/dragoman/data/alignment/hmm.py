"""The hidden Markov model of word alignment (Vogel, Ney and Tillmann 1996): where a word comes from depends
on where the word before it came from.

    p(words, places | given) = Π_j  a(i_j − i_{j−1}) · θ(w_j | g_{i_j})       or       p₀ · θ(w_j | none)

A word that comes from none leaves the place as it was (Och and Ney 2003). `a` depends on the width of the
jump alone. Forward and backward probabilities of all pairs of a block are computed at once, word by word.
"""

from dataclasses import dataclass

import numpy as np

WIDEST = 60
"""Widest jump that is counted separately. Wider jumps are counted as this one."""
_FLAT = 0.1
"""Share of the jump probability that is spread evenly over all places, so that rare widths stay possible."""
_TINY = 1e-300


@dataclass(frozen=True)
class Jumps:
    """Counts of each jump width, from −WIDEST to WIDEST."""

    counts: np.ndarray

    @classmethod
    def first(cls) -> "Jumps":
        """Initial counts: most jumps go to the next word, few go far."""
        widths = np.arange(-WIDEST, WIDEST + 1)
        return cls(np.exp(-np.abs(widths - 1) / 2.0))

    def matrix(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The probability of each place after each place (n n), and of each first place (n)."""
        places = np.arange(-1, n)
        width = np.clip(places[None, 1:] - places[:, None], -WIDEST, WIDEST)
        chances = self.counts[width + WIDEST]
        chances = chances / np.maximum(chances.sum(axis=1, keepdims=True), _TINY)
        chances = (1 - _FLAT) * chances + _FLAT / n
        return chances[1:], chances[0]


def add_jumps(counts: np.ndarray, seen: np.ndarray, first: np.ndarray) -> None:
    """Add the expected jumps between places (n n) and to the first place (n) to `counts`, by width."""
    n = len(first)
    places = np.arange(-1, n)
    width = np.clip(places[None, 1:] - places[:, None], -WIDEST, WIDEST)
    counts += np.bincount((width + WIDEST).ravel(), np.vstack([first, seen]).ravel(), minlength=len(counts))


@dataclass(frozen=True)
class Expectations:
    posterior: np.ndarray
    """B m n."""
    none: np.ndarray
    """B m."""
    jumps: np.ndarray
    """n n: expected jumps from place to place, of all pairs."""
    first: np.ndarray
    """n: expected first places."""


def forward_backward(emission: np.ndarray, none: np.ndarray, jumps: Jumps, null: float) -> Expectations:
    """`emission` is θ of every generated and given word (B m n); `none` is θ of words from none (B m)."""
    batch, m, n = emission.shape
    chances, first = jumps.matrix(n)
    chances, first = (1 - null) * chances, (1 - null) * first
    from_none = null * none
    real, empty = np.empty((m, batch, n)), np.empty((m, batch, n))
    scale = np.empty((m, batch, 1))
    before = np.full((batch, n), 1.0 / n)  # of words from none at the beginning of the sentence
    for j in range(m):
        arrived = np.broadcast_to(first, (batch, n)) if j == 0 else before @ chances
        real[j] = arrived * emission[:, j]
        empty[j] = before * from_none[:, j, None]
        total = np.maximum((real[j] + empty[j]).sum(axis=1, keepdims=True), _TINY)
        scale[j] = total
        real[j] /= total
        empty[j] /= total
        before = real[j] + empty[j]
    posterior, of_none = np.empty_like(emission), np.empty_like(none)
    seen = np.zeros((n, n))
    after = np.ones((batch, n))
    for j in range(m - 1, -1, -1):
        posterior[:, j] = real[j] * after
        of_none[:, j] = (empty[j] * after).sum(axis=1)
        if j:
            reached = emission[:, j] * after / scale[j]
            seen += (real[j - 1] + empty[j - 1]).T @ reached
            after = reached @ chances.T + from_none[:, j, None] * after / scale[j]
    whole = np.maximum(posterior.sum(axis=2) + of_none, _TINY)
    return Expectations(
        posterior / whole[:, :, None], of_none / whole, seen * chances, posterior[:, 0].sum(axis=0)
    )

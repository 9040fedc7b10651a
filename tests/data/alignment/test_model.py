"""The statistical aligner held against loops over single words in float64, and its joining of directions."""

import math

import numpy as np
import pytest
import torch

from dragoman.data.alignment import MOST_CELLS, CorpusAligner, grow_diag_final_and
from dragoman.data.alignment.expectation import NULL_PROBABILITY
from dragoman.data.alignment.model import CONCENTRATION, Direction, digamma, make_blocks

PAIRS = [([0, 1], [0, 1, 2]), ([1], [2]), ([0, 2, 1], [0, 3, 2]), ([2, 0], [3, 0]), ([2, 1], [3, 1, 2])]


class ByHand:
    """p(generated | given) as it is written in the paper, one word after another."""

    def __init__(self) -> None:
        self.theta: dict[tuple[int | None, int], float] = {}
        self.tension = 4.0

    def near(self, i: int, j: int, n: int, m: int) -> float:
        return math.exp(-self.tension * abs((i + 1) / n - (j + 1) / m))

    def posterior(self, given: list[int], generated: list[int], j: int) -> dict[int | None, float]:
        n, m, word = len(given), len(generated), generated[j]
        z = sum(self.near(i, j, n, m) for i in range(n))
        joint: dict[int | None, float] = {None: NULL_PROBABILITY * self.theta.get((None, word), 1.0)}
        for i, other in enumerate(given):
            share = (1 - NULL_PROBABILITY) * self.near(i, j, n, m) / z
            joint[i] = share * self.theta.get((other, word), 1.0)
        return {i: p / sum(joint.values()) for i, p in joint.items()}

    def learn(self) -> None:
        counts: dict[tuple[int | None, int], float] = {}
        links: list[tuple[int, int, int, int, float]] = []
        for given, generated in PAIRS:
            for j, word in enumerate(generated):
                for i, p in self.posterior(given, generated, j).items():
                    key = (None if i is None else given[i], word)
                    counts[key] = counts.get(key, 0.0) + p
                    if i is not None:
                        links.append((i, j, len(given), len(generated), p))
        for (other, word), count in counts.items():
            total = sum(c + CONCENTRATION for (o, _), c in counts.items() if o == other)
            self.theta[other, word] = math.exp(_psi(count + CONCENTRATION) - _psi(total))
        self.tension = self._best_tension(links)

    def _best_tension(self, links: list[tuple[int, int, int, int, float]]) -> float:
        def likelihood(tension: float) -> float:
            self.tension = tension
            total = 0.0
            for i, j, n, m, p in links:
                total += p * math.log(self.near(i, j, n, m) / sum(self.near(k, j, n, m) for k in range(n)))
            return total

        low, high = 0.1, 30.0
        for _ in range(60):  # concave: a third of the range goes each time
            left, right = low + (high - low) / 3, high - (high - low) / 3
            low, high = (left, high) if likelihood(left) < likelihood(right) else (low, right)
        return (low + high) / 2


def _psi(x: float) -> float:
    return float(torch.digamma(torch.tensor(x, dtype=torch.float64)))


def test_em_by_hand() -> None:
    blocks, table = make_blocks(PAIRS)
    ours, by_hand = Direction(blocks, table), ByHand()
    for _ in range(3):
        ours.learn()
        by_hand.learn()
        assert ours.tension == pytest.approx(by_hand.tension, rel=1e-5)
        by_hand.tension = ours.tension  # what a search finds is not exact to the last digits
        for entry, (given, generated) in enumerate(zip(table.given, table.generated, strict=True)):
            expected = by_hand.theta[int(given), int(generated)]
            assert ours.translation[entry] == pytest.approx(expected, rel=1e-9)
        for word, found in enumerate(ours.from_none):
            assert found == pytest.approx(by_hand.theta[None, word], rel=1e-9)
    for number, chosen in ours.best():
        given, generated = PAIRS[number]
        for j, i in enumerate(chosen):
            posterior = by_hand.posterior(given, generated, j)
            best = max(posterior, key=lambda k: posterior[k])
            assert i == (-1 if best is None else best)


def test_turned_blocks_are_those_of_turned_pairs() -> None:
    blocks, table = make_blocks(PAIRS)
    turned = Direction([block.turned() for block in blocks], table.turned())
    other = Direction(*make_blocks([(tgt, src) for src, tgt in PAIRS]))
    for direction in (turned, other):
        direction.learn()
        direction.learn()
    assert turned.tension == pytest.approx(other.tension)
    found, expected = dict(turned.best()), dict(other.best())
    assert {n: row.tolist() for n, row in found.items()} == {n: row.tolist() for n, row in expected.items()}


def test_digamma() -> None:
    x = np.concatenate([np.geomspace(1e-3, 1e6, 200), [0.01, 1.0, 2.5]])
    np.testing.assert_allclose(digamma(x), torch.digamma(torch.from_numpy(x)).numpy(), rtol=1e-9, atol=1e-9)


def test_growing_by_hand() -> None:
    """Both have 0-0 and 3-3. Beside 0-0, 1-0 and 0-1 reach one new word each, so that 1-1 reaches none; from
    them 2-1 and 1-2 reach one each. 5-5 links two words that are free; after it 5-3 and 6-5 do not."""
    forward = [(0, 0), (1, 0), (1, 1), (2, 1), (3, 3), (5, 5)]
    backward = [(0, 0), (0, 1), (1, 2), (3, 3), (5, 3), (6, 5)]
    expected = [(0, 0), (0, 1), (1, 0), (1, 2), (2, 1), (3, 3), (5, 5)]
    assert grow_diag_final_and(forward, backward) == expected
    assert grow_diag_final_and([], []) == []
    assert grow_diag_final_and([(0, 0), (0, 1)], []) == [(0, 0)]  # nothing in common: only free words


def test_punctuation_and_case_do_not_make_other_words() -> None:
    """The full stop is a part of its own, and every link is about what white space separates."""
    names = {"red": "rot", "old": "alt", "cat": "katze", "dog": "hund", "sun": "sonne", "hat": "hut"}
    pairs = [(f"The {a} {b}.", f"Das {names[a]} {names[b].capitalize()}.") for a in names for b in names]
    aligner = CorpusAligner([*pairs, ("", "nichts"), ("x " * MOST_CELLS, "y z")])
    aligner.learn()
    *found, of_empty, of_endless = aligner.links()
    assert found == [[(0, 0), (1, 1), (2, 2)]] * len(pairs)
    assert (of_empty, of_endless) == ([], [])
    assert aligner.too_long == [len(pairs) + 1]

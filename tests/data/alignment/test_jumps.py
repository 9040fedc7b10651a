"""The hidden Markov model held against the sum over all ways to align a pair."""

from itertools import product

import numpy as np
import pytest

from dragoman.data.alignment import CorpusAligner
from dragoman.data.alignment.hmm import WIDEST, Jumps, add_jumps, forward_backward
from dragoman.data.alignment.model import CONCENTRATION, Direction, digamma, learn_together, make_blocks

NULL = 0.2
Path = tuple[tuple[int, bool], ...]


def weight(path: Path, emission: np.ndarray, none: np.ndarray, jumps: Jumps) -> float:
    """Of one way: for every word its place, and whether it comes from there or from none."""
    n = emission.shape[1]
    chances, first = jumps.matrix(n)
    result = 1.0
    for j, (place, real) in enumerate(path):
        if real:
            arrives = first[place] if j == 0 else chances[path[j - 1][0], place]
            result *= (1 - NULL) * arrives * emission[j, place]
        elif j == 0:
            result *= NULL * none[j] / n
        else:
            result *= NULL * none[j] * (path[j - 1][0] == place)
    return result


def test_all_ways_to_align() -> None:
    chance = np.random.default_rng(3)
    m, n = 4, 3
    emission, none = chance.random((2, m, n)), chance.random((2, m))
    jumps = Jumps(chance.random(2 * WIDEST + 1))
    found = forward_backward(emission, none, jumps, NULL)
    posterior, from_none = np.zeros((2, m, n)), np.zeros((2, m))
    seen, first = np.zeros((n, n)), np.zeros(n)
    for pair in range(2):
        ways = list(product(product(range(n), (True, False)), repeat=m))
        weights = np.array([weight(way, emission[pair], none[pair], jumps) for way in ways])
        for way, share in zip(ways, weights / weights.sum(), strict=True):
            for j, (place, real) in enumerate(way):
                if real:
                    posterior[pair, j, place] += share
                    if j:
                        seen[way[j - 1][0], place] += share
                    else:
                        first[place] += share
                else:
                    from_none[pair, j] += share
    np.testing.assert_allclose(found.posterior, posterior, atol=1e-12)
    np.testing.assert_allclose(found.none, from_none, atol=1e-12)
    np.testing.assert_allclose(found.jumps, seen, atol=1e-12)
    np.testing.assert_allclose(found.first, first, atol=1e-12)


def test_jumps_are_counted_by_their_width() -> None:
    counts = np.zeros(2 * WIDEST + 1)
    add_jumps(counts, np.array([[1.0, 2.0], [4.0, 8.0]]), np.array([16.0, 32.0]))
    assert counts[WIDEST - 1 : WIDEST + 3].tolist() == [4, 9, 2 + 16, 32]
    chances, first = Jumps.first().matrix(100)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert first.sum() == pytest.approx(1) and first[0] > first[5] and chances[3, 4] > chances[3, 2]


def test_long_sentences_do_not_vanish() -> None:
    found = forward_backward(np.full((1, 300, 40), 1e-9), np.full((1, 300), 1e-12), Jumps.first(), NULL)
    assert np.isfinite(found.posterior).all()
    np.testing.assert_allclose(found.posterior.sum(axis=2) + found.none, 1, atol=1e-9)


def test_the_aligner_ends_with_jumps() -> None:
    aligner = CorpusAligner([("a b c", "A B C"), ("c a", "C A"), ("b", "B"), ("c b", "C B")] * 10)
    aligner.learn(2)
    assert aligner.forward.jumps is not None and aligner.backward.jumps is not None
    assert next(aligner.links()) == [(0, 0), (1, 1), (2, 2)]


def test_a_link_counts_as_much_as_both_directions_believe_in_it() -> None:
    rows = [([0, 1, 2], [0, 1]), ([2, 0], [1, 0]), ([1], [0])]
    blocks, table = make_blocks(rows)
    forward = Direction(blocks, table)
    backward = Direction([block.turned() for block in blocks], table.turned())
    for direction in (forward, backward):
        direction.learn()
        direction.follow_jumps()
    counts = np.zeros(len(table.given))
    for ahead, back in zip(forward.blocks, backward.blocks, strict=True):
        mine, theirs = forward.posteriors(ahead)[0], backward.posteriors(back)[0]
        for pair, j, i in np.ndindex(*ahead.entries.shape):
            counts[ahead.entries[pair, j, i]] += mine[pair, j, i] * theirs[pair, i, j]
    learn_together(forward, backward)
    for direction in (forward, backward):
        totals = np.bincount(direction.table.given, weights=counts + CONCENTRATION)[direction.table.given]
        expected = np.exp(digamma(counts + CONCENTRATION) - digamma(totals))
        np.testing.assert_allclose(direction.translation, expected, rtol=1e-9)

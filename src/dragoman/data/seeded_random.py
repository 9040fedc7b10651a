"""Random numbers as a pure function of a key.

They are raw words of the bit generator, and every shuffle is a stable argsort of them, so that nothing
depends on the version of numpy.
"""

import math

import numpy as np


def random_bits(*key: int) -> np.random.BitGenerator:
    return np.random.PCG64(np.random.SeedSequence([part % (1 << 64) for part in key]))


def shuffle(bits: np.random.BitGenerator, size: int) -> np.ndarray:
    return np.argsort(bits.random_raw(size), kind="stable")


GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio: the step of SplitMix64."""


def splitmix(x: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele et al. 2014): every bit of x affects every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def uniform_each(numbers: np.ndarray, *key: int) -> np.ndarray:
    """A draw from [0, 1) for each number: a pure function of the number and the key."""
    state = np.zeros(1, dtype=np.uint64)
    for part in key:
        state = splitmix(state + np.array([part % (1 << 64)], dtype=np.uint64) + GOLDEN)
    raw = splitmix(state + np.asarray(numbers).astype(np.uint64) * GOLDEN)
    return (raw >> np.uint64(11)) * 2.0**-53


class Dice:
    """A random generator. The results depend on the order of the calls."""

    def __init__(self, *key: int) -> None:
        self._bits = random_bits(*key)

    def uniform(self, count: int) -> np.ndarray:
        """Draws from [0, 1)."""
        return (self._bits.random_raw(count) >> np.uint64(11)) * 2.0**-53

    def below(self, limit: int, count: int) -> np.ndarray:
        """Integers from 0 to before `limit`."""
        return (self.uniform(count) * limit).astype(np.int64)

    def one_below(self, limit: int) -> int:
        return int(self.below(limit, 1)[0])

    def order(self, size: int) -> np.ndarray:
        return shuffle(self._bits, size)

    def poisson(self, mean: float, count: int) -> np.ndarray:
        terms = [math.exp(-mean)]
        while len(terms) < mean or terms[-1] > 1e-18:
            terms.append(terms[-1] * mean / len(terms))
        return np.searchsorted(np.cumsum(terms), self.uniform(count), side="right")

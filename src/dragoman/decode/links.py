"""From weights between pieces to links between words: for any engine that shows where it looked."""

from collections.abc import Sequence

import numpy as np

from dragoman.text.words import Place

Links = list[tuple[int, int]]
"""Source word, target word; both count from 0."""


def pieces_by_pieces(weights: np.ndarray, when_read: bool) -> np.ndarray:
    """A row a target piece, a column a source piece; `<s>` and `</s>` are no words."""
    return weights[1:, :-1] if when_read else weights[:-1, :-1]


def members(pieces: Sequence[Place], places: Sequence[Place]) -> np.ndarray:
    """P W: the share of each piece that stands in each word."""
    share = np.zeros((len(pieces), len(places)))
    word = 0
    for number, (start, end) in enumerate(pieces):
        while word and (word == len(places) or places[word][0] > start):
            word -= 1  # pieces that share a character go back by one
        for other in range(word, len(places)):
            if places[other][0] >= end:
                break
            word = other
            overlap = min(end, places[other][1]) - max(start, places[other][0])
            share[number, other] = max(0, overlap) / max(1, end - start)
    return share


def words_by_words(weights: np.ndarray, of_src: np.ndarray, of_tgt: np.ndarray) -> np.ndarray:
    """How much each target word looks at each source word: the mean over its own pieces of the sum over the
    pieces of the other. `of_src`, `of_tgt` are their `members`."""
    own = np.maximum(of_tgt.sum(axis=0)[:, None], 1e-9)
    return (of_tgt.T @ weights @ of_src) / own


def links_of(weights: np.ndarray) -> Links:
    """Every target word with the source word it looks at most. A source word that is chosen by none joins the
    target word that looks at it most, if that one looks at it at least half as much as at its own choice: the
    two parts of what the target writes as one word."""
    if not weights.size:
        return []
    most = weights.max(axis=1)
    found = {(int(s), t) for t, s in enumerate(weights.argmax(axis=1)) if most[t] > 0}
    chosen = {s for s, _ in found}
    for s, t in enumerate(weights.argmax(axis=0)):
        if s not in chosen and weights[t, s] > 0 and 2 * weights[t, s] >= most[t]:
            found.add((s, int(t)))
    return sorted(found)

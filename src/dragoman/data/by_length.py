"""Batches of sequences of similar length, so that little is padded. Plain Python, for every engine."""

from collections.abc import Iterator, Sequence


def by_length(lengths: Sequence[int], batch_tokens: int) -> Iterator[list[int]]:
    """Numbers of neighbours in length, longest first, so that too little memory shows at once."""
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    for part in filled([lengths[number] for number in order], batch_tokens):
        yield order[part]


def filled(lengths: Sequence[int], batch_tokens: int) -> Iterator[slice]:
    """Neighbours as they stand. In each batch n × longest ≤ `batch_tokens`; one that is longer than that is a
    batch of its own. A batch is full before the next one begins."""
    start, longest = 0, 0
    for place, length in enumerate(lengths):
        longest = max(longest, length)
        if place > start and longest * (place + 1 - start) > batch_tokens:
            yield slice(start, place)
            start, longest = place, length
    if lengths:
        yield slice(start, len(lengths))

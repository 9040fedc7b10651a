"""Batches side by side on a CPU.

One batch on two cores waits at the end of every operation until both are done, and while Python decides what
comes next, one core is idle. Two batches on a core each do not wait for each other. PyTorch gives the
interpreter back inside its operations, so threads are enough, up to a few of them.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

import torch

from dragoman.nn.tap import tap_is_open

T = TypeVar("T")
R = TypeVar("R")

_MOST_WORKERS = 4  # a search spends about a fifth of its time in Python, which is done by one at a time
_LEAST_TOKENS = 512  # of a worker's batch: below, products of so few rows lose more than is won
_ROUNDS = 2  # batches for each worker, so that they end at about the same time


def workers_for(device: torch.device, tokens: int) -> int:
    """How many batches of a text of so many tokens to search at once. What is set for one thread alone, as
    taps and autocast are, is unknown to the others: then it is one."""
    if device.type != "cpu" or tap_is_open() or torch.is_autocast_enabled("cpu"):
        return 1
    return max(1, min(torch.get_num_threads(), _MOST_WORKERS, tokens // _LEAST_TOKENS))


def share_of(batch_tokens: int, tokens: int, workers: int) -> int:
    """Tokens of a batch, so that there is enough for all workers."""
    if workers == 1:
        return batch_tokens
    return min(batch_tokens, max(_LEAST_TOKENS, -(-tokens // (_ROUNDS * workers))))


def side_by_side(work: Callable[[T], R], items: Sequence[T], workers: int) -> Iterator[tuple[T, R]]:
    """Every item with what came of it, as it comes."""
    workers = min(workers, len(items))
    if workers <= 1:
        yield from ((item, work(item)) for item in items)
        return
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(
        workers, "dragoman-search", initializer=torch.set_num_threads, initargs=(threads // workers,)
    )
    try:
        jobs = {pool.submit(work, item): item for item in items}
        yield from ((jobs[job], job.result()) for job in as_completed(jobs))
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # threads that begin later would have those of the workers

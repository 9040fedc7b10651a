"""Translations that go in circles, and what takes their place. Plain Python: every engine has the same guard.

    search ─▶ does the end repeat itself? ── no ──▶ as it is
                          │ yes
              does the source do likewise? ─ yes ─▶ as it is
                          │ no
                          └─▶ greedy search, at most `max_extra` tokens longer than the source, in which no
                              three pieces come twice ─▶ finish_reason «loop»

What repeats with a period of p has three pieces twice as soon as it has p + 3, so the second search cannot go
in such circles. Only the ends of hypotheses are looked at, so text without loops costs next to nothing.
Samples are left as they are drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Ended, Job

LONGEST_BLOCK = 8
REPEATS = 4
LEAST_PIECES = 16
"""A hypothesis that the model ended itself needs so many pieces in circles: «1000000» is no loop."""
_LIKEWISE = 4
"""A source with a run does likewise up to so many times its length: words differ in pieces, limits are
wide."""
_BLOCKED = 3


@dataclass(frozen=True)
class Repetition:
    """A block of pieces that comes `repeats` times in a row; `pieces` in all."""

    repeats: int = 0
    pieces: int = 0


def without_loops(
    found: list[list[Ended]],
    jobs: Sequence[Job],
    config: SearchConfig,
    search: Callable[[list[Job], SearchConfig], list[list[Ended]]],
) -> list[list[Ended]]:
    """A best hypothesis that goes in circles is replaced, the others of its list stay as they are. The one
    that takes its place is first whatever its score: it is what the sentence is translated as."""
    if not isinstance(config, BeamSearch) or not config.loop_guard:
        return found
    looping = [row for row, own in enumerate(found) if own and loops(own[0], jobs[row].source)]
    if not looping:
        return found
    for row, calm in zip(looping, search([jobs[row] for row in looping], _calm(config)), strict=True):
        if not calm:  # it has been cancelled
            continue
        ended = replace(calm[0], reason="loop", trace=found[row][0].trace)
        found[row] = [ended, *(other for other in found[row][1:] if other.tokens != ended.tokens)]
    return found


def loops(ended: Ended, source: Sequence[int]) -> bool:
    """Whether the end of a hypothesis goes in circles and the source does not."""
    if ended.reason == "stop" and len(ended.tokens) <= LEAST_PIECES:
        return False
    tail = tail_run(ended.tokens[:-1])
    if tail.repeats < REPEATS or (ended.reason == "stop" and tail.pieces < LEAST_PIECES):
        return False
    there = longest_run(source[:-1])
    return tail.repeats > _LIKEWISE * there.repeats and tail.pieces > _LIKEWISE * there.pieces


def tail_run(tokens: Sequence[int]) -> Repetition:
    """The longest run that the sequence ends with; its last block may be broken off."""
    best = Repetition()
    for size in range(1, min(LONGEST_BLOCK, len(tokens) // 2) + 1):
        same = 0
        while same < len(tokens) - size and tokens[-1 - same] == tokens[-1 - same - size]:
            same += 1
        pieces = same + size
        if same >= size and pieces // size > best.repeats:
            best = Repetition(pieces // size, pieces)
    return best


def longest_run(tokens: Sequence[int]) -> Repetition:
    """The most repetitions, and the most pieces in repetitions, anywhere in a sequence."""
    repeats, pieces = 0, 0
    for size in range(1, min(LONGEST_BLOCK, len(tokens) // 2) + 1):
        same = 0
        for place in range(size, len(tokens)):
            same = same + 1 if tokens[place] == tokens[place - size] else 0
            if same >= size:
                repeats, pieces = max(repeats, (same + size) // size), max(pieces, same + size)
    return Repetition(repeats, pieces)


def _calm(config: BeamSearch) -> BeamSearch:
    """Greedy, at most `max_extra` tokens longer than the source, and no three pieces twice."""
    return config.plain(
        beam=1,
        n_best=1,
        loop_guard=False,
        max_ratio=min(config.max_ratio, max(1.0, config.min_ratio)),
        no_repeat_ngram=min(_BLOCKED, config.no_repeat_ngram or _BLOCKED),
    )

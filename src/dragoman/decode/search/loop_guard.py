"""The loop guard: detects translations stuck in a loop and replaces them. Plain Python, for all engines.

    search ─▶ does the end repeat itself? ── no ──▶ unchanged
                          │ yes
              does the source repeat too? ── yes ─▶ unchanged
                          │ no
                          └─▶ greedy search, at most `max_extra` tokens longer than the source, without
                              repeated trigrams ─▶ finish_reason «loop»

A repetition with period p repeats a trigram after p + 3 tokens, so the second search cannot get stuck in the
same way. Only the ends of hypotheses are examined, so text without loops costs almost nothing. Samples are
not changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dragoman.decode.search.config import BeamSearch, SearchConfig
from dragoman.decode.search.job import Ended, Job

LONGEST_BLOCK = 8
REPEATS = 4
LEAST_PIECES = 16
"""A hypothesis that the model ended itself needs this many repeated tokens: «1000000» is not a loop."""
_LIKEWISE = 4
"""A source with a repetition explains one in the translation up to this many times its length: words have
different numbers of tokens, and the limits are generous."""
_BLOCKED = 3


@dataclass(frozen=True)
class Repetition:
    """A block of tokens that occurs `repeats` times in a row; `pieces` tokens in all."""

    repeats: int = 0
    pieces: int = 0


def without_loops(
    results: list[list[Ended]],
    jobs: Sequence[Job],
    config: SearchConfig,
    search: Callable[[list[Job], SearchConfig], list[list[Ended]]],
) -> list[list[Ended]]:
    """Replace a best hypothesis that is stuck in a loop; the others of its list stay. The replacement is
    first, whatever its score: it is the translation of the sentence. Trees and code repeat themselves where
    they are right, so outputs with brackets are left as they are."""
    if not isinstance(config, BeamSearch) or not config.loop_guard or config.brackets:
        return results
    looping = [
        row for row, hypotheses in enumerate(results) if hypotheses and loops(hypotheses[0], jobs[row].pieces)
    ]
    if not looping:
        return results
    for row, replacements in zip(looping, search([jobs[row] for row in looping], _calm(config)), strict=True):
        if not replacements:  # it was cancelled
            continue
        ended = replace(replacements[0], reason="loop", trace=results[row][0].trace)
        results[row] = [ended, *(other for other in results[row][1:] if other.tokens != ended.tokens)]
    return results


def loops(ended: Ended, source: Sequence[int]) -> bool:
    """Whether the end of a hypothesis is a loop that the source does not explain."""
    if ended.reason == "stop" and len(ended.tokens) <= LEAST_PIECES:
        return False
    tail = tail_run(ended.tokens[:-1])
    if tail.repeats < REPEATS or (ended.reason == "stop" and tail.pieces < LEAST_PIECES):
        return False
    there = longest_run(source[:-1])
    return tail.repeats > _LIKEWISE * there.repeats and tail.pieces > _LIKEWISE * there.pieces


def tail_run(tokens: Sequence[int]) -> Repetition:
    """The longest repetition at the end of the sequence; its last block may be incomplete."""
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
    """The most repetitions, and the most tokens in repetitions, anywhere in a sequence."""
    repeats, pieces = 0, 0
    for size in range(1, min(LONGEST_BLOCK, len(tokens) // 2) + 1):
        same = 0
        for place in range(size, len(tokens)):
            same = same + 1 if tokens[place] == tokens[place - size] else 0
            if same >= size:
                repeats, pieces = max(repeats, (same + size) // size), max(pieces, same + size)
    return Repetition(repeats, pieces)


def _calm(config: BeamSearch) -> BeamSearch:
    """Greedy, at most `max_extra` tokens longer than the source, without repeated trigrams."""
    return config.plain(
        beam=1,
        n_best=1,
        loop_guard=False,
        max_ratio=min(config.max_ratio, max(1.0, config.min_ratio)),
        no_repeat_ngram=min(_BLOCKED, config.no_repeat_ngram or _BLOCKED),
    )

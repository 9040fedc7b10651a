"""Kinds of errors in translations, found from the texts alone, each by a simple rule."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from statistics import fmean

from dragoman.evaluate.metrics import check_same_count, sentence_chrf

SHORT, LONG = 0.5, 2.0
"""Length ratios to the reference, in characters."""
_LEAST_CHARACTERS = 4
"""Smallest difference in length that is reported."""
_REPEATS, _LONGEST_BLOCK = 3, 6
_GROUPS = 3


@dataclass(frozen=True)
class MistakeKind:
    name: str
    rule: str
    places: tuple[int, ...]
    """Indices of the sentences that have it."""


@dataclass(frozen=True)
class Slice:
    """The translations of similar sources."""

    name: str
    sentences: int
    score: float
    """Mean over the sentences: exact matches or chrF, in percent."""


def find_kinds(
    sources: Sequence[str], references: Sequence[str], outputs: Sequence[str]
) -> list[MistakeKind]:
    """The kinds of errors that occur. A translation may have several."""
    check_same_count(outputs, references)
    rules: list[tuple[str, str, Callable[[str, str, str], bool]]] = [
        ("empty", "the output is empty and the reference is not", _is_empty),
        ("copied", "the source is repeated, where the reference differs from it", _is_copy),
        ("repeated", f"the same words come {_REPEATS} times in a row, not so in the reference", _repeats),
        ("too short", f"less than {SHORT:g} times as long as the reference", _is_short),
        ("too long", f"more than {LONG:g} times as long as the reference", _is_long),
    ]
    found = []
    for name, rule, applies in rules:
        triples = enumerate(zip(sources, references, outputs, strict=True))
        places = tuple(place for place, texts in triples if applies(*texts))
        if places:
            found.append(MistakeKind(name, rule, places))
    return found


def _is_empty(_: str, reference: str, output: str) -> bool:
    return bool(reference.strip()) and not output.strip()


def _is_copy(source: str, reference: str, output: str) -> bool:
    return output.strip() == source.strip() != reference.strip()


def _repeats(_: str, reference: str, output: str) -> bool:
    return _has_loop(output.split()) and not _has_loop(reference.split())


def _is_short(_: str, reference: str, output: str) -> bool:
    few = len(output) <= len(reference) - _LEAST_CHARACTERS
    return bool(output.strip()) and few and len(output) < SHORT * len(reference)


def _is_long(_: str, reference: str, output: str) -> bool:
    many = len(output) >= len(reference) + _LEAST_CHARACTERS
    return bool(reference.strip()) and many and len(output) > LONG * len(reference)


def _has_loop(words: Sequence[str]) -> bool:
    """Whether a block of up to six words occurs three times in a row."""
    for size in range(1, _LONGEST_BLOCK + 1):
        equal = 0
        for place in range(size, len(words)):
            equal = equal + 1 if words[place] == words[place - size] else 0
            if equal >= size * (_REPEATS - 1):
                return True
    return False


def sentence_scores(references: Sequence[str], outputs: Sequence[str], exact: bool) -> list[float]:
    """Score of each translation from 0 to 100: exact match, or chrF."""
    pairs = zip(outputs, references, strict=True)
    if exact:
        return [100.0 * (output == reference) for output, reference in pairs]
    return [sentence_chrf(output, reference) for output, reference in pairs]


def slices_by_length(sources: Sequence[str], scores: Sequence[float]) -> list[Slice]:
    """Three groups of about equal size, by source length: in words, or in characters if most sources are one
    word."""
    lengths = [len(source.split()) for source in sources]
    unit = "words"
    if sorted(lengths)[len(lengths) // 2] < 2:
        lengths, unit = [len(source) for source in sources], "characters"
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    edges = sorted({lengths[order[len(order) * part // _GROUPS - 1]] for part in range(1, _GROUPS + 1)})
    slices, low = [], 0
    for edge in edges:
        chosen = [scores[place] for place in order if low <= lengths[place] <= edge]
        if chosen:
            slices.append(Slice(f"{low}–{edge} {unit}", len(chosen), fmean(chosen)))
        low = edge + 1
    return slices


def by_known_words(sources: Sequence[str], scores: Sequence[float], known: Collection[str]) -> list[Slice]:
    """Sentences with and without a source word that is not in the training data (or in the sample of them).
    Nothing if nearly all sentences are of one sort."""
    new = [any(word not in known for word in source.split()) for source in sources]
    if not 0.02 <= fmean(new) <= 0.9:
        return []
    found = []
    for name, kind in (("all words known from training", False), ("with a new word", True)):
        chosen = [score for score, own in zip(scores, new, strict=True) if own == kind]
        found.append(Slice(name, len(chosen), fmean(chosen)))
    return found

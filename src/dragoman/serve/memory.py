"""A translation memory in which similar sentences are found, with how similar they are.

Candidates share rare words with the text (an inverted index over normalised words). Their edit distance to it
in characters decides.
"""

import logging
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from dragoman.data.config import SourceConfig
from dragoman.data.formats import read_pairs
from dragoman.data.languages import languages_of
from dragoman.data.prepared import Prepared
from dragoman.data.text_hash import normalise
from dragoman.errors import UserError
from dragoman.serve.languages import resolve

TextPair = tuple[str, str]
_log = logging.getLogger("dragoman")
_LOOKED_AT = 64
"""Candidates whose distance is counted."""
_MOST_POSTINGS = 20_000
"""Words in more sentences than this say nothing."""
_LONGEST = 2000
_MOST_DROPPED = 1000
"""Pairs that were dropped and still take room, beyond as many as there are."""


@dataclass(frozen=True)
class FuzzyMatch:
    source: str
    target: str
    quality: float
    """100 where the sources are the same; 100 · (1 − distance / longer length) else."""


class TranslationMemory:
    """`put` and `drop` change it in the thread of the event loop, while others look for matches in theirs: a
    number that is in an index has a pair, or None where it was dropped."""

    def __init__(self, pairs: Iterable[TextPair]) -> None:
        self._clear()
        for pair in dict.fromkeys(pairs):
            if pair[0].strip() and pair[1].strip():
                self._add(pair)

    def _clear(self) -> None:
        self._pairs: list[TextPair | None] = []
        self._dropped = 0
        self._postings: dict[str, array[int]] = {}
        self._exact: dict[str, list[int]] = {}

    def _add(self, pair: TextPair) -> None:
        number = len(self._pairs)
        self._pairs.append(pair)
        self._exact.setdefault(same_spaces(pair[0]), []).append(number)
        for word in set(normalise(pair[0]).split()):
            self._postings.setdefault(word, array("l")).append(number)

    def __len__(self) -> int:
        return len(self._pairs) - self._dropped

    def put(self, source: str, target: str) -> None:
        """From now on the only translation of this text."""
        self.drop(source)
        self._add((source, target))

    def drop(self, source: str) -> None:
        """All translations of this text."""
        for number in self._exact.pop(same_spaces(source), ()):
            self._pairs[number] = None
            self._dropped += 1
        if self._dropped > _MOST_DROPPED + len(self):
            left = [pair for pair in self._pairs if pair is not None]
            self._clear()
            for pair in left:
                self._add(pair)

    def exact(self, text: str) -> str | None:
        """The first translation of just this text."""
        found = self._exact.get(same_spaces(text))
        pair = self._pairs[found[0]] if found else None
        return pair[1] if pair else None

    def matches(self, text: str, least: float = 70.0, most: int = 5) -> list[FuzzyMatch]:
        """The most similar, best first. An overlong text matches only itself."""
        wanted, pairs = same_spaces(text), self._pairs
        numbers = list(self._exact.get(wanted, ()))
        if len(wanted) <= _LONGEST:
            numbers += [number for number in self._candidates(wanted) if number not in numbers]
        known = [pairs[number] for number in numbers if number < len(pairs)]
        found = [FuzzyMatch(*pair, similarity(wanted, pair[0])) for pair in known if pair is not None]
        good = [match for match in found if match.quality >= least]
        return sorted(good, key=lambda match: -match.quality)[:most]

    def _candidates(self, text: str) -> list[int]:
        """Those that share most words, where a rare word counts more."""
        points: Counter[int] = Counter()
        lists = [self._postings[word] for word in set(normalise(text).split()) if word in self._postings]
        for postings in sorted(lists, key=len):
            if len(postings) > _MOST_POSTINGS and points:
                break
            weight = 1 + 1000 // len(postings)
            for number in postings[:_MOST_POSTINGS]:
                points[number] += weight
        return [number for number, _ in points.most_common(_LOOKED_AT)]


def same_spaces(text: str) -> str:
    """With single spaces: what differs only in white space is the same text."""
    return " ".join(text.split())


def similarity(one: str, other: str) -> float:
    """100 for equal texts, at most 99 for others, 0 where one is three times as long as the other."""
    from rapidfuzz.distance import Levenshtein  # the studio imports this module, and has no memory

    other = same_spaces(other)
    if one == other:
        return 100.0
    longer = max(len(one), len(other))
    shorter = min(len(one), len(other))
    if shorter * 3 < longer:
        return 0.0
    return min(99.0, round(100 * (1 - Levenshtein.distance(one, other) / longer), 1))


def open_memories(
    paths: Iterable[Path],
    served: Iterable[TextPair],
    warn: Callable[[str], None] = _log.warning,
) -> dict[TextPair, TranslationMemory]:
    """Files of pairs, and run directories, whose training data are meant; each for a pair that is served.

    A broken row of a table is left out, and `warn` is told. Of any other file what comes before a bad line is
    used; what comes after it is not, since sides could have shifted against each other there.
    """
    pairs = list(served)
    gathered: dict[TextPair, list[TextPair]] = {}
    for path in paths:
        skipped: list[str] = []
        pair, found = _read(path, pairs, skipped)
        own = gathered.setdefault(pair, [])
        before = len(own)
        try:
            own.extend(found)
        except UserError as error:
            if path.is_dir():  # damaged data of a run
                raise
            warn(f"--memory {error}; the {len(own) - before:,} pairs before that are used, the rest is not")
        if skipped:
            lines = "1 line was" if len(skipped) == 1 else f"{len(skipped):,} lines were"
            warn(f"--memory {path}: {lines} left out; the first: {skipped[0]}")
    return {pair: TranslationMemory(found) for pair, found in gathered.items()}


def _read(path: Path, served: list[TextPair], skipped: list[str]) -> tuple[TextPair, Iterator[TextPair]]:
    source = SourceConfig((str(path),))
    told = _languages_of_run(path) if path.is_dir() else languages_of(source)
    told = told or (served[0] if len(served) == 1 else None)
    if told is None:
        raise UserError(f"--memory {path}: it does not say which languages it holds; give a TMX file")
    for pair in served:
        for src, tgt in (told, told[::-1]):
            if (resolve(src, pair[:1]), resolve(tgt, pair[1:])) == pair:
                return pair, _pairs_of(path, source, told, (src, tgt) != told, skipped)
    raise UserError(f"--memory {path}: it holds {told[0]} and {told[1]}, which no run here translates")


def _pairs_of(
    path: Path, source: SourceConfig, told: TextPair, turned: bool, skipped: list[str]
) -> Iterator[TextPair]:
    if path.is_dir():
        read = _trained_on(path)
    else:
        read = ((one.src, one.tgt) for one in read_pairs(source, *told, skipped))
    return ((tgt, src) for src, tgt in read) if turned else read


def _languages_of_run(directory: Path) -> TextPair:
    try:
        data = yaml.safe_load((directory / "config.yaml").read_text("utf-8"))["data"]
        return str(data["src_lang"]), str(data["tgt_lang"])
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError):
        raise UserError(f"--memory {directory}: this is no run directory; give a run or a file") from None


def _trained_on(directory: Path) -> Iterator[TextPair]:
    prepared = Prepared.open(directory / "data")
    store = prepared.train
    for number in range(len(store)):
        yield (
            prepared.src_tokenizer.decode(store.src(number).tolist()),
            prepared.tgt_tokenizer.decode(store.tgt(number).tolist()),
        )

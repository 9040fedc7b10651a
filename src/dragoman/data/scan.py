"""The first pass over the text: hashes, codes of dropped pairs, and the sample for the tokenizer."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path
from types import TracebackType
from typing import Literal

import numpy as np

from dragoman.data.alignment.links import with_links
from dragoman.data.boundaries import DocumentNumbers
from dragoman.data.config import CleanConfig, DataConfig, SourceConfig
from dragoman.data.directions import Languages
from dragoman.data.drop_reasons import COPY, DUPLICATE, EMPTY, KEPT_CODE, is_copy, is_empty
from dragoman.data.formats import Pair, read_pairs
from dragoman.data.formats.lines import HashedFile, hashed_while_read, metered
from dragoman.data.text_hashes import (
    NumberWriter,
    SpoolWriter,
    hash_pair,
    hash_text,
    map_numbers,
    mark_repeats,
    mix,
    normalise,
    read_spool,
)
from dragoman.errors import UserError

StageProgress = Callable[[str, int, int | None], None]
"""Called from time to time with (stage, done, total or None if unknown)."""

REPORT_EVERY = 1 << 13
"""Number of pairs between two calls of a `StageProgress`."""
_CHUNK = 1 << 16
SAMPLE_CHARACTERS = 50_000_000
"""Size of the sample that the tokenizer is trained on, in characters. More would not change the merges."""
_SAMPLED_AT_ONCE = 1 << 12
"""Number of pairs that are sampled at once."""
_LONGEST_SAMPLE = 4096
"""Largest number of characters of a sentence that the tokenizer sees."""
_KEY = 0x5EED_0F_5A3B1E
"""Keeps the choice of the sample independent of other uses of the same hashes."""


Sides = tuple[Literal["src", "tgt"], ...]
Watch = Callable[[str, str, bool], None]
"""Called with both sides of every pair, and whether one of them is empty."""


@dataclass(frozen=True)
class Scan:
    """Numbers for all pairs of the training corpora, in reading order, in mapped files."""

    pairs: int
    characters: int
    pair_hashes: np.ndarray
    src_hashes: np.ndarray
    """Hashes of the normalised sources."""
    tgt_hashes: np.ndarray
    codes: np.ndarray
    """KEPT or the reason for dropping; writable."""
    duplicates: int
    """Number of pairs that occurred before. Not counted for monolingual text."""
    per_corpus: tuple[int, ...]
    """Number of pairs of each corpus."""
    directions: tuple[int, ...]
    """The direction number of each corpus: 0 for all if there is only one direction."""
    spool: Path
    """Candidate pairs for training the tokenizer, drawn with the seed of the scan."""
    seed: int
    files: dict[str, HashedFile]
    """The files that were hashed while they were read."""
    documents: np.ndarray | None = None
    """The document number of each pair, if training uses context."""

    def keep_duplicates(self) -> None:
        """Mark the pairs that occurred before as kept."""
        for start in range(0, len(self.codes), _CHUNK):
            part = self.codes[start : start + _CHUNK]
            part[part == DUPLICATE] = KEPT_CODE


def read_corpus(data: DataConfig, source: SourceConfig) -> Iterator[Pair]:
    """The pairs of a training corpus, with the links of its alignment file if it has one."""
    pairs = read_pairs(source, *data.languages_of(source))
    return pairs if source.alignment is None else with_links(pairs, source.alignment, source.files[0])


def scan(
    data: DataConfig, scratch: Path, progress: StageProgress, seed: int = 0, watch: Watch | None = None
) -> Scan:
    """Read the training corpora once. Writes hashes and codes of all pairs, and a sample of their text, to
    files under `scratch`. Pairs that occurred before are marked, whether or not they will be dropped."""
    refuse_unless_ordinary([file for source in data.train for file in source.files])
    per_corpus = []
    directions = direction_numbers(data)
    with (
        hashed_while_read() as files,
        _Scanning(scratch, data, seed, watch) as scanning,
        metered(file for source in data.train for file in source.files) as meter,
    ):
        for number in range(len(data.train)):
            before = scanning.pairs
            for pair in read_corpus(data, data.train[number]):
                scanning.add(pair, directions[number])
                if scanning.pairs % REPORT_EVERY == 0:
                    progress("read", scanning.pairs, meter.expected(scanning.pairs))
            scanning.documents.end_corpus(data.train[number])
            per_corpus.append(scanning.pairs - before)
    progress("read", scanning.pairs, scanning.pairs)
    pairs, src, tgt = (map_numbers(scanning.paths[name], np.uint64) for name in ("pair", "src", "tgt"))
    codes = map_numbers(scanning.paths["codes"], np.uint8, writable=True)
    duplicates = 0 if data.text else mark_repeats(pairs, codes, DUPLICATE, scratch)
    return Scan(
        scanning.pairs,
        scanning.characters,
        pairs,
        src,
        tgt,
        codes,
        duplicates,
        tuple(per_corpus),
        directions,
        scanning.paths["spool"],
        seed,
        files,
        scanning.documents.found(),
    )


def direction_numbers(data: DataConfig) -> tuple[int, ...]:
    """The direction number of each training corpus."""
    known: dict[Languages, int] = {}
    return tuple(known.setdefault(data.languages_of(source), len(known)) for source in data.train)


def refuse_unless_ordinary(paths: Iterable[str]) -> None:
    for path in map(Path, paths):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UserError(
                f"{path}: not an ordinary file; it has to be read more than once, so save it as one"
            )


class _Scanning:
    """Writes the files of a scan."""

    def __init__(self, scratch: Path, data: DataConfig, seed: int, watch: Watch | None) -> None:
        self.paths = {name: scratch / f"scan.{name}" for name in ("pair", "src", "tgt", "codes", "spool")}
        self.pairs = self.characters = 0
        self.documents = DocumentNumbers(data, scratch / "scan.documents")
        self._data, self._clean, self._watch = data, data.cleaning, watch
        self._sampler = _Sampler(self.paths["spool"], seed)

    def __enter__(self) -> "_Scanning":
        with ExitStack() as stack:
            self._pair, self._src, self._tgt = (
                stack.enter_context(NumberWriter(self.paths[name], "Q")) for name in ("pair", "src", "tgt")
            )
            self._codes = stack.enter_context(NumberWriter(self.paths["codes"], "B"))
            stack.enter_context(self.documents)
            stack.enter_context(self._sampler)
            self._files = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.__exit__(kind, error, trace)

    def add(self, pair: Pair, direction: int) -> None:
        """Add a pair. The same texts in another direction, or in context after another sentence, count as a
        different pair."""
        src, tgt = sides(pair, self._data)
        code = text_code(src, tgt, self._clean)
        self._codes.append(code)
        if code == KEPT_CODE:
            self.characters += len(pair.src) + len(pair.tgt)
            hashed = self.documents.add(pair, hash_pair(src, tgt) ^ direction)
            self._pair.append(hashed)
            self._src.append(hash_text(normalise(src)))
            self._tgt.append(hash_text(normalise(tgt)))
            self._sampler.add(self.pairs, hashed, pair, self.characters)
        else:
            for file in (self._pair, self._src, self._tgt):
                file.append(0)
            self.documents.add(pair, 0)
        if self._watch is not None:
            self._watch(src, tgt, code == EMPTY)
        self.pairs += 1


class _Sampler:
    """Writes to a spool all pairs that may end up in the sample.

    A pair is in the sample if its hash is below a limit that falls as the corpus grows. Pairs below the
    current limit therefore include all pairs below the final one.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self._writer, self._seed = SpoolWriter(path), seed
        self._waiting: list[tuple[int, int, Pair]] = []
        self._characters = 0

    def add(self, number: int, hashed: int, pair: Pair, characters: int) -> None:
        """Add a pair. `characters` is the size of the corpus so far."""
        short = Pair(pair.src[:_LONGEST_SAMPLE], pair.tgt[:_LONGEST_SAMPLE], pair.line)
        self._waiting.append((number, hashed, short))
        self._characters = characters
        if len(self._waiting) == _SAMPLED_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        hashes = np.array([hashed for _, hashed, _ in self._waiting], dtype=np.uint64)
        for index in np.flatnonzero(_in_sample(hashes, self._seed, self._characters)):
            number, _, pair = self._waiting[index]
            self._writer.append(number, pair)
        self._waiting.clear()

    def __enter__(self) -> "_Sampler":
        self._writer.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.__exit__(kind, error, trace)


def _in_sample(
    hashes: np.ndarray, seed: int, characters: int, sample_characters: int | None = None
) -> np.ndarray:
    """Which pairs are in the sample of a corpus of `characters` characters."""
    wanted = SAMPLE_CHARACTERS if sample_characters is None else sample_characters
    share = min(1.0, wanted / max(1, characters))
    limit = np.uint64(min(int(share * 2.0**64), (1 << 64) - 1))
    return mix(hashes, seed ^ _KEY) <= limit


def sides(pair: Pair, data: DataConfig) -> tuple[str, str]:
    """The texts that a pair is judged by. A line of monolingual text stands for both sides."""
    return (pair.tgt if data.text else pair.src), pair.tgt


def text_code(src: str, tgt: str, clean: CleanConfig) -> int:
    """The code of a pair before it is tokenized."""
    if is_empty(src, tgt):
        return EMPTY
    if clean.drop_copies and is_copy(src, tgt):
        return COPY
    return KEPT_CODE


def sample_of(scanned: Scan, progress: StageProgress, characters: int | None = None) -> Iterator[Pair]:
    """The kept pairs, or a sample of them if they exceed `characters`. The sample depends on the seed
    only."""
    return (pair for _, pair in sample_by_corpus(scanned, progress, characters))


def sample_by_corpus(
    scanned: Scan, progress: StageProgress, characters: int | None = None
) -> Iterator[tuple[int, Pair]]:
    """The pairs of `sample_of`, each with its corpus number."""
    ends = list(accumulate(scanned.per_corpus))
    spooled = read_spool(scanned.spool)
    while chunk := list(islice(spooled, _SAMPLED_AT_ONCE)):
        numbers = np.array([number for number, _ in chunk])
        below = _in_sample(scanned.pair_hashes[numbers], scanned.seed, scanned.characters, characters)
        for index in np.flatnonzero((scanned.codes[numbers] == KEPT_CODE) & below):
            number, pair = chunk[index]
            yield bisect_right(ends, number), pair
        progress("learn vocabulary", int(numbers[-1]) + 1, scanned.pairs)


def balanced_texts(data: DataConfig, scanned: Scan, progress: StageProgress, sides: Sides) -> Iterator[str]:
    """The training text of a multilingual vocabulary: every sentence of the sample once, with the sentences
    of small languages repeated, so that a language of n characters counts n^(1/T) (`data.temperature`)."""
    languages = [data.languages_of(source) for source in data.train]

    def each() -> Iterator[tuple[str, str]]:
        seen: set[tuple[str, int]] = set()
        for corpus, pair in sample_by_corpus(scanned, progress):
            for side in sides:
                language, text = languages[corpus][side == "tgt"], str(getattr(pair, side))
                key = language, hash_text(text)
                if key not in seen:
                    seen.add(key)
                    yield language, text

    sizes: dict[str, int] = {}
    for language, text in each():
        sizes[language] = sizes.get(language, 0) + len(text)
    largest = max(sizes.values(), default=1)
    copies = {own: (largest / max(1, size)) ** (1 - 1 / data.temperature) for own, size in sizes.items()}
    due = dict.fromkeys(sizes, 0.0)
    for language, text in each():
        due[language] += copies[language]
        for _ in range(int(due[language])):
            yield text
        due[language] %= 1


def each_code(codes: np.ndarray) -> Iterator[int]:
    """The codes as plain ints, converted in chunks."""
    for start in range(0, len(codes), _CHUNK):
        yield from codes[start : start + _CHUNK].tolist()

"""The first passes over the text: hashes of every pair, what is left out, what a tokenizer learns from."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dragoman.data.alignment.links import with_links
from dragoman.data.clean import COPY, DUPLICATE, EMPTY, KEPT, is_copy, is_empty
from dragoman.data.config import CleanConfig, DataConfig
from dragoman.data.formats import Pair, read_pairs
from dragoman.data.formats.lines import metered
from dragoman.data.hashes import NumberWriter, map_numbers, mark_repeats
from dragoman.data.text_hash import hash_pair, hash_text, mix, normalise

Progress = Callable[[str, int, int | None], None]
"""Called now and then with (stage, done, total or None where it is not known yet)."""

REPORT_EVERY = 1 << 13
"""Pairs between two calls of a `Progress`."""
_CHUNK = 1 << 16
SAMPLE_CHARACTERS = 50_000_000
"""Of a larger corpus the tokenizer sees a sample of about this size; more would not change the merges."""
_LONGEST_SAMPLE = 4096
"""Characters of one sentence that the tokenizer sees."""
_KEY = 0x5EED_0F_5A3B1E
"""Keeps the choice of the sample apart from other uses of the same hashes."""


@dataclass(frozen=True)
class Scan:
    """Numbers of all pairs of the training corpora, in the order of reading, in mapped files."""

    pairs: int
    characters: int
    pair_hashes: np.ndarray
    src_hashes: np.ndarray
    """Of normalised sources."""
    tgt_hashes: np.ndarray
    codes: np.ndarray
    """KEPT or why not; writable."""


def _read_train(data: DataConfig) -> Iterator[Pair]:
    for source in data.train:
        yield from read_pairs(source, data.src_lang, data.tgt_lang)


def _read_checked(data: DataConfig) -> Iterator[Pair]:
    """The same, with the word alignments looked through: what is wrong with them should come out early."""
    for source in data.train:
        yield from with_links(read_pairs(source, data.src_lang, data.tgt_lang), source)


def scan(data: DataConfig, scratch: Path, progress: Progress) -> Scan:
    """Read the training corpora once; write hashes and codes of all pairs into files under `scratch`."""
    names = ("pair", "src", "tgt", "codes")
    paths = {name: scratch / f"scan.{name}" for name in names}
    characters = number = 0
    with (
        NumberWriter(paths["pair"], "Q") as pair_hashes,
        NumberWriter(paths["src"], "Q") as src_hashes,
        NumberWriter(paths["tgt"], "Q") as tgt_hashes,
        NumberWriter(paths["codes"], "B") as codes,
        metered(file for source in data.train for file in source.files) as meter,
    ):
        for number, pair in enumerate(_read_checked(data), start=1):
            src, tgt = sides(pair, data)
            code = text_code(src, tgt, data.cleaning)
            codes.append(code)
            if code == KEPT:
                characters += len(pair.src) + len(pair.tgt)
                pair_hashes.append(hash_pair(src, tgt))
                src_hashes.append(hash_text(normalise(src)))
                tgt_hashes.append(hash_text(normalise(tgt)))
            else:
                for file in (pair_hashes, src_hashes, tgt_hashes):
                    file.append(0)
            if number % REPORT_EVERY == 0:
                progress("read", number, meter.expected(number))
    progress("read", number, number)
    pairs, src, tgt = (map_numbers(paths[name], np.uint64) for name in names[:3])
    mapped_codes = map_numbers(paths["codes"], np.uint8, writable=True)
    if data.cleaning.drop_duplicates:
        mark_repeats(pairs, mapped_codes, DUPLICATE, scratch)
    return Scan(number, characters, pairs, src, tgt, mapped_codes)


def sides(pair: Pair, data: DataConfig) -> tuple[str, str]:
    """The texts that a pair is judged by: a line of text stands for both."""
    return (pair.tgt if data.text else pair.src), pair.tgt


def text_code(src: str, tgt: str, clean: CleanConfig) -> int:
    """What can be said of a pair by itself, before it has tokens."""
    if is_empty(src, tgt):
        return EMPTY
    if clean.drop_copies and is_copy(src, tgt):
        return COPY
    return KEPT


def sample(
    scanned: Scan, data: DataConfig, seed: int, progress: Progress, characters: int | None = None
) -> Iterator[Pair]:
    """The kept pairs, or where there are more `characters` a sample of them that only the seed decides."""
    characters = SAMPLE_CHARACTERS if characters is None else characters
    share = min(1.0, characters / max(1, scanned.characters))
    limit = np.uint64(min(int(share * 2.0**64), (1 << 64) - 1))

    def chosen() -> Iterator[bool]:
        for start in range(0, scanned.pairs, _CHUNK):
            part = slice(start, start + _CHUNK)
            below = mix(scanned.pair_hashes[part], seed ^ _KEY) <= limit
            yield from ((scanned.codes[part] == KEPT) & below).tolist()

    # Not strict: a file that changes meanwhile is found out by its stamp in the end.
    for number, (pair, use) in enumerate(zip(_read_train(data), chosen(), strict=False), start=1):
        if use:
            yield Pair(pair.src[:_LONGEST_SAMPLE], pair.tgt[:_LONGEST_SAMPLE], pair.line)
        if number % REPORT_EVERY == 0 or number == scanned.pairs:
            progress("learn vocabulary", number, scanned.pairs)


def each_code(codes: np.ndarray) -> Iterator[int]:
    """The codes one by one, without a scalar array for each."""
    for start in range(0, len(codes), _CHUNK):
        yield from codes[start : start + _CHUNK].tolist()

"""Suspects of a whole corpus: a judge that has seen a sample of it, and what it says of every pair."""

from itertools import chain, islice
from pathlib import Path

import numpy as np

from dragoman.data.clean import KEPT, code_of
from dragoman.data.config import DataConfig
from dragoman.data.formats import read_pairs
from dragoman.data.hashes import map_numbers, mark_repeats
from dragoman.data.scan import Scan, StageProgress, sample
from dragoman.data.suspects import Judge
from dragoman.data.text_hash import mix

SAMPLE = 60_000
"""Pairs that a judge learns from."""
_SAMPLE_CHARACTERS = 8_000_000
_CHUNK = 4096
_KEY = 0x5EED_0F_AE46
"""Keeps the hashes of pairs apart from those of their sides."""


def judge_of(scanned: Scan, progress: StageProgress, languages: tuple[str, str]) -> Judge:
    """A judge that has seen a sample of the corpus."""
    pairs = list(sample(scanned, progress, _SAMPLE_CHARACTERS))
    return Judge(pairs[:: -(-len(pairs) // SAMPLE) or 1], languages)


def near_duplicates(scanned: Scan, scratch: Path) -> np.ndarray:
    """Which pairs are the same as an earlier one but for case and punctuation; codes in a mapped file."""
    hashes, codes = scratch / "near.hashes", scratch / "near.codes"
    with hashes.open("wb") as hash_file, codes.open("wb") as code_file:
        for start in range(0, scanned.pairs, 1 << 20):
            part = slice(start, start + (1 << 20))
            (mix(scanned.src_hashes[part], _KEY) ^ scanned.tgt_hashes[part]).tofile(hash_file)
            scanned.codes[part].tofile(code_file)
    marked = map_numbers(codes, np.uint8, writable=True)
    mark_repeats(map_numbers(hashes, np.uint64), marked, code_of("near_duplicate"), scratch)
    return marked


def mark_suspects(data: DataConfig, scanned: Scan, scratch: Path, progress: StageProgress) -> None:
    """Set the codes of the kinds of suspects that are to be left out. Reads the corpora once more."""
    asked = data.cleaning.dropped_suspects
    if "near_duplicate" in asked:
        scanned.codes[:] = near_duplicates(scanned, scratch)
    judge = judge_of(scanned, progress, (data.src_lang, data.tgt_lang))
    kinds = [kind for kind in asked if kind in judge.kinds]
    if not kinds:
        return
    read = chain.from_iterable(read_pairs(source, data.src_lang, data.tgt_lang) for source in data.train)
    done = 0
    while chunk := list(islice(read, _CHUNK)):
        flags = judge.flags(chunk)
        codes = scanned.codes[done : done + len(chunk)]
        for kind in kinds:
            codes[(codes == KEPT) & flags[kind]] = code_of(kind)
        done += len(chunk)
        progress("judge", done, scanned.pairs)

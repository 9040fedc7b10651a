"""Find the suspicious pairs of a corpus with a judge trained on a sample of it."""

from itertools import accumulate, islice
from pathlib import Path

import numpy as np

from dragoman.data.config import DataConfig
from dragoman.data.directions import Languages
from dragoman.data.drop_reasons import KEPT_CODE, code_of
from dragoman.data.formats import read_pairs
from dragoman.data.scan import Scan, StageProgress, sample_by_corpus
from dragoman.data.suspects import Judge
from dragoman.data.text_hashes import map_numbers, mark_repeats, mix

SAMPLE = 60_000
"""Number of pairs that a judge is trained on."""
_SAMPLE_CHARACTERS = 8_000_000
_CHUNK = 4096
_KEY = 0x5EED_0F_AE46
"""Keeps the hashes of pairs separate from the hashes of their sides."""


def judge_of(scanned: Scan, progress: StageProgress, languages: Languages, direction: int = 0) -> Judge:
    """A judge trained on a sample of the corpora of one direction."""
    found = sample_by_corpus(scanned, progress, _SAMPLE_CHARACTERS)
    pairs = [pair for corpus, pair in found if scanned.directions[corpus] == direction]
    return Judge(pairs[:: -(-len(pairs) // SAMPLE) or 1], languages)


def near_duplicates(scanned: Scan, scratch: Path) -> np.ndarray:
    """Codes in a mapped file that mark pairs equal to an earlier one up to case and punctuation."""
    hashes, codes = scratch / "near.hashes", scratch / "near.codes"
    with hashes.open("wb") as hash_file, codes.open("wb") as code_file:
        ends = list(accumulate(scanned.per_corpus))
        for begin, end, direction in zip([0, *ends], ends, scanned.directions, strict=False):
            for start in range(begin, end, 1 << 20):
                part = slice(start, min(end, start + (1 << 20)))
                key = _KEY + direction
                (mix(scanned.src_hashes[part], key) ^ scanned.tgt_hashes[part]).tofile(hash_file)
                scanned.codes[part].tofile(code_file)
    marked = map_numbers(codes, np.uint8, writable=True)
    mark_repeats(map_numbers(hashes, np.uint64), marked, code_of("near_duplicate"), scratch)
    return marked


def mark_suspects(data: DataConfig, scanned: Scan, scratch: Path, progress: StageProgress) -> None:
    """Set the codes of the suspicious pairs that are to be dropped. Reads the corpora once more."""
    asked = data.cleaning.dropped_suspects
    if "near_duplicate" in asked:
        scanned.codes[:] = near_duplicates(scanned, scratch)
    judges: dict[int, Judge] = {}
    done = 0
    for source, direction in zip(data.train, scanned.directions, strict=True):
        languages = data.languages_of(source)
        if direction not in judges:
            judges[direction] = judge_of(scanned, progress, languages, direction)
        judge = judges[direction]
        kinds = [kind for kind in asked if kind in judge.kinds]
        read = read_pairs(source, *languages)
        while chunk := list(islice(read, _CHUNK)):
            flags = judge.flags(chunk) if kinds else {}
            codes = scanned.codes[done : done + len(chunk)]
            for kind in kinds:
                codes[(codes == KEPT_CODE) & flags[kind]] = code_of(kind)
            done += len(chunk)
            progress("judge", done, scanned.pairs)

"""Text in a store, without the preparation around it."""

from pathlib import Path

import numpy as np

from dragoman.data.store import PairStore
from dragoman.data.store_writer import StoreWriter
from dragoman.data.verified_files import OutputFiles, StoreFiles

WORD = np.dtype(np.uint16)


def stored(directory: Path, corpora: list[list[list[int]]]) -> PairStore:
    """Each corpus is a list of lines; an empty line is not stored, but counted, as the preparation does."""
    with OutputFiles() as output:
        writer = StoreWriter(output, directory, "text", WORD, WORD)
        for lines in corpora:
            for number, line in enumerate(lines, 1):
                ids = (np.array(line, dtype=np.int64), np.array([len(line)]))
                nothing = (np.zeros(0, dtype=np.int64), np.array([0]))
                keep = np.array([len(line) > 0])
                writer.append(nothing, ids, np.array([number]), keep, nothing)
            writer.end_corpus()
        meta = writer.finish([f"{n}.txt" for n in range(len(corpora))], [1.0] * len(corpora))
    return PairStore(StoreFiles(directory, output.hashed), "text", meta)

"""Metadata of a `PairStore`, and checks against the sizes of its files."""

import math
from dataclasses import dataclass, field

import numpy as np

from dragoman.config import LEFT_OUT
from dragoman.data.hashed import DamagedStore, StoreFiles
from dragoman.data.sampler import CorpusRange

SIDES = ("src", "tgt")
LINKS = "links"
_LINK_DTYPE = np.dtype(np.uint32)
_ID_DTYPES = ("uint16", "uint32")


@dataclass(frozen=True)
class ShardMeta:
    pairs: int
    tgt_tokens: int


@dataclass(frozen=True)
class StoreMeta:
    pairs: int
    src_dtype: str
    tgt_dtype: str
    corpora: tuple[CorpusRange, ...]
    names: tuple[str, ...]
    """The first file of each corpus."""
    linked: bool = False
    """Whether there are word alignments."""
    shards: tuple[ShardMeta, ...] = ()
    """The shards. Empty if the store is not sharded; its file names then have no numbers."""
    documents: bool = field(default=False, metadata=LEFT_OUT)
    """Whether the document of each pair is known."""


def dtypes_of(meta: StoreMeta) -> dict[str, np.dtype]:
    """The data type of the ids of each side."""
    return side_dtypes(np.dtype(meta.src_dtype), np.dtype(meta.tgt_dtype), meta.linked)


def side_dtypes(src: np.dtype, tgt: np.dtype, linked: bool) -> dict[str, np.dtype]:
    return {"src": src, "tgt": tgt} | ({LINKS: _LINK_DTYPE} if linked else {})


def shard_name(store: str, number: int) -> str:
    return f"{store}-{number:05d}"


def check_meta(files: StoreFiles, name: str, meta: StoreMeta) -> None:
    """Refuse metadata that contradict themselves or the file sizes, before memory is allocated."""
    ends = [corpus.end for corpus in meta.corpora]
    ordered = (
        [corpus.start for corpus in meta.corpora] == [0, *ends][: len(ends)]
        and all(corpus.start <= corpus.end for corpus in meta.corpora)
        and all(0 <= corpus.weight < math.inf for corpus in meta.corpora)
        and (ends[-1] if ends else 0) == meta.pairs
    )
    counts = [shard.pairs for shard in meta.shards] or [meta.pairs]
    if (
        not ordered
        or len(meta.names) != len(meta.corpora)
        or not {meta.src_dtype, meta.tgt_dtype} <= set(_ID_DTYPES)
        or sum(counts) != meta.pairs
        or min(counts) < 0
    ):
        raise DamagedStore(f"{files.directory}: damaged: what is said of '{name}' contradicts itself")
    sizes = {f"{name}.lines": 8 * meta.pairs}
    if meta.documents:
        sizes[f"{name}.documents"] = 8 * meta.pairs
    dtypes = dtypes_of(meta)
    sizes |= {f"{name}.{side}.lengths": 4 * meta.pairs for side in dtypes}
    for number, count in enumerate(counts):
        shard = shard_name(name, number) if meta.shards else name
        sizes |= {f"{shard}.{side}.offsets": 8 * (count + 1) for side in dtypes}
        if meta.shards:
            sizes[f"{shard}.tgt.ids"] = meta.shards[number].tgt_tokens * dtypes["tgt"].itemsize
    for file, size in sizes.items():
        if files.size(file) != size:
            raise DamagedStore(f"{files.directory / file}: damaged: {size:,} bytes belong to its pairs")

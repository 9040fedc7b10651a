"""Writes the files of a `PairStore`, in one directory or as shards in several, and their metadata.

    cache/FINGERPRINT/train-00000.src.ids ──▶ /disk1/shards-FINGERPRINT…/train-00000.src.ids
                      train-00001.src.ids ──▶ /disk2/shards-FINGERPRINT…/train-00001.src.ids

The name of a directory of shards encodes the contents and the sharding, so two processes that run at once
make the same shards. Runs also point to the shards: an existing directory is kept if its contents are equal,
and replaced if it is damaged, so that the runs have whole shards again. The metadata are checked against the
sizes of the files.
"""

import filecmp
import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dragoman.config import LEFT_OUT
from dragoman.data.config import ShardConfig
from dragoman.data.sampler import CorpusRange
from dragoman.data.verified_files import DamagedStore, HashedWriter, OutputFiles, StoreFiles
from dragoman.files import discard, new_directory

SIDES = ("src", "tgt")
LINK_SIDE = "links"
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
    return {"src": src, "tgt": tgt} | ({LINK_SIDE: _LINK_DTYPE} if linked else {})


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


class StoreWriter:
    """Writes the files of a `PairStore` chunk by chunk, one corpus after another. With `shard_pairs`, shards
    of that size are written to `shard_directories` in turn."""

    def __init__(
        self,
        output: OutputFiles,
        directory: Path,
        name: str,
        src_dtype: np.dtype,
        tgt_dtype: np.dtype,
        linked: bool = False,
        documents: bool = False,
        shard_pairs: int | None = None,
        shard_directories: Sequence[Path] = (),
    ) -> None:
        self.documents = documents
        self._dtypes = side_dtypes(src_dtype, tgt_dtype, linked)
        self._output, self._directory, self._name = output, directory, name
        self._shard_pairs, self._shard_directories = shard_pairs, shard_directories or (directory,)
        numbers = ("lines", "documents") if documents else ("lines",)
        self._whole = {
            kind: output.create(directory / f"{name}.{kind}")
            for kind in (*(f"{side}.lengths" for side in self._dtypes), *numbers)
        }
        self._part: dict[str, HashedWriter] = {}
        self._tokens: dict[str, int] = {}
        self._shards: list[ShardMeta] = []
        self._pairs = self._in_shard = 0
        self._ends: list[int] = []
        self._begin_shard()

    def append(
        self,
        src: tuple[np.ndarray, np.ndarray],
        tgt: tuple[np.ndarray, np.ndarray],
        lines: np.ndarray,
        keep: np.ndarray,
        links: tuple[np.ndarray, np.ndarray],
        documents: np.ndarray | None = None,
    ) -> None:
        """Add the pairs for which `keep` holds. A side is (all ids, length of each sentence). Links and
        document numbers are ignored if the store has none."""
        kept = {
            side: (ids[np.repeat(keep, lengths)].astype(self._dtypes[side]), lengths[keep])
            for side, (ids, lengths) in zip((*SIDES, LINK_SIDE), (src, tgt, links), strict=True)
            if side in self._dtypes
        }
        for side, (_, lengths) in kept.items():
            self._whole[f"{side}.lengths"].write(lengths.astype(np.int32))
        self._whole["lines"].write(lines[keep].astype(np.int64))
        if documents is not None:
            self._whole["documents"].write(documents[keep].astype(np.int64))
        count, done = int(keep.sum()), 0
        self._pairs += count
        ends = {side: np.append(0, np.cumsum(lengths, dtype=np.int64)) for side, (_, lengths) in kept.items()}
        while done < count:
            if self._in_shard == self._shard_pairs:
                self._end_shard()
                self._begin_shard()
            until = count if self._shard_pairs is None else done + self._shard_pairs - self._in_shard
            until = min(count, until)
            for side, (ids, _) in kept.items():
                first, last = ends[side][done], ends[side][until]
                self._part[f"{side}.ids"].write(ids[first:last])
                offsets = self._tokens[side] + ends[side][done + 1 : until + 1] - first
                self._part[f"{side}.offsets"].write(offsets)
                self._tokens[side] += int(last - first)
            self._in_shard += until - done
            done = until

    def end_corpus(self) -> None:
        self._ends.append(self._pairs)

    def finish(self, names: Sequence[str], weights: Sequence[float]) -> StoreMeta:
        self._end_shard()
        starts = [0, *self._ends[:-1]]
        corpora = zip(starts, self._ends, weights, strict=True)
        return StoreMeta(
            pairs=self._pairs,
            src_dtype=self._dtypes["src"].name,
            tgt_dtype=self._dtypes["tgt"].name,
            corpora=tuple(CorpusRange(start, end, weight) for start, end, weight in corpora),
            names=tuple(names),
            linked=LINK_SIDE in self._dtypes,
            shards=() if self._shard_pairs is None else tuple(self._shards),
            documents=self.documents,
        )

    def _begin_shard(self) -> None:
        directory, name = self._directory, self._name
        if self._shard_pairs is not None:
            number = len(self._shards)
            directory = self._shard_directories[number % len(self._shard_directories)]
            name = shard_name(name, number)
        self._in_shard = 0
        self._tokens = dict.fromkeys(self._dtypes, 0)
        for side in self._dtypes:
            for kind in ("ids", "offsets"):
                self._part[f"{side}.{kind}"] = self._output.create(directory / f"{name}.{side}.{kind}")
            self._part[f"{side}.offsets"].write(np.zeros(1, dtype=np.int64))

    def _end_shard(self) -> None:
        self._shards.append(ShardMeta(self._in_shard, self._tokens["tgt"]))
        for file in self._part.values():
            file.close()


class ShardPlaces:
    """The directories that the shards of one preparation are written to, in turn."""

    def __init__(self, works: dict[Path, Path], turn: Sequence[Path]) -> None:
        self._works = works
        self.directories = [works[target] for target in turn]

    def point_from(self, result: Path) -> None:
        """Create symlinks to the final paths of the shards."""
        for target, work in self._works.items():
            for path in sorted(work.iterdir()):
                (result / path.name).symlink_to(target / path.name)


def shard_directories(config: ShardConfig) -> list[Path]:
    return [Path(directory).resolve() for directory in config.directories]


@contextmanager
def shard_places(config: ShardConfig, fingerprint: str) -> Iterator[ShardPlaces]:
    """Directories for new shards. They get their final names when the `with` block ends without an error."""
    directories = shard_directories(config)
    layout = json.dumps([fingerprint, config.pairs, [str(directory) for directory in directories]])
    name = f"shards-{hashlib.sha256(layout.encode()).hexdigest()[:32]}"
    turn = [directory / name for directory in directories]
    with ExitStack() as stack:
        works = {target: stack.enter_context(_new_or_same(target)) for target in dict.fromkeys(turn)}
        yield ShardPlaces(works, turn)


@contextmanager
def _new_or_same(target: Path) -> Iterator[Path]:
    with new_directory(target, keep_existing=True) as work:
        yield work
        if target.is_dir() and not _same(target, work):
            with suppress(FileNotFoundError):  # another process may have been faster
                discard(target)


def _same(found: Path, made: Path) -> bool:
    """Whether the files of two directories have the same names and contents."""
    names = sorted(path.name for path in made.iterdir())
    if sorted(path.name for path in found.iterdir()) != names:
        return False
    return filecmp.cmpfiles(found, made, names, shallow=False)[0] == names

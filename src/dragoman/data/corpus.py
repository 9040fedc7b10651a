"""From files to an encoded corpus: check, clean, de-duplicate, split, learn the vocabulary, encode.

    files ──read──> fingerprint ──known?──> open what is there       (scan.py, fingerprint.py)
      │       ├───> hashes, codes ──> duplicates, held-out pairs     (scan.py, text_hashes.py, split.py)
      │       └───> a sample ──> tokenizer                           (scan.py, text_hashes.py)
      └──read──> ids ──> memory-mapped stores                        (encode.py, store.py)

Every pass is streamed; peak memory does not grow with the corpus. If prepared data exist, the files are only
hashed first to look them up, unless the caller has already read the corpus.
"""

import math
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import numpy as np

from dragoman.config import to_dict
from dragoman.data.config import CleanConfig, DataConfig, ShardConfig, SourceConfig
from dragoman.data.drop_reasons import KEPT_CODE, REASONS
from dragoman.data.encode import Encoders, Sink, encode_corpus
from dragoman.data.fingerprint import (
    Stamp,
    check_unchanged,
    fingerprint,
    found_or_made,
    has_prepared,
    remove_killed_preparations,
)
from dragoman.data.formats import read_pairs
from dragoman.data.mark_suspects import mark_suspects
from dragoman.data.prepared import STORE_VERSION, TOKENIZER_FILES, Prepared, PreparedMeta, overlap
from dragoman.data.sampler import CorpusRange
from dragoman.data.scan import (
    Scan,
    Sides,
    StageProgress,
    Watch,
    balanced_texts,
    each_code,
    read_corpus,
    sample_of,
    scan,
    sides,
    text_code,
)
from dragoman.data.seal import JOINT_TOKENIZER, write_seal
from dragoman.data.split import (
    count_kept,
    hold_out,
    hold_out_directions,
    hold_out_documents,
    hold_out_end,
)
from dragoman.data.store import PairStore
from dragoman.data.store_writer import ShardPlaces, StoreMeta, StoreWriter, shard_directories, shard_places
from dragoman.data.text_hashes import write_sorted_set
from dragoman.data.verified_files import OutputFiles
from dragoman.data.workers import open_workers
from dragoman.errors import UserError
from dragoman.files import new_directory, scratch_directory
from dragoman.text.context import SEPARATOR
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

__all__ = [
    "CleanConfig",
    "CorpusRange",
    "DataConfig",
    "PairStore",
    "Prepared",
    "ShardConfig",
    "SourceConfig",
    "StageProgress",
    "overlap",
    "prepare",
]


def prepare(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    *,
    seed: int,
    cache: Path,
    progress: StageProgress | None = None,
    given: Sequence[Tokenizer] = (),
    scanned: Scan | None = None,
) -> Prepared:
    """The encoded corpus in `cache/<fingerprint>`, prepared unless the same contents were prepared before.
    `given` tokenizers, one shared or one per side, replace training new ones. `scanned` is the caller's scan
    of the same corpora with the same seed; it is consumed.

    Any number of processes may prepare the same corpus at the same time, and may be killed at any moment.
    """
    report = progress or _say_nothing
    remove_killed_preparations([cache, *shard_directories(data.shards)])
    with ExitStack() as stack, _explained(data, cache):
        if scanned is None and not has_prepared(cache):
            scanned = scan(data, stack.enter_context(scratch_directory(cache)), report, seed)
        known = scanned.files if scanned is not None else {}
        hashes = [each.sha256 for each in given]
        name, stamps = fingerprint(data, tokenizer, seed, report, hashes, known)
        return _found_or_made(data, tokenizer, seed, cache / name, stamps, report, given, scanned)


@contextmanager
def _explained(data: DataConfig, cache: Path) -> Iterator[None]:
    """Turn an error of the operating system while writing into one sentence."""
    try:
        yield
    except OSError as error:
        where = ", ".join([str(cache), *dict.fromkeys(data.shards.directories)])
        raise UserError(f"{where}: cannot write the prepared corpus ({error.strerror or error})") from None


@contextmanager
def scanned_once(
    data: DataConfig, cache: Path, seed: int, report: StageProgress, watch: Watch | None = None
) -> Iterator[Scan]:
    """One pass over the training corpora, for a caller that examines them before preparing them."""
    with ExitStack() as stack:
        with _explained(data, cache):
            scratch = stack.enter_context(scratch_directory(cache))
            scanned = scan(data, scratch, report, seed, watch)
        yield scanned


def _found_or_made(
    data: DataConfig,
    tokenizer: TokenizerConfig,
    seed: int,
    target: Path,
    stamps: Sequence[Stamp],
    report: StageProgress,
    given: Sequence[Tokenizer],
    scanned: Scan | None,
) -> Prepared:
    scans = [scanned] if scanned is not None else []

    def make() -> Prepared:
        with (
            new_directory(target, keep_existing=True) as result,
            shard_places(data.shards, target.name) as places,
        ):
            preparation = _Preparation(data, seed, result, report, places, scans.pop() if scans else None)
            preparation.run(tokenizer, target.name, given)
            check_unchanged(stamps)
            places.point_from(result)
        return Prepared.open(target)

    return found_or_made(target, Prepared.open_whole, make)


class _Preparation:
    """Prepares a corpus in the directory `result`."""

    def __init__(
        self,
        data: DataConfig,
        seed: int,
        result: Path,
        report: StageProgress,
        places: ShardPlaces,
        scanned: Scan | None,
    ) -> None:
        self.data, self.seed, self.places, self.scanned = data, seed, places, scanned
        self.result, self.report = result, report
        self.scratch, self.output = result / "scratch", OutputFiles()

    def run(self, config: TokenizerConfig, fingerprint: str, given: Sequence[Tokenizer]) -> None:
        self.scratch.mkdir()
        with self.output:
            meta = self._write(config, fingerprint, given)
        write_seal(self.result, to_dict(meta), self.output)
        shutil.rmtree(self.scratch)

    def _write(self, config: TokenizerConfig, fingerprint: str, given: Sequence[Tokenizer]) -> PreparedMeta:
        scanned = self.scanned or scan(self.data, self.scratch, self.report, self.seed)
        if not self.data.cleaning.drop_duplicates:
            scanned.keep_duplicates()
        if self.data.cleaning.drop_suspects:
            mark_suspects(self.data, scanned, self.scratch, self.report)
        if not self.data.valid and self.data.text:
            hold_out_end(scanned.codes, self.data.valid_size)
        elif not self.data.valid and scanned.documents is not None:
            hold_out_documents(
                scanned.documents, scanned.src_hashes, scanned.codes, self.data.valid_size, self.seed
            )
        elif not self.data.valid and self.data.directions is not None:
            ends = list(accumulate(scanned.per_corpus))
            corpora = list(zip([0, *ends[:-1]], ends, scanned.directions, strict=True))
            sides = scanned.src_hashes, scanned.tgt_hashes
            hold_out_directions(*sides, scanned.codes, corpora, self.data.valid_size, self.seed)
        elif not self.data.valid:
            hold_out(scanned.src_hashes, scanned.codes, self.data.valid_size, self.seed)
        if not count_kept(scanned.codes):
            raise UserError(f"train: {_nothing_left(np.bincount(scanned.codes, minlength=256))}")
        tokenizers = list(given) or self._learn(scanned, config)
        if self.data.context is not None and any(own.separator is None for own in tokenizers):
            raise UserError(
                f"data.context: the vocabulary that is begun with has no piece {SEPARATOR}; begin with a run "
                "that was trained with a context, or without start"
            )
        names = (JOINT_TOKENIZER,) if len(tokenizers) == 1 else TOKENIZER_FILES
        files = [self.result / name for name in names]
        for file, tokenizer in zip(files, tokenizers, strict=True):
            tokenizer.save(file)
            self.output.add(file)
        with open_workers(files, scanned.pairs) as workers:
            encoders = Encoders.of(tokenizers[0], tokenizers[-1], self.data.cleaning, workers)
            train, held_out, dropped = self._encode_train(scanned, encoders)
            valid, valid_dropped = (held_out, {}) if held_out else self._encode_valid(encoders)
        for side, hashes in (("src", scanned.src_hashes), ("tgt", scanned.tgt_hashes)):
            seen = self.output.create(self.result / f"seen.{side}")
            write_sorted_set(hashes, scanned.codes, seen, self.scratch)
        names_of_tokenizers = tuple(tokenizer.sha256 for tokenizer in tokenizers)
        return PreparedMeta(
            STORE_VERSION,
            fingerprint,
            train,
            valid,
            names_of_tokenizers,
            dropped,
            valid_dropped,
            self.data.context,
        )

    def _learn(self, scanned: Scan, config: TokenizerConfig) -> list[Tokenizer]:
        """One joint tokenizer, or one per side."""
        tokenized: tuple[Sides, ...] = (("src", "tgt"),) if config.joint else (("src",), ("tgt",))
        return [Tokenizer.train(self._texts(scanned, own), config) for own in tokenized]

    def _texts(self, scanned: Scan, own: Sides) -> Iterator[str]:
        """The texts that the vocabulary of these sides is trained on."""
        if self.data.directions is not None:
            yield from balanced_texts(self.data, scanned, self.report, own)
            return
        for pair in sample_of(scanned, self.report):
            for side in own:
                yield getattr(pair, side)

    def _encode_train(
        self, scanned: Scan, encoders: Encoders
    ) -> tuple[StoreMeta, StoreMeta | None, dict[str, int]]:
        """Write the training store, and the store of held-out pairs unless there is a validation corpus.

        Sets `scanned.codes` to the final code of each pair.
        """
        data = self.data
        linked = any(source.alignment is not None for source in data.train)
        train = self._writer("train", encoders, linked, data.shards.pairs)
        valid = None if data.valid else self._writer("valid", encoders)
        sink = Sink(train, valid, self.output.create(self.result / "train.dropped"), data.cleaning)
        codes = each_code(scanned.codes)
        done = 0
        for number, source in enumerate(data.train):
            encoders = self._directed(encoders, source)
            read = read_corpus(data, source)
            # Not strict: the codes continue with those of the next corpus.
            coded = ((code, pair) for pair, code in zip(read, codes, strict=False))
            for final in encode_corpus(number, coded, encoders, sink):
                scanned.codes[done : done + len(final)] = final
                done += len(final)
                self.report("encode", done, scanned.pairs)
        if sink.totals[KEPT_CODE] == 0:
            raise UserError(f"train: {_nothing_left(sink.totals)}")
        names = [source.files[0] for source in data.train]
        train_meta = train.finish(names, [source.weight for source in data.train])
        valid_meta = valid.finish(names, [1.0] * len(names)) if valid else None
        return train_meta, valid_meta, _by_reason(sink.totals)

    def _encode_valid(self, encoders: Encoders) -> tuple[StoreMeta, dict[str, int]]:
        """Write the store of the validation corpora. The user chose them, so only pairs that no model can
        process are left out."""
        data = self.data
        lenient = CleanConfig(max_length=data.cleaning.max_length, max_ratio=math.inf)
        valid = self._writer("valid", encoders)
        sink = Sink(valid, None, self.output.create(self.result / "valid.dropped"), lenient)
        for number, source in enumerate(data.valid):
            encoders = self._directed(encoders, source)
            read = read_pairs(source, *data.languages_of(source))
            coded = ((text_code(*sides(pair, data), lenient), pair) for pair in read)
            for _ in encode_corpus(number, coded, encoders, sink):
                self.report("encode valid", int(sink.totals.sum()), None)
        if sink.totals[KEPT_CODE] == 0:
            raise UserError(f"valid: {_nothing_left(sink.totals)}")
        meta = valid.finish([source.files[0] for source in data.valid], [1.0] * len(data.valid))
        return meta, _by_reason(sink.totals)

    def _directed(self, encoders: Encoders, source: SourceConfig) -> Encoders:
        """Encoders with the control pieces of the corpus's direction, in a run of several directions."""
        directions = self.data.directions
        if directions is None:
            return encoders
        opening = directions.opening(self.data.languages_of(source))
        return replace(encoders, opening=encoders.src.control_ids(opening))

    def _writer(
        self, name: str, encoders: Encoders, linked: bool = False, shard_pairs: int | None = None
    ) -> StoreWriter:
        src_dtype, tgt_dtype = (
            np.dtype(np.uint16 if tokenizer.size <= 1 << 16 else np.uint32)
            for tokenizer in (encoders.src, encoders.tgt)
        )
        elsewhere = self.places.directories
        in_context = self.data.context is not None
        return StoreWriter(
            self.output, self.result, name, src_dtype, tgt_dtype, linked, in_context, shard_pairs, elsewhere
        )


def _by_reason(totals: np.ndarray) -> dict[str, int]:
    """The number of pairs per reason, for the reasons that occurred."""
    return {reason: int(totals[code]) for code, reason in enumerate(REASONS, start=1) if totals[code]}


def _nothing_left(totals: np.ndarray) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in _by_reason(totals).items())
    return f"no pair is left of {int(totals.sum())} ({reasons}); see which with  dragoman corpus --lines"


def _say_nothing(stage: str, done: int, total: int | None) -> None:
    pass

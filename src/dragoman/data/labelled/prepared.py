"""The labelled examples of a run: read and checked once, split, and stored with their tokenizer.

meta.json  hashes     fingerprint, the examples of each corpus, and the seal of all files
tokenizer.json
train.jsonl  valid.jsonl                   {"texts", "target", "origin"}, one example per line
train.values  valid.values  test.values    the values of images and series, in the same order
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.config import from_dict, to_dict
from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.fingerprint import check_unchanged, found_or_made, remove_killed_preparations, stamp_files
from dragoman.data.labelled.config import VECTORS, TaskConfig
from dragoman.data.labelled.example import AnswerSpan, Example, Target
from dragoman.data.labelled.read import check_targets, read_examples
from dragoman.data.sampler import CorpusRange
from dragoman.data.scan import StageProgress
from dragoman.data.seal import (
    JOINT_TOKENIZER,
    META,
    Meta,
    link_store,
    load_tokenizer,
    read_seal,
    refuse_unless_whole,
    warn_if_unverifiable,
    write_seal,
)
from dragoman.data.vectors.arrays import labels_file
from dragoman.data.vectors.images import files_of_images
from dragoman.data.vectors.stack import series_parts, stacked_arrays
from dragoman.data.verified_files import DamagedStore, OutputFiles, StoreFiles
from dragoman.errors import UserError
from dragoman.files import new_directory
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

TASK_STORE_VERSION = 2
_EARLIER = 1
"""The earlier format version, without a seal."""
_CONTENTS_VERSION = 1
_NAMES = ("train", "valid")
_CHUNK = 1000
"""Number of examples that are written at once."""


@dataclass(frozen=True)
class LabelledMeta:
    """The contents of `meta.json`, except for the seal."""

    labelled: int
    """Version of this format."""
    fingerprint: str
    corpora: tuple[CorpusRange, ...]
    arrays: dict[str, Any] = field(default_factory=dict)
    """Data type and shape of the values of each part, for examples that have values."""


class PreparedTask:
    """Opened labelled examples, with the same interface for training as `Prepared`."""

    def __init__(self, files: StoreFiles, meta: LabelledMeta) -> None:
        self.directory, self.fingerprint, self._files = files.directory, meta.fingerprint, files
        self.src_tokenizer = self.tgt_tokenizer = load_tokenizer(files)
        self.train, self.valid = (_read(files, f"{name}.jsonl") for name in _NAMES)
        self.arrays = {name: _array(files, name, told) for name, told in meta.arrays.items()}
        self.corpora = list(meta.corpora)
        self.dropped: dict[str, int] = {}
        ends = [corpus.end for corpus in self.corpora]
        if [corpus.start for corpus in self.corpora] + [len(self.train)] != [0, *ends] or ends != sorted(
            ends
        ):
            raise DamagedStore(f"{self.directory / META}: damaged: its corpora are not those of the examples")

    @property
    def valid_targets(self) -> int:
        """Number of targets that the validation loss is summed over."""
        return sum(len(e.target) if isinstance(e.target, tuple) else 1 for e in self.valid)

    @classmethod
    def open(cls, directory: Path) -> "PreparedTask":
        found = cls.of(*read_seal(directory))
        warn_if_unverifiable(found._files)
        return found

    @classmethod
    def open_whole(cls, directory: Path) -> "PreparedTask":
        """Open with every byte verified. An earlier format without a seal is refused."""
        found = cls.of(*read_seal(directory))
        refuse_unless_whole(found._files)
        return found

    @classmethod
    def of(cls, plain: Meta, files: StoreFiles) -> "PreparedTask":
        version = plain.get("labelled")
        if version != (TASK_STORE_VERSION if files.verifiable else _EARLIER):
            raise DamagedStore(
                f"{files.directory}: prepared in format {version}, this is {TASK_STORE_VERSION}"
            )
        try:
            meta = from_dict(LabelledMeta, plain, str(files.directory / META))
        except (UserError, RecursionError) as error:
            raise DamagedStore(str(error)) from None
        files.check_sizes()
        return cls(files, meta)

    def check(self) -> None:
        """Nothing to do: all files were read when this was opened."""

    def link_into(self, directory: Path) -> "PreparedTask":
        """The same examples at `directory`, as hard links if the file system supports them, else as
        copies."""
        link_store(self._files, directory)
        return PreparedTask.open(directory)


def prepare_task(
    data: DataConfig,
    task: TaskConfig,
    tokenizer: TokenizerConfig,
    *,
    seed: int,
    cache: Path,
    progress: StageProgress,
    given: Sequence[Tokenizer] = (),
) -> PreparedTask:
    """`data.corpus.prepare` for labelled examples. A `given` tokenizer is used as it is; otherwise one is
    trained on the training texts."""
    remove_killed_preparations([cache])
    files = [file for source in (*data.train, *data.valid) for file in source.files]
    more = _files_of_vectors(files, task)
    stamps = stamp_files([*files, *more], progress)
    hash_of = {stamp.path: stamp.sha256 for stamp in stamps}
    made_from = {
        "version": _CONTENTS_VERSION,
        "sources": [
            [to_dict(source) | {"files": [hash_of[file] for file in source.files]} for source in side]
            for side in (data.train, data.valid)
        ],
        "valid_size": data.valid_size,
        "task": to_dict(task),
        "tokenizer": to_dict(tokenizer),
        "seed": seed,
        "given": [each.sha256 for each in given],
        **({"more": [hash_of[file] for file in more]} if more else {}),
    }
    fingerprint = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    target = cache / fingerprint

    def make() -> PreparedTask:
        with new_directory(target, keep_existing=True) as result:
            _write(result, fingerprint, data, task, tokenizer, seed, given)
            check_unchanged(stamps)
        return PreparedTask.open(target)

    try:
        return found_or_made(target, PreparedTask.open_whole, make)
    except OSError as error:
        raise UserError(f"{cache}: cannot write the examples ({error.strerror or error})") from None


def _write(
    result: Path,
    fingerprint: str,
    data: DataConfig,
    task: TaskConfig,
    config: TokenizerConfig,
    seed: int,
    given: Sequence[Tokenizer],
) -> None:
    arrays: dict[str, np.ndarray] = {}
    if task.kind == "forecast":
        arrays, windows = series_parts(data, task)
        corpora, valid = [windows["train"]], windows["valid"]
    else:
        corpora = [_read_checked(source, task) for source in data.train]
        valid = [example for source in data.valid for example in _read_checked(source, task)]
        if not data.valid:
            corpora, valid = _hold_out(corpora, data.valid_size, seed)
    train = [example for corpus in corpora for example in corpus]
    if task.kind in VECTORS and not arrays:
        arrays = {"train": stacked_arrays(train, task), "valid": stacked_arrays(valid, task)}
    joined = " ".join if task.kind == "tag" else "\n".join
    said = [(str(each.target),) if task.kind == "caption" else each.texts for each in train]
    texts = (text for own in said for text in joined(own).split("\n"))
    tokenizer = given[0] if given else Tokenizer.train(texts, config)
    ranges, start = [], 0
    sources = data.train[:1] if task.kind == "forecast" else data.train  # windows of all series are a corpus
    for source, corpus in zip(sources, corpora, strict=True):
        ranges.append(CorpusRange(start, start := start + len(corpus), source.weight))
    with OutputFiles() as output:
        tokenizer.save(result / JOINT_TOKENIZER)
        output.add(result / JOINT_TOKENIZER)
        for name, examples in zip(_NAMES, (train, valid), strict=True):
            file = output.create(result / f"{name}.jsonl")
            for start in range(0, len(examples), _CHUNK):
                file.write("".join(map(_line, examples[start : start + _CHUNK])).encode("utf-8"))
        for name, values in arrays.items():
            output.create(result / f"{name}.values").write(values)
    told = {name: [values.dtype.str, *values.shape] for name, values in arrays.items()}
    meta = to_dict(LabelledMeta(TASK_STORE_VERSION, fingerprint, tuple(ranges), told))
    write_seal(result, {name: value for name, value in meta.items() if name != "arrays" or value}, output)


def _files_of_vectors(files: Sequence[str], task: TaskConfig) -> list[str]:
    """The files that the example files refer to: images, and the labels of arrays."""
    if task.kind in ("image", "caption"):
        return [more for file in files for more in files_of_images(file, task)]
    if task.kind == "series":
        return [labels for labels in map(labels_file, files) if labels is not None]
    return []


def _array(files: StoreFiles, name: str, told: Any) -> np.ndarray:
    try:
        kind, *shape = told
        return np.frombuffer(files.read(f"{name}.values"), dtype=np.dtype(kind)).reshape(shape)
    except (TypeError, ValueError):
        raise DamagedStore(f"{files.directory / name}.values: damaged: these are not its numbers") from None


def _read_checked(source: SourceConfig, task: TaskConfig) -> list[Example]:
    return list(check_targets(read_examples(source, task), task))


def _hold_out(
    corpora: Sequence[list[Example]], valid_size: int, seed: int
) -> tuple[list[list[Example]], list[Example]]:
    """Hold out at most a tenth for validation, chosen by a hash of the texts, so that duplicates stay
    together."""

    def rank(example: Example) -> str:
        return hashlib.sha256(json.dumps([seed, *example.texts]).encode()).hexdigest()

    ranks = [[rank(example) for example in corpus] for corpus in corpora]
    total = sum(map(len, corpora))
    ordered = sorted(rank for corpus in ranks for rank in corpus)
    wanted = min(valid_size, total // 10)
    limit = ordered[wanted - 1] if wanted else ""
    kept: list[list[Example]] = []
    valid: list[Example] = []
    for corpus, own in zip(corpora, ranks, strict=True):
        kept.append([example for example, rank in zip(corpus, own, strict=True) if rank > limit])
        valid += [example for example, rank in zip(corpus, own, strict=True) if rank <= limit]
    return kept, valid


def _line(example: Example) -> str:
    target: Any = example.target
    if isinstance(target, tuple):
        target = [[t.start, t.text] if isinstance(t, AnswerSpan) else t for t in target]
    plain = {"texts": example.texts, "target": target, "origin": example.origin}
    return json.dumps(plain, ensure_ascii=False) + "\n"


def _read(files: StoreFiles, name: str) -> list[Example]:
    try:
        rows = [json.loads(line) for line in files.read(name).decode("utf-8").split("\n")[:-1]]
        return [Example(tuple(row["texts"]), _plain_target(row["target"]), row["origin"]) for row in rows]
    except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, RecursionError):
        raise DamagedStore(f"{files.directory / name}: damaged: these are no labelled examples") from None


def _plain_target(target: Any) -> Target | None:
    if not isinstance(target, list):
        return target
    answers: Iterable[Any] = target
    return tuple(AnswerSpan(*entry) if isinstance(entry, list) else entry for entry in answers)

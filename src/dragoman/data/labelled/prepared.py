"""Labelled examples as a run keeps them: read and checked once, split, with the tokenizer they are read by.

meta.json         fingerprint, SHA-256 of the other files, and which examples are of which corpus
tokenizer.json
train.jsonl  valid.jsonl      {"texts", "target", "origin"}, one example a line
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.config import from_dict, to_dict
from dragoman.data.cache import new_directory
from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.fingerprint import check_unchanged, stamp_files
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import Answer, Example, Target
from dragoman.data.labelled.read import check_targets, read_examples
from dragoman.data.prepared import JOINT_TOKENIZER, META, link_or_copy
from dragoman.data.sampler import CorpusRange
from dragoman.data.scan import Progress
from dragoman.errors import UserError
from dragoman.files import hash_file
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

FORMAT_VERSION = 1
_FILES = (JOINT_TOKENIZER, "train.jsonl", "valid.jsonl")


@dataclass(frozen=True)
class LabelledMeta:
    """`meta.json`."""

    labelled: int
    """The version of this format."""
    fingerprint: str
    corpora: tuple[dict[str, Any], ...]
    files: dict[str, str]


class PreparedTask:
    """Open labelled examples; for all who train it is what a `Prepared` is."""

    def __init__(self, directory: Path, meta: LabelledMeta) -> None:
        self.directory, self.fingerprint = directory, meta.fingerprint
        self.src_tokenizer = self.tgt_tokenizer = Tokenizer.load(directory / JOINT_TOKENIZER)
        self.train, self.valid = (list(_read(directory / f"{name}.jsonl")) for name in ("train", "valid"))
        self.corpora = [from_dict(CorpusRange, plain, "corpora") for plain in meta.corpora]
        self.dropped: dict[str, int] = {}

    @property
    def valid_targets(self) -> int:
        return sum(len(e.target) if isinstance(e.target, tuple) else 1 for e in self.valid)

    @classmethod
    def open(cls, directory: Path) -> "PreparedTask":
        try:
            meta = from_dict(LabelledMeta, json.loads((directory / META).read_bytes()), str(directory / META))
        except (OSError, ValueError) as error:
            raise UserError(f"{directory / META}: cannot be read ({error})") from None
        for name in _FILES:
            path = directory / name
            if not path.is_file() or hash_file(path) != meta.files.get(name):
                raise UserError(f"{path}: missing or changed since it was prepared; prepare again")
        return cls(directory, meta)

    def link_into(self, directory: Path) -> "PreparedTask":
        """The same examples at `directory`, by hard links where the file system can, else copied."""
        try:
            with new_directory(directory) as result:
                for name in (META, *_FILES):
                    link_or_copy(self.directory / name, result / name)
        except OSError as error:
            raise UserError(f"{directory}: cannot hold the examples ({error.strerror or error})") from None
        return PreparedTask.open(directory)


def prepare_task(
    data: DataConfig,
    task: TaskConfig,
    tokenizer: TokenizerConfig,
    *,
    seed: int,
    cache: Path,
    progress: Progress,
    given: Sequence[Tokenizer] = (),
) -> PreparedTask:
    """As `data.corpus.prepare`, for labelled examples. The tokenizer that is `given` is used; without one, it
    is learnt from the training texts."""
    files = [file for source in (*data.train, *data.valid) for file in source.files]
    stamps = stamp_files(files, progress)
    hash_of = {stamp.path: stamp.sha256 for stamp in stamps}
    made_from = {
        "version": FORMAT_VERSION,
        "sources": [
            [to_dict(source) | {"files": [hash_of[file] for file in source.files]} for source in side]
            for side in (data.train, data.valid)
        ],
        "valid_size": data.valid_size,
        "task": to_dict(task),
        "tokenizer": to_dict(tokenizer),
        "seed": seed,
        "given": [each.sha256 for each in given],
    }
    fingerprint = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()
    target = cache / fingerprint
    if not target.is_dir():
        try:
            with new_directory(target) as result:
                _write(result, fingerprint, data, task, tokenizer, seed, given)
                check_unchanged(stamps)
        except OSError as error:
            raise UserError(f"{cache}: cannot write the examples ({error.strerror or error})") from None
    return PreparedTask.open(target)


def _write(
    result: Path,
    fingerprint: str,
    data: DataConfig,
    task: TaskConfig,
    config: TokenizerConfig,
    seed: int,
    given: Sequence[Tokenizer],
) -> None:
    corpora = [_read_checked(source, task) for source in data.train]
    valid = [example for source in data.valid for example in _read_checked(source, task)]
    if not data.valid:
        corpora, valid = _hold_out(corpora, data.valid_size, seed)
    train = [example for corpus in corpora for example in corpus]
    joined = " ".join if task.kind == "tag" else "\n".join
    texts = (text for example in train for text in joined(example.texts).split("\n"))
    tokenizer = given[0] if given else Tokenizer.train(texts, config)
    tokenizer.save(result / JOINT_TOKENIZER)
    for name, examples in (("train", train), ("valid", valid)):
        (result / f"{name}.jsonl").write_text("".join(map(_line, examples)), encoding="utf-8")
    ranges, start = [], 0
    for source, corpus in zip(data.train, corpora, strict=True):
        ranges.append(to_dict(CorpusRange(start, start := start + len(corpus), source.weight)))
    hashes = {name: hash_file(result / name) for name in _FILES}
    meta = LabelledMeta(FORMAT_VERSION, fingerprint, tuple(ranges), hashes)
    (result / META).write_text(json.dumps(to_dict(meta), indent=1), encoding="utf-8")


def _read_checked(source: SourceConfig, task: TaskConfig) -> list[Example]:
    return list(check_targets(read_examples(source, task), task))


def _hold_out(
    corpora: Sequence[list[Example]], valid_size: int, seed: int
) -> tuple[list[list[Example]], list[Example]]:
    """Up to a tenth, chosen by a hash of the texts, so that texts that come twice stay together."""

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
        target = [[t.start, t.text] if isinstance(t, Answer) else t for t in target]
    plain = {"texts": example.texts, "target": target, "origin": example.origin}
    return json.dumps(plain, ensure_ascii=False) + "\n"


def _read(path: Path) -> Iterator[Example]:
    for line in path.read_text(encoding="utf-8").split("\n")[:-1]:
        plain = json.loads(line)
        yield Example(tuple(plain["texts"]), _plain_target(plain["target"]), plain["origin"])


def _plain_target(target: Any) -> Target | None:
    if not isinstance(target, list):
        return target
    answers: Iterable[Any] = target
    return tuple(Answer(*entry) if isinstance(entry, list) else entry for entry in answers)

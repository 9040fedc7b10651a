"""The run directory: everything needed to resume, to translate, and to see what was done.

config.yaml       the resolved configuration
manifest.json     SHA-256 of the configuration and the tokenizers; fingerprint of the data
tokenizer.json    or tokenizer.src.json and tokenizer.tgt.json
data/             the prepared corpus, as hard links; only training needs it
checkpoints/      one directory each, named by its update
best.json         which of them is the best
shortlist.txt     the lexical shortlist, once it has been used
confidence.json   the calibration of confidences, once it has been used
metrics.jsonl  samples.jsonl  timing.jsonl  log.txt
plan.json  contest.json  half.json  tuning.json  report.md
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np

from dragoman import checkpoint
from dragoman.checkpoint.model import (
    BEST,
    CHECKPOINTS,
    load_tokenizers,
    read_best,
    save_tokenizers,
    tokenizer_files,
)
from dragoman.config import load_yaml, to_dict
from dragoman.data.corpus import Prepared
from dragoman.data.directions import Languages
from dragoman.data.fingerprint import CACHE
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.prepared import mend
from dragoman.decode.alignment.attention import SequencePair
from dragoman.decode.search.shortlist import Shortlist, learn_shortlist
from dragoman.decode.translator.generate import Generator
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError, no_such_file
from dragoman.files import (
    explained,
    hash_file,
    new_directory,
    open_to_append,
    read_regular,
    remove_all_unfinished,
    remove_unfinished,
    replace_file,
    try_lock,
    write_new,
)
from dragoman.runs.config import InferenceConfig, RunConfig, read_config, read_inference_config, to_yaml
from dragoman.runs.records import read_records
from dragoman.text.tokenizer import Tokenizer

Corpus = Prepared | PreparedTask
"""The prepared data of a run."""
CONFIG, MANIFEST, DATA, LOCK = "config.yaml", "manifest.json", "data", ".lock"
SHORTLIST = "shortlist.txt"
_FORMAT, _MANIFEST_LIMIT = 1, 1 << 20
_SEAL = "seal"
_EXAMPLES = 500  # validation pairs for choosing the attention that aligns best


@dataclass(frozen=True)
class Outcome:
    """How a training session ended."""

    reason: str
    update: int
    exit_status: int = 0
    """0 if the run is finished; 130 after Ctrl-C and 143 after SIGTERM."""


class Run:
    """A run directory whose manifest was verified. What its configuration says is read when it is needed:
    translating needs less of it than training."""

    def __init__(self, directory: Path, written: Mapping[str, Any], fingerprint: str) -> None:
        self.directory, self.fingerprint = directory, fingerprint
        self._written = written
        self.outcome: Outcome | None = None
        """The outcome of the session that has just trained it."""
        self._shortlist: Shortlist | None = None

    def __repr__(self) -> str:
        return f"Run({str(self.directory)!r})"

    @cached_property
    def config(self) -> RunConfig:
        """The whole configuration."""
        return read_config(self._written)

    @cached_property
    def inference(self) -> InferenceConfig:
        """The part of the configuration that using the model needs."""
        return read_inference_config(self._written)

    @property
    def checkpoints(self) -> Path:
        return self.directory / CHECKPOINTS

    @property
    def best(self) -> dict[str, Any] | None:
        """Name, metric and value of the best checkpoint; None before the first validation."""
        return read_best(self.directory)

    @property
    def last(self) -> str | None:
        """Name of the newest checkpoint."""
        return next(reversed(checkpoint.names(self.checkpoints)), None)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        return read_records(self.directory / "metrics.jsonl")

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return load_tokenizers(self.directory)

    def distinct_tokenizers(self) -> list[Tokenizer]:
        """One if both sides share it."""
        src, tgt = self.tokenizers()
        return [src] if src.sha256 == tgt.sha256 else [src, tgt]

    def prepared(self) -> Prepared:
        """The training data of a run on pairs or on text."""
        corpus = self.corpus()
        if isinstance(corpus, PreparedTask):
            raise UserError(f"{self.directory}: this run has learnt from labelled examples, not from pairs")
        return corpus

    def corpus(self) -> Corpus:
        """The training data of the run."""
        if self.config.data.imported is not None:
            raise UserError(
                f"{self.directory}: this model was imported and has no training data; train it further in a "
                f"new run:  dragoman train FILES {quote(f'start={self.directory}')}"
            )
        if not (self.directory / DATA).is_dir():
            raise UserError(f"{self.directory / DATA}: the training data are gone, so the run cannot go on")
        kind = Prepared if self.config.task is None else PreparedTask
        prepared = kind.open(self.directory / DATA)
        if prepared.fingerprint != self.fingerprint:
            raise UserError(
                f"{self.directory / DATA}: this is another corpus (fingerprint {prepared.fingerprint[:12]}…) "
                f"than the run was made with ({self.fingerprint[:12]}…): start a new run for it"
            )
        return prepared

    def check_data(self) -> None:
        """Verify every byte of the training data. Damaged files are restored from the cache if they are
        intact there."""
        data = self.directory / DATA
        remove_unfinished(data)  # left by a process that died while restoring them
        if data.is_dir():
            mend(data, self.directory.parent / CACHE / self.fingerprint)

    def translator(
        self,
        which: str = "best",
        device: str = "auto",
        precision: str = "float32",
        languages: Languages | None = None,
        undirected: bool = False,
    ) -> Translator:
        """The model with its tokenizers. `which` is `best`, `last`, or the name of a checkpoint. A run of
        several languages translates between `languages`; `undirected`: the caller says so for each text."""
        from dragoman.runs.opening import open_translator

        return open_translator([self], which, device, precision, languages, undirected)

    def generator(self, which: str = "best", device: str = "auto") -> Generator:
        """The language model of a run, for generating text from prompts."""
        from dragoman.runs.opening import open_generator

        return open_generator(self, which, device)

    def shortlist(self) -> Shortlist:
        """The lexical shortlist: learned from the training data when it is first needed, and stored in the
        run."""
        if self._shortlist is None:
            self._shortlist = self._read_or_learn(self.directory / SHORTLIST)
        return self._shortlist

    def _read_or_learn(self, path: Path) -> Shortlist:
        if path.is_file():
            return Shortlist.read(path, self.fingerprint, self.tokenizers()[1].size)
        if not (self.directory / DATA).is_dir():
            raise UserError(f"{path}: it is learnt from the training data, and those are gone; go without it")
        prepared = self.prepared()
        src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
        learned = learn_shortlist(prepared.train, (src.size, tgt.size), joint=src.config.joint)
        with suppress(OSError):  # a read-only run can be used too
            replace_file(path, learned.file(self.fingerprint))
        return learned

    def validation_examples(self) -> list[SequencePair]:
        """Pairs spread over the validation set; none if the data are missing."""
        try:
            store = self.prepared().valid
        except UserError:
            return []
        count = min(len(store), _EXAMPLES)
        chosen = np.linspace(0, len(store) - 1, count).round().astype(int).tolist() if count else []
        return [(store.src(number), store.tgt(number)) for number in chosen]

    @classmethod
    def create(
        cls,
        directory: Path,
        config: RunConfig,
        prepared: Corpus,
        write_more: Callable[[Path], None] | None = None,
    ) -> "Run":
        """Create a run directory atomically. `write_more` adds files that must be there from the first."""

        def fill(temporary: Path) -> None:
            prepared.link_into(temporary / DATA)
            save_tokenizers(temporary, prepared.src_tokenizer, prepared.tgt_tokenizer)
            (temporary / CHECKPOINTS).mkdir()
            if write_more is not None:
                write_more(temporary)

        return cls.create_with(directory, config, prepared.fingerprint, fill)

    @classmethod
    def create_with(
        cls, directory: Path, config: RunConfig, fingerprint: str, fill: Callable[[Path], None]
    ) -> "Run":
        """Create a run directory; `fill` writes tokenizers, checkpoints and, if there are any, data."""
        with explained(directory), new_directory(directory) as temporary:
            fill(temporary)
            written = write_new(temporary / CONFIG, (to_yaml(config).encode(),))
            _write_manifest(temporary, fingerprint, [written.sha256])
        return cls(directory, to_dict(config), fingerprint)

    @classmethod
    def exists(cls, directory: Path) -> bool:
        return (directory / MANIFEST).is_file()

    @classmethod
    def open(cls, directory: Path | str) -> "Run":
        """Check the manifest and read the configuration."""
        directory = Path(directory)
        with explained(directory, "read"):
            if not cls.exists(directory):
                raise _not_a_run(directory)
            manifest = _read_manifest(directory)
        for name, allowed in manifest["files"].items():
            path = directory / name
            with explained(path, "read"):
                if not path.exists():
                    raise UserError(f"{path}: this file of the run is missing")
                sha256 = hash_file(path)
            if sha256 not in allowed:
                hint = "; change a run with  dragoman resume RUN field=value" if name == CONFIG else ""
                raise UserError(f"{path}: changed: its SHA-256 is not the one in {MANIFEST}{hint}")
        return cls(directory, load_yaml(directory / CONFIG), manifest["fingerprint"])

    def replace_config(self, config: RunConfig) -> None:
        """Write a changed configuration. During the exchange the manifest accepts the old and the new one."""
        path, text = self.directory / CONFIG, to_yaml(config).encode()
        new = hashlib.sha256(text).hexdigest()
        with explained(path):
            _write_manifest(self.directory, self.fingerprint, [hash_file(path), new])
            replace_file(path, text)
            _write_manifest(self.directory, self.fingerprint, [new])
        self._written = to_dict(config)
        self.config = config
        self.__dict__.pop("inference", None)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run: only one process may train it. The lock is released when the process ends."""
        path = self.directory / LOCK
        with explained(path):
            file = open_to_append(path)
        with file:
            if try_lock(file.fileno()) is False:
                raise UserError(f"{self.directory}: another process is training this run")
            for directory in (self.directory, self.checkpoints):
                remove_all_unfinished(directory)
            self._settle_manifest()
            yield

    def _settle_manifest(self) -> None:
        """Repair a manifest that accepts two configurations, after a kill during an exchange."""
        with explained(self.directory):
            if len(_read_manifest(self.directory)["files"][CONFIG]) > 1:
                _write_manifest(self.directory, self.fingerprint, [hash_file(self.directory / CONFIG)])

    def forget_best(self) -> None:
        (self.directory / BEST).unlink(missing_ok=True)


def _not_a_run(directory: Path) -> UserError:
    if not directory.exists():
        if " " in directory.name:
            return UserError(f"{directory}: there is no such run directory; it comes first, before any text")
        return no_such_file(directory, "run directory")
    return UserError(f"{directory}: this is not a run directory (it has no {MANIFEST})")


def _write_manifest(directory: Path, fingerprint: str, config_hashes: list[str]) -> None:
    files = {path.name: [hash_file(path)] for path in tokenizer_files(directory)}
    data = {"format": _FORMAT, "fingerprint": fingerprint, "files": {CONFIG: config_hashes, **files}}
    replace_file(directory / MANIFEST, json.dumps(data | {_SEAL: _seal_of(data)}, indent=1).encode())


def _seal_of(data: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data).encode()).hexdigest()


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    raw = read_regular(path, _MANIFEST_LIMIT)
    try:
        data = json.loads(raw)
        files = {str(name): [str(value) for value in hashes] for name, hashes in data["files"].items()}
        fingerprint, written_by = str(data["fingerprint"]), data["format"]
        seal = data.pop(_SEAL, None)  # earlier versions wrote none
        whole = set(data) == {"format", "fingerprint", "files"} and seal in (None, _seal_of(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path}: damaged: this is not a run's manifest") from None
    if written_by != _FORMAT:
        raise UserError(f"{path}: written in format {written_by}; this version of dragoman reads {_FORMAT}")
    if not whole or CONFIG not in files or any(Path(name).name != name for name in files):
        raise UserError(f"{path}: damaged: this is not a run's manifest")
    return {"files": files, "fingerprint": fingerprint}

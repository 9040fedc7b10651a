"""The run directory: all it takes to go on, to translate, or to see what was done.

config.yaml       the resolved configuration
manifest.json     SHA-256 of the configuration and the tokenizers; fingerprint of the data
tokenizer.json    or tokenizer.src.json and tokenizer.tgt.json
data/             the prepared corpus, as hard links; only training needs it
checkpoints/      one directory each, named by its update
best.json         which of them is the best
shortlist.txt     which target pieces a source piece can become, once it has been asked for
metrics.jsonl  samples.jsonl  timing.jsonl  log.txt
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dragoman import checkpoint
from dragoman.checkpoint.files import sync_directory, write_atomically
from dragoman.checkpoint.model import (
    BEST,
    CHECKPOINTS,
    load_tokenizers,
    read_best,
    save_tokenizers,
    tokenizer_files,
)
from dragoman.config import load_yaml
from dragoman.data.corpus import Prepared
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.decode.alignment.attention import Pair
from dragoman.decode.search.shortlist import Shortlist, learn_shortlist
from dragoman.decode.translator.generate import Generator
from dragoman.decode.translator.translator import Translator
from dragoman.errors import UserError
from dragoman.files import hash_file
from dragoman.runs.config import RunConfig, read_config, to_yaml
from dragoman.runs.records import read_records
from dragoman.text.tokenizer import Tokenizer

Corpus = Prepared | PreparedTask
"""The prepared data of a run."""
CONFIG, MANIFEST, DATA, LOCK = "config.yaml", "manifest.json", "data", ".lock"
SHORTLIST = "shortlist.txt"
_FORMAT = 1
_EXAMPLES = 500  # validation pairs that choose the attention to align by


@dataclass(frozen=True)
class Outcome:
    """How a training session ended."""

    reason: str
    update: int
    exit_status: int = 0
    """0 where the run is finished; 130 after Ctrl-C and 143 after SIGTERM."""


class Run:
    """A run directory that is known to be whole."""

    def __init__(self, directory: Path, config: RunConfig, fingerprint: str) -> None:
        self.directory, self.config, self.fingerprint = directory, config, fingerprint
        self.outcome: Outcome | None = None
        """Of the session that has just trained it."""
        self._shortlist: Shortlist | None = None

    def __repr__(self) -> str:
        return f"Run({str(self.directory)!r})"

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
        """One where both sides have the same."""
        src, tgt = self.tokenizers()
        return [src] if src.sha256 == tgt.sha256 else [src, tgt]

    def prepared(self) -> Prepared:
        """The training data of a run on pairs or on text."""
        found = self.corpus()
        if isinstance(found, PreparedTask):
            raise UserError(f"{self.directory}: this run has learnt from labelled examples, not from pairs")
        return found

    def corpus(self) -> Corpus:
        """The training data of the run."""
        if self.config.data.imported is not None:
            raise UserError(
                f"{self.directory}: this model was imported and has no training data; train it further in a "
                f"new run:  dragoman train FILES start={self.directory}"
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

    def translator(self, which: str = "best", device: str = "auto", precision: str = "float32") -> Translator:
        """The model with its tokenizers. `which` is best, last, or the name of a checkpoint."""
        from dragoman.runs.opening import open_translator

        return open_translator([self], which, device, precision)

    def generator(self, which: str = "best", device: str = "auto") -> Generator:
        """The model of a run on text, to go on from prompts."""
        from dragoman.runs.opening import open_generator

        return open_generator(self, which, device)

    def shortlist(self) -> Shortlist:
        """Which target pieces the pieces of a source can become: learnt from the training data when it is
        first asked for, and kept beside them."""
        if self._shortlist is None:
            self._shortlist = self._read_or_learn(self.directory / SHORTLIST)
        return self._shortlist

    def _read_or_learn(self, path: Path) -> Shortlist:
        if path.is_file():
            return Shortlist.read(path, self.fingerprint)
        if not (self.directory / DATA).is_dir():
            raise UserError(f"{path}: it is learnt from the training data, and those are gone; go without it")
        prepared = self.prepared()
        src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
        found = learn_shortlist(prepared.train, (src.size, tgt.size), joint=src.config.joint)
        with suppress(OSError):  # a run that may not be written to can be used
            write_atomically(path, found.file(self.fingerprint))
        return found

    def validation_examples(self) -> list[Pair]:
        """Pairs from all over the validation set; none if the data are gone: only training needs them."""
        try:
            store = self.prepared().valid
        except UserError:
            return []
        count = min(len(store), _EXAMPLES)
        chosen = np.linspace(0, len(store) - 1, count).round().astype(int).tolist() if count else []
        return [(store.src(number), store.tgt(number)) for number in chosen]

    @classmethod
    def create(cls, directory: Path, config: RunConfig, prepared: Corpus) -> "Run":
        """A new run directory, there as a whole or not at all."""

        def fill(temporary: Path) -> None:
            prepared.link_into(temporary / DATA)
            save_tokenizers(temporary, prepared.src_tokenizer, prepared.tgt_tokenizer)
            (temporary / CHECKPOINTS).mkdir()

        return cls.create_with(directory, config, prepared.fingerprint, fill)

    @classmethod
    def create_with(
        cls, directory: Path, config: RunConfig, fingerprint: str, fill: Callable[[Path], None]
    ) -> "Run":
        """A new run directory; `fill` writes tokenizers, checkpoints and, where there are any, data."""
        if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
            raise UserError(f"{directory}: there is something here; choose another directory with --out")
        directory.parent.mkdir(parents=True, exist_ok=True)
        temporary = directory.with_name(f".{directory.name}.creating")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        fill(temporary)
        write_atomically(temporary / CONFIG, to_yaml(config).encode())
        _write_manifest(temporary, fingerprint, [hash_file(temporary / CONFIG)])
        sync_directory(temporary)
        os.rename(temporary, directory)  # noqa: PTH104 (an empty directory may stand there)
        sync_directory(directory.parent)
        return cls(directory, config, fingerprint)

    @classmethod
    def exists(cls, directory: Path) -> bool:
        return (directory / MANIFEST).is_file()

    @classmethod
    def open(cls, directory: Path | str) -> "Run":
        """Check the manifest and read the configuration."""
        directory = Path(directory)
        if not cls.exists(directory):
            raise UserError(f"{directory}: this is not a run directory (it has no {MANIFEST})")
        manifest = _read_manifest(directory)
        for name, allowed in manifest["files"].items():
            path = directory / name
            if not path.is_file():
                raise UserError(f"{path}: this file of the run is missing")
            if hash_file(path) not in allowed:
                hint = "; change a run with  dragoman resume RUN field=value" if name == CONFIG else ""
                raise UserError(f"{path}: changed: its SHA-256 is not the one in {MANIFEST}{hint}")
        return cls(directory, read_config(load_yaml(directory / CONFIG)), manifest["fingerprint"])

    def replace_config(self, config: RunConfig) -> None:
        """Write a changed configuration. While it is exchanged the manifest allows the old and the new."""
        path, text = self.directory / CONFIG, to_yaml(config).encode()
        new = hashlib.sha256(text).hexdigest()
        _write_manifest(self.directory, self.fingerprint, [hash_file(path), new])
        write_atomically(path, text)
        _write_manifest(self.directory, self.fingerprint, [new])
        self.config = config

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Only one process trains a run. The lock goes with the process, however it ends."""
        with (self.directory / LOCK).open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(f"{self.directory}: another process is training this run") from None
            yield

    def forget_best(self) -> None:
        (self.directory / BEST).unlink(missing_ok=True)


def _write_manifest(directory: Path, fingerprint: str, config_hashes: list[str]) -> None:
    files = {path.name: [hash_file(path)] for path in tokenizer_files(directory)}
    data = {"format": _FORMAT, "fingerprint": fingerprint, "files": {CONFIG: config_hashes, **files}}
    write_atomically(directory / MANIFEST, json.dumps(data, indent=1).encode())


def _read_manifest(directory: Path) -> dict[str, Any]:
    path = directory / MANIFEST
    try:
        data = json.loads(path.read_bytes())
        files = {str(name): [str(value) for value in hashes] for name, hashes in data["files"].items()}
        fingerprint, written_by = str(data["fingerprint"]), data["format"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{path}: damaged: this is not a run's manifest") from None
    if written_by != _FORMAT:
        raise UserError(f"{path}: written in format {written_by}; this version of dragoman reads {_FORMAT}")
    if CONFIG not in files or any(Path(name).name != name for name in files):
        raise UserError(f"{path}: damaged: this is not a run's manifest")
    return {"files": files, "fingerprint": fingerprint}

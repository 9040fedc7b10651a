"""What is loaded of a run, a store, an export …, as one hash: the same hash, the same content."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dragoman import checkpoint
from dragoman.checkpoint.huggingface import read_model
from dragoman.checkpoint.model import load_network, model_tensors
from dragoman.cluster import storage
from dragoman.config import to_dict
from dragoman.data.labelled.prepared import PreparedTask
from dragoman.data.prepared import Prepared, overlap
from dragoman.decode.search.config import SearchConfig
from dragoman.engines.manifest import read_export
from dragoman.engines.opening import open_export
from dragoman.runs import corpus_job as corpus
from dragoman.runs.directory import Run
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.limits import Limits
from dragoman.text.tokenizer import Tokenizer

_TEXTS = ("the red cat and a dog", "HILL Ünïcode 12", "")


class _Hash:
    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, *values: Any) -> None:
        for value in values:
            if isinstance(value, torch.Tensor):
                value = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
            if isinstance(value, np.ndarray):
                self._digest.update(f"{value.dtype}{value.shape}".encode())
                self._digest.update(np.ascontiguousarray(value).tobytes())
            else:
                self._digest.update(repr(value).encode())

    def hex(self) -> str:
        return self._digest.hexdigest()


def of_run(directory: Path) -> str:
    """Configuration, tokenizers, the weights, optimizer and state of every checkpoint, the shortlist."""
    found, run = _Hash(), Run.open(directory)
    found.add(to_dict(run.config), run.fingerprint)
    names = [path.name for path in sorted(run.checkpoints.iterdir())]
    for name in (*names, "best"):
        _add_network(found, directory, name)
    for name in names:
        saved = checkpoint.load_checkpoint(run.checkpoints / name)
        for part in saved.parts:
            _add_tensors(found, saved.read(part))
    if run.config.objective.name == "translate" and run.config.task is None:
        found.add(run.shortlist().lines())
    return found.hex()


def _add_network(found: _Hash, directory: Path, name: str) -> None:
    loaded = load_network(directory, which=name)
    found.add(loaded.name, json.dumps(loaded.state, sort_keys=True))
    _add_tensors(found, model_tensors(loaded.model))
    _add_tokenizers(found, [loaded.src_tokenizer, loaded.tgt_tokenizer])


def _add_tensors(found: _Hash, tensors: dict[str, torch.Tensor]) -> None:
    for name in sorted(tensors):
        found.add(name, tuple(tensors[name].shape), str(tensors[name].dtype), tensors[name])


def _add_tokenizers(found: _Hash, tokenizers: Iterable[Tokenizer]) -> None:
    for tokenizer in tokenizers:
        found.add(tokenizer.sha256, to_dict(tokenizer.config), tokenizer.pieces(range(tokenizer.size)))
        found.add(*tokenizer.encode_batch(_TEXTS))


def of_pairs(directory: Path) -> str:
    """Every id, length, line and link of pairs or text, what was dropped, and what training has seen."""
    found, data = _Hash(), Prepared.open(directory)
    found.add(data.fingerprint, data.dropped, data.valid_dropped, data.valid_targets)
    _add_tokenizers(found, [data.src_tokenizer, data.tgt_tokenizer])
    for store in (data.train, data.valid):
        found.add(len(store), store.corpora, np.asarray(store.src_lengths), np.asarray(store.tgt_lengths))
        for index in range(len(store)):
            found.add(store.src(index), store.tgt(index), store.origin(index), store.tgt_begin(index))
    for reason in ("empty", "copy", "duplicate", "too_long", "ratio"):
        found.add(list(data.dropped_origins(reason)))
    for side in ("src", "tgt"):
        found.add(np.fromfile(directory / f"seen.{side}", np.uint64), overlap(directory, _TEXTS, side))
    return found.hex()


def of_labels(directory: Path) -> str:
    found, data = _Hash(), PreparedTask.open(directory)
    found.add(data.fingerprint, data.corpora, data.train, data.valid)
    for name in sorted(data.arrays):
        found.add(name, data.arrays[name])
    _add_tokenizers(found, [data.src_tokenizer])
    return found.hex()


def of_export(directory: Path) -> str:
    """What is said of it, the bytes that its engine gets, and its tokenizers."""
    found, export = _Hash(), read_export(directory)
    found.add(export.engine, export.quantization, export.positions, export.shortlist, export.src_lang)
    found.add(export.tgt_lang, export.attention_when_read, asdict(export.search), sorted(export.files))
    for name in sorted(export.files):
        found.add((directory / name).read_bytes())
    translator = open_export(directory)
    _add_tokenizers(found, [translator.src_tokenizer, translator.tgt_tokenizer])
    return found.hex()


def of_published(directory: Path) -> str:
    found, model = _Hash(), read_model(directory)
    found.add(model.kind, to_dict(model.config), model.search, model.new)
    _add_tensors(found, model_tensors(model.model))
    _add_tokenizers(found, [model.src_tokenizer, model.tgt_tokenizer])
    return found.hex()


def of_tokenizer(directory: Path) -> str:
    found = _Hash()
    _add_tokenizers(found, [Tokenizer.load(directory / "tokenizer.json")])
    return found.hex()


def of_address(directory: Path) -> str:
    """A run that was written to an address, as another machine gets it."""
    found = _Hash()
    with tempfile.TemporaryDirectory(dir=directory.parent) as copy:
        storage.StoragePlace(f"file://{directory}").pull(Path(copy))
        for path in sorted(path for path in Path(copy).rglob("*") if path.is_file()):
            found.add(str(path.relative_to(copy)), path.read_bytes())
    return found.hex()


def of_glossaries(directory: Path) -> str:
    """The file of a server's glossaries."""
    found = _Hash()
    for one in Glossaries(Limits(), directory / "glossaries.json"):
        found.add(
            one.id, one.name, one.created, [(pair, dict(d.entries)) for pair, d in one.dictionaries.items()]
        )
    return found.hex()


def of_corpus(directory: Path) -> str:
    """A corpus that is half translated: what it becomes when the same command goes on."""
    translator = _translator(str(directory.parent / "reader"))
    lines = (directory / "mono.en").read_text().splitlines()
    task = corpus.CorpusTask(SearchConfig(beam=1, max_extra=3, max_ratio=1), "mono", 256)
    corpus.translate_corpus(translator, lines, directory / "mono.out", task)
    return hashlib.sha256((directory / "mono.out").read_bytes()).hexdigest()


@cache
def _translator(run: str) -> Any:
    return Run.open(run).translator(device="cpu")


@dataclass(frozen=True)
class Kind:
    """Something that can be damaged: where it is, and how it is read."""

    name: str
    place: str
    content: Callable[[Path], str]
    without: tuple[str, ...] = ()
    """Folders that are of another kind: they are not damaged."""
    changes: bool = False
    """Whether reading it changes it."""
    may_be_gone: bool = False
    """Whether there need not be any."""
    verified: bool = True
    """Whether `dragoman verify` knows it."""


KINDS = (
    Kind("run, Transformer", "runs/t", of_run, ("data",)),
    Kind("run, LSTM", "runs/l", of_run, ("data",)),
    Kind("run, GPT", "runs/g", of_run, ("data",)),
    Kind("run, Markov", "runs/m", of_run, ("data",)),
    Kind("run, classifier", "runs/c", of_run, ("data",)),
    Kind("prepared pairs", "runs/t/data", of_pairs),
    Kind("prepared text", "runs/g/data", of_pairs),
    Kind("prepared labels", "runs/c/data", of_labels),
    Kind("CTranslate2 export", "ct2", of_export),
    Kind("Hugging Face export", "hf", of_published),
    Kind("run, three languages", "runs/n", of_run, ("data",)),
    Kind("ONNX export", "onnx", of_export),
    Kind("run, forecast", "runs/f", of_run, ("data",)),
    Kind("run, captions", "runs/k", of_run, ("data",)),
    Kind("run, context", "runs/d", of_run, ("data",)),
    Kind("run, terms", "runs/w", of_run, ("data",)),
    Kind("prepared images", "runs/v/data", of_labels),
    Kind("prepared series", "runs/f/data", of_labels),
    Kind("prepared captions", "runs/k/data", of_labels),
    Kind("prepared documents", "runs/d/data", of_pairs),
    Kind("prepared pairs with terms", "runs/w/data", of_pairs),
    Kind("run at an address", "there/t", of_address, verified=False),
    Kind("tokenizer", "tokenizer", of_tokenizer),
    Kind("corpus half translated", "half", of_corpus, changes=True, verified=False),
    Kind("glossaries of a server", "glossaries", of_glossaries, may_be_gone=True, verified=False),
)

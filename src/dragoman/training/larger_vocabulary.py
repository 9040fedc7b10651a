"""A run with a larger vocabulary, to train further: for a language that it does not know yet.

Every old piece keeps its vector. That of a new piece is the mean of those that spelt it before, so at first
little changes.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from dragoman import checkpoint
from dragoman.checkpoint.model import (
    CHECKPOINTS,
    load_model,
    model_description,
    model_tensors,
    save_tokenizers,
    vocab_of,
)
from dragoman.config import to_dict
from dragoman.data.directions import Directions, Languages
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.models import build_network
from dragoman.runs.directory import Run
from dragoman.text.extend_vocabulary import extended, origins
from dragoman.text.tokenizer import Tokenizer
from dragoman.training.progress import TrainingProgress

_MOST_PIECES = 4000


def larger_tokenizer(
    run: Run, directions: Sequence[Languages], texts: Iterable[str], pieces: int | None
) -> Tokenizer:
    """The run's vocabulary with the control pieces of `directions` and up to `pieces` learned from `texts`;
    None: as many as one of the run's languages has of it on average."""
    tokenizers = run.distinct_tokenizers()
    if len(tokenizers) > 1:
        raise UserError(
            f"{run.directory}: it has a vocabulary for each side, and a further language needs one for both; "
            "train a new run"
        )
    (tokenizer,) = tokenizers
    own = run.config.data
    languages = 2 if own.directions is None else len(own.directions.languages)
    room = pieces if pieces is not None else min(_MOST_PIECES, tokenizer.size // languages)
    control = Directions(tuple(directions), own.language_pieces).control_pieces
    return extended(tokenizer, texts, control, room)


def larger_run(run: Run, tokenizer: Tokenizer, directory: Path) -> Run:
    """The run with a larger vocabulary, to begin training with. One that is there from an interrupted call
    for the same corpora and weights is taken."""
    loaded = load_model(run.directory)
    before = model_tensors(loaded.model)
    fingerprint = f"larger {_hash(before)}"
    if Run.exists(directory):
        found = Run.open(directory)
        if found.tokenizers()[0].sha256 != tokenizer.sha256:
            raise UserError(f"{directory}: made for other corpora; remove it, or choose another --out")
        if found.fingerprint != fingerprint:
            raise UserError(f"{directory}: made from other weights; remove it, or choose another --out")
        return found
    kind, model_config = run.config.model_config
    if model_config.abilities.counts:
        raise UserError(f"{run.directory}: a model that counts is not trained further; train a new run")
    old = loaded.src_tokenizer
    vocab = vocab_of(tokenizer, tokenizer)
    model = build_network(kind, model_config, vocab)
    after = model_tensors(model)
    made_of = origins(old, tokenizer)
    tensors = {name: _larger(name, before, tensor, old.size, made_of) for name, tensor in after.items()}
    config = resolve_config(
        {
            "data": to_dict(run.config.data)
            | {"train": [], "valid": [], "test": [], "imported": str(run.directory)},
            "tokenizer": to_dict(tokenizer.config),
            "model": run.config.model,
            "train": {"max_epochs": 1},
            "search": to_dict(run.config.search),
        }
    )
    progress = TrainingProgress()
    state = {
        "progress": to_dict(progress),
        "model": model_description(kind, model_config, vocab, tokenizer, tokenizer),
        "weights": "model",
        "fingerprint": fingerprint,
    }

    def fill(temporary: Path) -> None:
        save_tokenizers(temporary, tokenizer, tokenizer)
        checkpoint.save(
            temporary / CHECKPOINTS, checkpoint.checkpoint_name(progress.update), {"model": tensors}, state
        )

    return Run.create_with(directory, config, fingerprint, fill)


def _hash(tensors: Mapping[str, Tensor]) -> str:
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(name.encode())
        found.update(tensor.reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def _larger(
    name: str, before: Mapping[str, Tensor], tensor: Tensor, pieces: int, made_of: Sequence[Sequence[int]]
) -> Tensor:
    """A weight of the larger model: as it was, or with a row for each piece."""
    own = before.get(name)
    if own is not None and own.shape == tensor.shape:
        return own
    if own is None or own.shape != (pieces, *tensor.shape[1:]):
        raise UserError(f"{name}: this model cannot take further pieces; train a new run")
    mean = own.mean(dim=0)
    return torch.stack([own[list(parts)].mean(dim=0) if parts else mean for parts in made_of])

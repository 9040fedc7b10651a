"""Hashes of the weights and the tokenizers: what has the same ones translates alike."""

import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.errors import UserError


def identity(translator: Any) -> dict[str, list[str]]:
    """Of a translator of runs."""
    return {
        "models": [_hash_weights(model) for model in translator.scorer.models],
        "tokenizers": [translator.src_tokenizer.sha256, translator.tgt_tokenizer.sha256],
    }


def refuse_other(run: Path, begun: Mapping[str, list[str]], found: Mapping[str, list[str]]) -> None:
    """What a machine says whose run is not the one that the job was begun with."""
    for name, hashes in begun.items():
        if list(hashes) != list(found[name]):
            raise UserError(
                f"{run}: not the same run on all machines: the {name} of {platform.node()} are others than "
                "those where the command was typed"
            )


def _hash_weights(model: Any) -> str:
    from dragoman.checkpoint.files import from_tensors  # needs PyTorch, which exports do without
    from dragoman.checkpoint.model import model_tensors

    digest = hashlib.sha256()
    for chunk in from_tensors(model_tensors(model)).chunks:
        digest.update(chunk)
    return digest.hexdigest()

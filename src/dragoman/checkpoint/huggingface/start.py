"""How real Marian and Pegasus models begin, for ours that begin with a learnt `<s>`.

    Marian     0 </s>   1 <unk>   pieces …   N−1 <pad>      begins with <pad>, whose embedding is zero
    Pegasus    0 <pad>  1 <unk>   2 </s>   pieces …         begins with <pad>

Other programs than transformers take that for granted. What is computed stays the same. With Pegasus
`<pad>` gets the embedding of `<s>`; nobody reads it elsewhere. With Marian that embedding is added to the
decoder's table of positions, at position 0, where nothing but the beginning ever stands. `<pad>` is kept out
of the softmax.

Our own embedding and bias of `<pad>` lie in a file beside, so that an import has them again.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.checkpoint.files import from_tensors, load_tensors
from dragoman.checkpoint.huggingface.bart_layers import BIAS, POSITIONS, SHARED, SINUSOID_TABLES
from dragoman.checkpoint.huggingface.family import Family
from dragoman.checkpoint.huggingface.files import OWN
from dragoman.errors import UserError
from dragoman.files import write_new
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.linear import SILENCE
from dragoman.nn.positions import sinusoids
from dragoman.text.published_tokenizer import PublishedTokenizer
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import BOS_ID, EOS_ID, PAD_ID

START = "start"
"""A field of ours in config.json: their number of our `<s>`."""
_CONTROL = f"{OWN}/control.safetensors"
_UNKNOWN = ("<unk>", "<unknown>", "<dragoman-unknown>")


@dataclass(frozen=True)
class Beginning:
    """Their numbers of our pieces."""

    marian: bool
    order: list[int]
    """Our number for each of theirs."""
    unknown: str
    renamed: dict[int, str] = field(default_factory=dict)
    """Names of pieces, by our numbers, that are not what they are called here."""

    def id(self, ours: int) -> int:
        return self.order.index(ours)

    @property
    def config(self) -> dict[str, int]:
        pad, eos = self.id(PAD_ID), self.id(EOS_ID)
        bos = eos if self.marian else self.id(BOS_ID)
        return {
            "pad_token_id": pad,
            "bos_token_id": bos,
            "eos_token_id": eos,
            "decoder_start_token_id": pad,
        }


def beginning_of(family: Family, vocab: Vocab, tokenizer: Tokenizer) -> Beginning | None:
    """None for other families, and for models with two vocabularies, which those programs do not know."""
    if family.model_type not in ("marian", "pegasus") or not vocab.shared:
        return None
    marian, names = family.model_type == "marian", tokenizer.pieces(range(tokenizer.size))
    has_own = isinstance(tokenizer, PublishedTokenizer) and _UNKNOWN[0] in names
    unknown = names.index(_UNKNOWN[0]) if has_own else BOS_ID
    free = [name for name in _UNKNOWN if name not in names]
    renamed = {} if has_own else {BOS_ID: free[0]}
    first = [EOS_ID, unknown] if marian else [PAD_ID, BOS_ID, EOS_ID]
    last = [number for number in (BOS_ID, PAD_ID) if number not in first]
    rest = [number for number in range(tokenizer.size) if number not in (*first, *last)]
    return Beginning(marian, [*first, *rest, *last], renamed.get(unknown, _UNKNOWN[0]), renamed)


def with_beginning(
    named: Mapping[str, Tensor], config: TransformerConfig, begin: Beginning
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The published tensors, which have our numbers so far, with theirs; and what has to lie beside them."""
    rows, bias = named[SHARED].clone(), named[BIAS].clone()
    beside = {SHARED: rows[PAD_ID].clone(), BIAS: bias[0, [PAD_ID]]}  # a column has the stride of its matrix
    start = rows[BOS_ID].clone()
    bias[:, PAD_ID] = SILENCE
    rows[PAD_ID] = 0 if begin.marian else start
    order = torch.tensor(begin.order)
    tensors = {**named, SHARED: rows[order].contiguous(), BIAS: bias[:, order].contiguous()}
    if begin.marian:
        scale = math.sqrt(config.model_dim) if config.scale_embeddings else 1.0
        table = sinusoids(POSITIONS, config.model_dim, layout="halves")
        table[0] += scale * start.double()
        tensors[SINUSOID_TABLES[1]] = table.float()
    return tensors, beside


def write_control_weights(directory: Path, beside: dict[str, Tensor]) -> None:
    write_new(directory / _CONTROL, from_tensors(beside, {"format": "pt"}).chunks)


def without_beginning(directory: Path, tensors: dict[str, Tensor], pad: int) -> dict[str, Tensor]:
    """The tensors of an export of ours, with our own rows of `<pad>`; still under their numbers."""
    path = directory / _CONTROL
    try:
        beside = load_tensors(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    found = dict(tensors)
    for name in (SHARED, BIAS):
        if name not in found or name not in beside:
            raise UserError(f"{path}: it does not belong to these weights")
        whole = found[name].clone()
        place: Any = pad if name == SHARED else (slice(None), pad)
        if whole.dim() != 2 or pad >= whole.shape[name == BIAS] or whole[place].shape != beside[name].shape:
            raise UserError(f"{path}: it does not belong to these weights")
        whole[place] = beside[name].to(whole.dtype)
        found[name] = whole
    return found

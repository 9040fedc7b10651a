"""From a model of ours to a directory that transformers loads, with our numbers of pieces."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.checkpoint.files import from_bytes, from_tensors, write, write_directory
from dragoman.checkpoint.huggingface.families import family_of
from dragoman.checkpoint.huggingface.family import Family
from dragoman.checkpoint.huggingface.files import CONFIG, GENERATION, WEIGHTS
from dragoman.checkpoint.huggingface.tokenizers import OWN
from dragoman.checkpoint.model import LoadedModel, model_tensors, save_tokenizers
from dragoman.config import from_dict
from dragoman.models import config_class
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.text.library import library_of

_TOKENIZER = "tokenizer.json"
_TARGET = "target"
"""A folder for the target's tokenizer where it is another."""


def export_huggingface(loaded: LoadedModel, out: Path, beam: int = 1, alpha: float = 1.0) -> Path:
    """Write the model to `out`, which appears as a whole or not at all."""
    described = loaded.state["model"]
    kind = str(described["kind"])
    family, config = family_of(kind, from_dict(config_class(kind), described["config"], "model"))
    model, vocab = loaded.model, loaded.model.vocab
    fields = config_fields(family, config, vocab)
    tensors = published_tensors(family, config, model)
    control = {name: fields[name] for name in _control(vocab)}
    generation = control | {
        "num_beams": beam,
        "length_penalty": alpha,
        "early_stopping": beam > 1,
        "bad_words_ids": [[vocab.pad_id], [vocab.bos_id]],
        "max_length": 512,
    }
    src, tgt = loaded.src_tokenizer, loaded.tgt_tokenizer

    def fill(directory: Path) -> None:
        for name, content in ((CONFIG, fields), (GENERATION, generation)):
            write(directory / name, from_bytes(_json(content)))
        write(directory / WEIGHTS, from_tensors(tensors, {"format": "pt"}))
        (directory / OWN).mkdir()
        save_tokenizers(directory / OWN, src, tgt)
        folders = {directory: src} if src.sha256 == tgt.sha256 else {directory: src, directory / _TARGET: tgt}
        for folder, tokenizer in folders.items():
            folder.mkdir(exist_ok=True)
            names = dict(
                zip(("pad_token", "bos_token", "eos_token"), tokenizer.pieces(range(3)), strict=True)
            )
            about = {"tokenizer_class": "PreTrainedTokenizerFast", **names}
            write(folder / _TOKENIZER, from_bytes(_json(library_of(tokenizer))))
            write(folder / "tokenizer_config.json", from_bytes(_json(about)))

    return write_directory(out, fill)


def config_fields(family: Family, config: TransformerConfig, vocab: Vocab) -> dict[str, Any]:
    """config.json, or a refusal where the family has no such model."""
    fields = family.write_config(config) | _control(vocab) | {"vocab_size": vocab.src_size}
    if not vocab.shared:
        fields |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": vocab.tgt_size}
    return {
        "architectures": [family.architecture],
        "model_type": family.model_type,
        "is_encoder_decoder": True,
        "dtype": "float32",
        **fields,
        "forced_eos_token_id": None,
        OWN: {"silent_bos": config.silent_bos},
    }


def _control(vocab: Vocab) -> dict[str, int]:
    return {
        "pad_token_id": vocab.pad_id,
        "bos_token_id": vocab.bos_id,
        "eos_token_id": vocab.eos_id,
        "decoder_start_token_id": vocab.bos_id,
    }


def published_tensors(family: Family, config: TransformerConfig, model: EncoderDecoder) -> dict[str, Tensor]:
    """The weights of a model of ours under the published names."""
    named: dict[str, Tensor] = {}
    tensors = model_tensors(model)
    for name, weight in family.weights(config, model.vocab.shared).items():
        named |= weight.write(tensors[name])
    if family.output_bias is not None and family.output_bias not in named:
        own = model.projection.bias if model.projection is not None else None
        bias = torch.zeros(model.vocab.tgt_size) if own is None else own.detach()
        named[family.output_bias] = bias[None]
    if family.own_projection is not None and family.own_projection not in named and not config.scale_output:
        named[family.own_projection] = next(iter(named.values()))  # else it would be taken for scaled
    return named


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode("utf-8")

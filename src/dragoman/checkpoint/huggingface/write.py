"""Export a model as a directory that Hugging Face's library `transformers` loads. Token ids stay ours."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman.checkpoint.files import from_tensors
from dragoman.checkpoint.huggingface.families import family_of
from dragoman.checkpoint.huggingface.family import Family
from dragoman.checkpoint.huggingface.files import (
    CONFIG,
    GENERATION,
    LIBRARY,
    OWN,
    TOKENIZER_CONFIG,
    WEIGHTS,
    write_manifest,
)
from dragoman.checkpoint.huggingface.start import (
    START,
    Beginning,
    beginning_of,
    with_beginning,
    write_control_weights,
)
from dragoman.checkpoint.model import LoadedNetwork, model_tensors, save_tokenizers
from dragoman.config import from_dict
from dragoman.errors import UserError
from dragoman.files import explained, new_directory, write_new
from dragoman.models import Network, config_class
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.task_heads import TaskNetwork
from dragoman.models.transformer import TransformerConfig
from dragoman.text.tokenizer import Tokenizer
from dragoman.text.tokenizer_file import BOS_ID, EOS_ID, PAD_ID
from dragoman.text.tokenizer_json import exported_json, reordered_json, template

CARD = "README.md"
_TARGET = "target"
"""A folder for the target's tokenizer where it is another."""


def export_huggingface(
    loaded: LoadedNetwork,
    out: Path,
    beam: int = 1,
    alpha: float = 1.0,
    early_stopping: bool | str = False,
    card: str | None = None,
) -> Path:
    """Write the model, and its model card, to `out`, which appears as a whole or not at all."""
    described = loaded.state["model"]
    kind = str(described["kind"])
    config = from_dict(config_class(kind), described["config"], "model")
    family = family_of(kind, config)
    model = loaded.model
    if isinstance(model, TaskNetwork):
        raise UserError(
            "a run that is fine-tuned for a task has a head of its own; export what it began with"
        )
    vocab = model.vocab
    src, tgt = loaded.src_tokenizer, loaded.tgt_tokenizer
    begin = beginning_of(family, vocab, src)
    control = _control(family, vocab) if begin is None else begin.config
    fields: dict[str, Any] = {**config_fields(family, config, vocab), **control}
    tensors, beside = published_tensors(family, config, model), None
    if begin is not None:
        tensors, beside = with_beginning(tensors, config, begin)
        fields[OWN] = {**fields[OWN], START: begin.id(BOS_ID)}
    generation = control | {
        "num_beams": beam,
        "length_penalty": alpha,
        "early_stopping": early_stopping if beam > 1 else False,
        "bad_words_ids": [[number if begin is None else begin.id(number)] for number in (PAD_ID, BOS_ID)],
        "max_length": 512,
    }
    if getattr(config, "silent_bos", False):  # what is never said has no share of the probability
        generation["renormalize_logits"] = True
    with explained(out), new_directory(out) as directory:
        write_new(directory / CONFIG, (_json(fields),))
        if isinstance(model, EncoderDecoder):
            write_new(directory / GENERATION, (_json(generation),))
        write_new(directory / WEIGHTS, from_tensors(tensors, {"format": "pt"}).chunks)
        (directory / OWN).mkdir()
        save_tokenizers(directory / OWN, src, tgt)
        if beside is not None:
            write_control_weights(directory, beside)
        folders = {directory: src} if src.sha256 == tgt.sha256 else {directory: src, directory / _TARGET: tgt}
        for folder, tokenizer in folders.items():
            folder.mkdir(exist_ok=True)
            library, about = _tokenizer_files(family, tokenizer, begin)
            write_new(folder / LIBRARY, (_json(library),))
            write_new(folder / TOKENIZER_CONFIG, (_json(about),))
        if card is not None:
            write_new(directory / CARD, (card.encode("utf-8"),))
        write_manifest(directory)
    return out


def _tokenizer_files(
    family: Family, tokenizer: Tokenizer, begin: Beginning | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """tokenizer.json and tokenizer_config.json, with the marks that the family has around a text."""
    library, names = dict(exported_json(tokenizer)), tokenizer.pieces(range(tokenizer.size))
    if begin is not None:
        about = {"pad_token": names[PAD_ID], "eos_token": names[EOS_ID], "unk_token": begin.unknown}
        library = reordered_json(library, begin.order, begin.renamed)
        return library, {"tokenizer_class": "PreTrainedTokenizerFast", **about}
    about: dict[str, Any] = dict(zip(("pad_token", "bos_token", "eos_token"), names, strict=False))
    if family.controls == "pair":
        library["post_processor"] = template([names[BOS_ID], None, names[EOS_ID]], names, one_row=True)
        about |= {"cls_token": names[BOS_ID], "sep_token": names[EOS_ID]}
        about["model_input_names"] = ["input_ids", "token_type_ids", "attention_mask"]
        if mask := next((name for name in ("<mask>", "[MASK]") if name in names), None):
            about["mask_token"] = mask
    elif not family.encoder_decoder:
        library["post_processor"] = template([None], names)
    return library, {"tokenizer_class": "PreTrainedTokenizerFast", **about}


def config_fields(family: Family, config: object, vocab: Vocab) -> dict[str, Any]:
    """The content of config.json. Raises `UserError` if the family cannot express this configuration."""
    fields = family.write_config(config) | _control(family, vocab) | {"vocab_size": vocab.src_size}
    if not vocab.shared:
        fields |= {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": vocab.tgt_size}
    silent = {name: getattr(config, name) for name in family.silences}
    return {
        "architectures": [family.architecture],
        "model_type": family.model_type,
        "is_encoder_decoder": family.encoder_decoder,
        "dtype": "float32",
        **fields,
        **({"forced_eos_token_id": None} if family.encoder_decoder else {}),
        OWN: silent,
    }


def _control(family: Family, vocab: Vocab) -> dict[str, int]:
    ids = {"pad_token_id": vocab.pad_id, "bos_token_id": vocab.bos_id, "eos_token_id": vocab.eos_id}
    return ids | ({"decoder_start_token_id": vocab.bos_id} if family.encoder_decoder else {})


def published_tensors(family: Family, config: object, model: Network) -> dict[str, Tensor]:
    """The weights of a model of ours under the published names."""
    named: dict[str, Tensor] = {}
    tensors = model_tensors(model)
    for name, weight in family.weights(config, model.vocab.shared).items():
        named |= weight.write(tensors[name])
    if family.output_bias is not None and family.output_bias not in named:
        assert isinstance(model, EncoderDecoder), "only families of these have a bias that may be missing"
        own = model.projection.bias if model.projection is not None else None
        bias = torch.zeros(model.vocab.tgt_size) if own is None else own.detach()
        named[family.output_bias] = bias[None]
    if family.relabel is not None:
        named = family.relabel(config, named)
    unscaled = isinstance(config, TransformerConfig) and not config.scale_output
    if family.own_projection is not None and family.own_projection not in named and unscaled:
        named[family.own_projection] = next(iter(named.values()))  # else it would be taken for scaled
    return named


def _json(content: dict[str, Any]) -> bytes:
    return (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode("utf-8")

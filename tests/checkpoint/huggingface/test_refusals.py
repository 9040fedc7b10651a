"""What cannot be imported or exported is refused in a sentence that says why."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from checkpoint.huggingface.published import save, tokenizer_of
from dragoman.checkpoint.huggingface.control_ids import _from_config
from dragoman.checkpoint.huggingface.families import FAMILIES, family_of
from dragoman.checkpoint.huggingface.read import read_model
from dragoman.checkpoint.huggingface.write import config_fields
from dragoman.errors import UserError
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig

VOCAB = Vocab(24, 24, shared=True)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    save("bart", tmp_path)
    return tmp_path


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def refused(directory: Path, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_model(directory)


def test_pickles(directory: Path) -> None:
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    refused(directory, "pickle, which can run any code.*save_pretrained")


def test_nothing_there(directory: Path) -> None:
    (directory / "model.safetensors").unlink()
    refused(directory, "there are no weights here")
    (directory / "config.json").unlink()
    refused(directory, "not a Hugging Face model")


def test_an_unknown_architecture(directory: Path) -> None:
    change(directory / "config.json", model_type="whisper")
    refused(directory, f"'whisper' are not known here; known are {', '.join(FAMILIES)}")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"decoder_attention_heads": 4}, "decoder_attention_heads: encoder and decoder are alike"),
        (
            {"decoder_ffn_dim": 7},
            "decoder_ffn_dim: encoder and decoder are alike here, and it is 7 while enc",
        ),
        ({"activation_function": "mish"}, "activation_function: expected one of relu"),
        ({"eos_token_id": [2, 3]}, "eos_token_id: expected the id of a piece"),
        ({"pad_token_id": 2}, "pad_token_id: it is 2, as eos_token_id is"),
        ({"d_model": "wide"}, "model_dim: expected a whole number"),
        ({"normalize_before": True}, "normalize_before: BART has false"),
        ({"encoder_layers": 3}, "lacks tensor 'model.encoder.layers.2"),
        ({"vocab_size": 999}, "has 265 numbers, and config.json says 999"),
    ],
)
def test_what_config_json_says(directory: Path, fields: dict[str, Any], message: str) -> None:
    change(directory / "config.json", **fields)
    refused(directory, message)


def test_a_field_that_is_missing(directory: Path) -> None:
    path = directory / "config.json"
    path.write_text(json.dumps({k: v for k, v in json.loads(path.read_text()).items() if k != "d_model"}))
    refused(directory, "the field 'd_model' is missing")


def test_a_configuration_may_be_long_and_may_not_have_values_without_end(directory: Path) -> None:
    change(directory / "config.json", notes="a" * 900_000)
    assert read_model(directory).model is not None
    change(directory / "config.json", notes=[0] * 250_000)
    refused(directory, "more than .* values")


def test_weights_that_do_not_belong(directory: Path) -> None:
    path = directory / "model.safetensors"
    tensors = load_file(path)
    save_file({**tensors, "adapter.weight": torch.zeros(2)}, path)
    refused(directory, "has an unknown tensor 'adapter.weight'")
    save_file({**tensors, "lm_head.weight": torch.zeros(265, 16)}, path)
    refused(directory, "'lm_head.weight' is not the same as 'model.shared.weight'")
    places = "model.decoder.embed_positions.weight"
    rows, width = tensors[places].shape
    save_file({**tensors, places: torch.zeros(rows - 1, width)}, path)
    refused(directory, rf"decoder.positions.weight.*\[{rows - 3}, {width}\].*\[{rows - 2}, {width}\]")
    shared = tensors["model.shared.weight"]
    save_file({**tensors, "model.shared.weight": torch.zeros(shared.shape, dtype=torch.int64)}, path)
    refused(directory, "'model.shared.weight' holds no floating-point numbers, but torch.int64")
    path.write_bytes(b"\x80\x04 this was a pickle")
    refused(directory, "not a safetensors file")


def test_an_index_that_leads_elsewhere(directory: Path) -> None:
    (directory / "model.safetensors").rename(directory / "weights.safetensors")
    places = {"weight_map": {"model.shared.weight": "../weights.safetensors"}}
    (directory / "model.safetensors.index.json").write_text(json.dumps(places))
    refused(directory, "is not the name of a safetensors file beside it")


def test_tokenizers(directory: Path) -> None:
    path = directory / "tokenizer.json"
    plain = json.loads(tokenizer_of("bart").to_str())
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
    path.write_text(json.dumps({**plain, "pre_tokenizer": split}))
    refused(directory, "pre_tokenizer: expected one of .*, found 'Split'")
    replace = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}
    path.write_text(json.dumps({**plain, "normalizer": replace}))
    refused(directory, "none is run from a file")
    path.write_text(json.dumps({**plain, "model": {"type": "WordLevel"}}))
    refused(directory, "model: expected one of BPE, Unigram, WordPiece, found 'WordLevel'")
    path.unlink()
    refused(directory, "there is no tokenizer here.*AutoTokenizer")


MARIAN = TransformerConfig(model_dim=16, num_heads=2, position_layout="halves")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"position_base": 500.0}, "position_base: Marian knows only 10000.0"),
        ({"norm": "pre", "gated": True}, "gated: Pegasus knows only false"),
        ({"gated": True}, "gated: Marian knows only false"),
        ({"decoder_self": "average"}, "decoder_self: Marian knows only attention"),
        ({"activation": "sigmoid"}, "activation: transformers has no sigmoid"),
        ({"copy": True}, "copy: transformers has no encoder-decoder that copies"),
        ({"positions": "rotary"}, "with rotary positions; export this run with --to onnx"),
        ({"positions": "learned"}, "norm_embeddings: BART knows only true"),
        ({"positions": "t5"}, "norm: T5 knows only pre"),
    ],
)
def test_wiring_without_a_counterpart(fields: dict[str, Any], message: str) -> None:
    config = dataclasses.replace(MARIAN, **fields)
    with pytest.raises(UserError, match=message):
        config_fields(family_of("transformer", config), config, VOCAB)
    assert config_fields(family_of("transformer", MARIAN), MARIAN, VOCAB)["model_type"] == "marian"


def test_a_kind_without_a_counterpart() -> None:
    with pytest.raises(UserError, match="no model like rnn"):
        family_of("rnn", object())


@pytest.mark.parametrize("found", ["mish", "gated-mish", "half-relu", "gated-gated-relu"])
def test_a_feedforward_block_that_t5_does_not_have(tmp_path: Path, found: str) -> None:
    save("t5", tmp_path)
    change(tmp_path / "config.json", feed_forward_proj=found)
    refused(tmp_path, f"feed_forward_proj: expected an activation, or one after gated-, found '{found}'")


def test_the_decoder_is_named_where_it_is_unlike_the_encoder(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    width = config["encoder_ffn_dim"]
    change(directory / "config.json", decoder_ffn_dim=width + 1)
    refused(directory, f"decoder_ffn_dim: .* it is {width + 1} while encoder_ffn_dim is {width}")


@pytest.mark.parametrize(
    ("fields", "start"),
    [({}, None), ({"is_encoder_decoder": True}, None), ({"is_encoder_decoder": False}, 5)],
)
def test_only_a_decoder_alone_begins_with_bos(fields: dict[str, Any], start: int | None) -> None:
    """A pair of encoder and decoder says what it begins with, or does not begin."""
    ids = {"pad_token_id": 1, "bos_token_id": 5, "eos_token_id": 2}
    assert _from_config([ids | fields], ends=False)["decoder_start_token_id"] == start
    begun = ids | fields | {"decoder_start_token_id": 7}
    assert _from_config([begun], ends=False)["decoder_start_token_id"] == 7

"""Presets of published sizes have as many parameters as Hugging Face's models of these sizes. Nothing is
computed: the weights have shapes alone."""

import pytest
import torch
import transformers as hf

from dragoman.models import build_network
from dragoman.models.base import Vocab
from dragoman.models.presets import preset


def gpt2(**sizes: int) -> hf.PreTrainedModel:
    return hf.GPT2LMHeadModel(hf.GPT2Config(**sizes))


def bert(**sizes: int) -> hf.PreTrainedModel:
    return hf.BertForPreTraining(hf.BertConfig(**sizes))


def t5(**sizes: int) -> hf.PreTrainedModel:
    return hf.T5ForConditionalGeneration(hf.T5Config(**sizes))


def bart(**sizes: int) -> hf.PreTrainedModel:
    layers = sizes.pop("layers")
    both = {f"{part}_{name}": value for part in ("encoder", "decoder") for name, value in sizes.items()}
    dim = both.pop("encoder_dim"), both.pop("decoder_dim")
    config = hf.BartConfig(d_model=dim[0], encoder_layers=layers, decoder_layers=layers, **both)
    return hf.BartForConditionalGeneration(config)


LARGE = {"num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096}
SIZES = {
    "gpt-2": (gpt2, {}),
    "gpt-2-medium": (gpt2, {"n_layer": 24, "n_embd": 1024, "n_head": 16}),
    "gpt-2-large": (gpt2, {"n_layer": 36, "n_embd": 1280, "n_head": 20}),
    "gpt-2-xl": (gpt2, {"n_layer": 48, "n_embd": 1600, "n_head": 25}),
    "bert-base": (bert, {}),
    "bert-large": (bert, LARGE),
    "t5-small": (t5, {}),
    "t5-base": (t5, {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "t5-large": (t5, {"d_model": 1024, "d_ff": 4096, "num_layers": 24, "num_heads": 16}),
    "bart-base": (bart, {"layers": 6, "dim": 768, "ffn_dim": 3072, "attention_heads": 12}),
    "bart-large": (bart, {"layers": 12, "dim": 1024, "ffn_dim": 4096, "attention_heads": 16}),
}


@pytest.mark.parametrize("name", list(SIZES))
def test_a_preset_has_the_published_size(name: str) -> None:
    make, sizes = SIZES[name]
    kind, config = preset(name)
    with torch.device("meta"):
        theirs = make(**sizes)
        size = theirs.config.vocab_size
        ours = build_network(kind, config, Vocab(size, size, shared=True))
    expected = sum(parameter.numel() for parameter in theirs.parameters())
    if kind == "transformer" and "bart" in name:  # theirs has two places more than it uses, on both sides
        expected -= 2 * 2 * theirs.config.d_model
    assert sum(parameter.numel() for parameter in ours.parameters()) == expected

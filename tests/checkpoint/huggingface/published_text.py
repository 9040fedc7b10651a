"""Tiny random BERT, GPT and GPT-2 of transformers, with tokenizers like those of their publishers."""

from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers

PLACES, WIDTH, LAYERS, HEADS = 24, 16, 2, 4
OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", {}),
    "bert-options": ("bert", {"hidden_act": "gelu_new", "layer_norm_eps": 1e-2}),
    "gpt": ("gpt", {}),
    "gpt-options": ("gpt", {"afn": "relu", "layer_norm_epsilon": 1e-2}),
    "gpt2": ("gpt2", {}),
    "gpt2-options": ("gpt2", {"activation_function": "gelu", "layer_norm_epsilon": 1e-2, "n_inner": 20}),
    "gpt2-untied": ("gpt2", {"tie_word_embeddings": False}),
    "gpt2-reordered": ("gpt2", {"reorder_and_upcast_attn": True, "attn_implementation": "eager"}),
}


def wordpiece() -> tokenizers.Tokenizer:
    """As BERT's: padding first, other specials after pieces that are not used."""
    specials = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = ["a", "b", "c", "##a", "##b", "##c", "abc", "##bc", "!", "the", "##re", "##s", "u", "##n", "##i"]
    names = ["[PAD]", "[unused0]", "[unused1]", *specials, *words]
    made = tokenizers.Tokenizer(
        models.WordPiece({name: n for n, name in enumerate(names)}, unk_token="[UNK]")
    )
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.add_special_tokens(["[PAD]", *specials])
    return made


def closed_words() -> tokenizers.Tokenizer:
    """As GPT's: a mark at the end of words, one special piece, none for the end of a text."""
    names = ["<unk>", "a", "b", "c", "a</w>", "b</w>", "c</w>", "!</w>", "ab", "abc</w>", "the</w>", "t", "h"]
    names += ["e</w>", "th"]
    merges = [("a", "b"), ("ab", "c</w>"), ("t", "h"), ("th", "e</w>")]
    made = tokenizers.Tokenizer(
        models.BPE(
            {name: n for n, name in enumerate(names)}, merges, unk_token="<unk>", end_of_word_suffix="</w>"
        )
    )
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.BPEDecoder(suffix="</w>")
    made.add_special_tokens(["<unk>"])
    return made


def byte_level() -> tokenizers.Tokenizer:
    """As GPT-2's: bytes and merges, and the end of texts after them."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*alphabet, "he", "Ġt", "Ġthe", "ll"]
    merges = [("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("l", "l")]
    made = tokenizers.Tokenizer(models.BPE({name: n for n, name in enumerate(names)}, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<|endoftext|>"])
    return made


TOKENIZERS = {"bert": wordpiece, "gpt": closed_words, "gpt2": byte_level}


def model_of(family: str, **options: Any) -> transformers.PreTrainedModel:
    size = TOKENIZERS[family]().get_vocab_size()
    if family == "bert":
        shape = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
        shape |= {"intermediate_size": 40, "max_position_embeddings": PLACES}
        config = transformers.BertConfig(vocab_size=size, **shape, **options)
        return transformers.BertForPreTraining(config)
    shape = {"n_positions": PLACES, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS}
    if family == "gpt":
        config = transformers.OpenAIGPTConfig(vocab_size=size, **shape, **options)
        return transformers.OpenAIGPTLMHeadModel(config)
    ids = {"bos_token_id": size - 1, "eos_token_id": size - 1}
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=size, **ids, **shape, **options))


def save_text_model(name: str, directory: Path) -> transformers.PreTrainedModel:
    """A model in which nothing is as it began."""
    torch.manual_seed(4)
    family, options = OPTIONS[name]
    model = model_of(family, **options).eval()
    with torch.no_grad():
        for where, parameter in model.named_parameters():
            gain = ("ln_" in where or "LayerNorm" in where) and where.endswith("weight")
            parameter.normal_(mean=1.0 if gain else 0.0, std=0.1 if parameter.dim() == 1 else 0.4)
    model.save_pretrained(directory)
    TOKENIZERS[family]().save(str(directory / "tokenizer.json"))
    return model

"""Tiny random models of transformers, saved as their publishers save them, and tokenizers for them."""

from pathlib import Path
from typing import Any

import tokenizers
import torch
import transformers
from tokenizers import decoders, models, pre_tokenizers

SIZE = 24
PIECES = ["▁", "a", "b", "c", "▁a", "▁b", "ab", "bc", "▁abc", "d", "▁d", "cd"]
SHAPE = {
    "vocab_size": SIZE,
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "forced_eos_token_id": None,
}
T5_SHAPE = {
    "vocab_size": SIZE,
    "d_model": 16,
    "d_kv": 6,
    "d_ff": 24,
    "num_layers": 2,
    "num_decoder_layers": 1,
    "num_heads": 2,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 12,
    "decoder_start_token_id": 0,
}


def unigram(specials: list[str]) -> tokenizers.Tokenizer:
    """As T5's: the specials first."""
    pieces = [(name, 0.0) for name in specials] + [(piece, -2.0 - n / 8) for n, piece in enumerate(PIECES)]
    made = tokenizers.Tokenizer(models.Unigram(pieces, specials.index("<unk>")))
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    made.decoder = decoders.Metaspace()
    made.add_special_tokens(specials)
    return made


def byte_level() -> tokenizers.Tokenizer:
    """As BART's: bytes, a few merges, and specials that are only partly in front."""
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merged = ["he", "Ġt", "Ġthe", "ll"]
    names = [*specials, *alphabet, *merged, "<mask>"]
    merges = [("h", "e"), ("Ġ", "t"), ("Ġt", "he"), ("l", "l")]
    made = tokenizers.Tokenizer(models.BPE({name: n for n, name in enumerate(names)}, merges))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([*specials, "<mask>"])
    return made


def marian(**more: Any) -> transformers.PreTrainedModel:
    """The last piece is padding, and the decoder begins with it."""
    ids = {"pad_token_id": SIZE - 1, "eos_token_id": 0, "decoder_start_token_id": SIZE - 1}
    config = transformers.MarianConfig(
        **{**SHAPE, **ids, "bos_token_id": None, "activation_function": "swish", **more},
        scale_embedding=True,
        max_position_embeddings=40,
    )
    made = transformers.MarianMTModel(config)
    made.final_logits_bias.normal_(std=0.1)
    return made


def pegasus(**more: Any) -> transformers.PreTrainedModel:
    """The decoder begins with padding."""
    ids = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    config = transformers.PegasusConfig(
        **{**SHAPE, **ids, "activation_function": "relu", "scale_embedding": True, **more},
        max_position_embeddings=40,
    )
    made = transformers.PegasusForConditionalGeneration(config)
    made.final_logits_bias.normal_(std=0.1)
    made.final_logits_bias[0, 1] += 4  # else it would never end
    return made


def bart(**more: Any) -> transformers.PreTrainedModel:
    """The decoder begins with its end."""
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2}
    shape = {**SHAPE, "vocab_size": byte_level().get_vocab_size()}
    config = transformers.BartConfig(
        **{**shape, **ids, "max_position_embeddings": 40, "scale_embedding": False, **more}
    )
    return transformers.BartForConditionalGeneration(config)


def t5() -> transformers.PreTrainedModel:
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**T5_SHAPE))


def t5_v1_1() -> transformers.PreTrainedModel:
    """Gated, with a projection of its own."""
    config = transformers.T5Config(**T5_SHAPE, feed_forward_proj="gated-gelu", tie_word_embeddings=False)
    made = transformers.T5ForConditionalGeneration(config)
    made.lm_head.weight = torch.nn.Parameter(torch.empty(SIZE, 16))
    made.config.tie_word_embeddings = False
    return made


MODELS = {"marian": marian, "pegasus": pegasus, "t5": t5, "t5-v1.1": t5_v1_1, "bart": bart}


def tokenizer_of(name: str) -> tokenizers.Tokenizer:
    if name == "bart":
        return byte_level()
    if name != "marian":
        return unigram(["<pad>", "</s>", "<unk>"])
    made = unigram(["</s>", "<unk>"])
    fill = [f"<fill {number}>" for number in range(made.get_vocab_size(), SIZE - 1)]
    made.add_tokens(fill)
    made.add_special_tokens(["<pad>"])
    return made


def save(name: str, directory: Path, shard_size: str | None = None) -> transformers.PreTrainedModel:
    """A model whose translations differ and have various lengths, and its tokenizer."""
    torch.manual_seed(8)
    model = MODELS[name]().eval()
    with torch.no_grad():
        for where, parameter in model.named_parameters():
            if name in ("marian", "pegasus") and "embed_positions" in where:
                continue  # sinusoids
            if parameter.dim() == 1:
                parameter.normal_(std=0.1)
                parameter += "norm" in where and "weight" in where
            else:
                parameter.normal_(std=1 if "embed_positions" in where else 0.3 if "shared" in where else 0.6)
        model.lm_head.weight[model.config.eos_token_id] *= {"t5": 1.2, "t5-v1.1": 2, "pegasus": 1}.get(
            name, 4
        )
    model.save_pretrained(directory, **({"max_shard_size": shard_size} if shard_size else {}))
    tokenizer_of(name).save(str(directory / "tokenizer.json"))
    return model

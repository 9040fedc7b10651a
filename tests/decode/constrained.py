"""Small models and vocabularies for the tests of constraints."""

import random

import torch

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.text.piece_bytes import Spelling
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

EOS = 2
LETTERS = Spelling([b"", b"", b"", b"a", b"b", b" "])
"""Three control pieces, two letters and a space: every text has one way to be cut."""

TEXTS = [
    "the newest boat is the lowest, and the widest one is lower than the newest.",
    "new york and new jersey are not york; the cat sat on a mat, concat and cats.",
    "самая новая лодка, самые широкие лодки",
    "«el niño» llegó a casa… y más",
]
WORDS = [
    "new",
    "york",
    "new york",
    "york city",
    "cat",
    "the cat",
    "cats",
    "лодка",
    "niño",
    "mat, concat",
    "x",
    "…",
]


def wild(size: int, seed: int, dtype: torch.dtype = torch.float32, eos_bias: float = 0.0) -> EncoderDecoder:
    """Random weights, large enough for sharp distributions."""
    torch.manual_seed(seed)
    config = TransformerConfig(num_layers=1, model_dim=8, num_heads=2, ff_dim=16, output_bias=True)
    model = build_model("transformer", config, Vocab(size, size, shared=True)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2).add_(torch.randn_like(parameter) * 0.3)
        model.projection.bias[EOS] += eos_bias
    return model.to(dtype)


KINDS = {
    "start": TokenizerConfig(vocab_size=340, min_frequency=1, specials=("<2de>",)),
    "end": TokenizerConfig(vocab_size=340, min_frequency=1, word_mark="end"),
    "word": TokenizerConfig(kind="word", vocab_size=340, min_frequency=1),
    "char": TokenizerConfig(kind="char", vocab_size=320, min_frequency=1),
    "byte": TokenizerConfig(kind="byte", vocab_size=300),
}


def translator(kind: str, seed: int, eos_bias: float = 1.0, search: SearchConfig | None = None) -> Translator:
    tokenizer = Tokenizer.train(TEXTS, KINDS[kind])
    model = wild(tokenizer.size, seed, eos_bias=eos_bias)
    first = len(tokenizer.config.first_pieces) - 256
    odd = [first + byte for byte in range(256) if kind != "byte" or chr(byte) not in "abcdehnorstwxy ."]
    with torch.no_grad():  # a random model would write hardly anything but bytes that are no text
        model.projection.bias[odd] -= 6.0
    return Translator(model, tokenizer, tokenizer, search)


def some_words(chance: random.Random, most: int) -> list[str]:
    return [chance.choice(WORDS) for _ in range(chance.randint(1, most))]

"""A translator without training that writes letters, and ends at many lengths."""

from collections.abc import Sequence

import torch

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.translator import Translator
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig


def letters_translator(texts: Sequence[str], seed: int, search: SearchConfig | None = None) -> Translator:
    """Random, but that only a, b, space and `</s>` are likely."""
    tokenizer = Tokenizer.train(texts, TokenizerConfig(kind="char"))
    torch.manual_seed(seed)
    config = TransformerConfig(num_layers=1, model_dim=16, num_heads=2, ff_dim=16, output_bias=True)
    model = build_model("transformer", config, Vocab(tokenizer.size, tokenizer.size, shared=True))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2).add_(torch.randn_like(parameter) * 0.3)
        rare = torch.ones(tokenizer.size, dtype=torch.bool)
        rare[[*tokenizer.encode("ab a"), tokenizer.eos_id]] = False
        assert model.projection is not None and model.projection.bias is not None
        model.projection.bias[rare] = -1e4
    return Translator(model, tokenizer, tokenizer, search)

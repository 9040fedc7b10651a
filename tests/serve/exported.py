"""An export that is made in a moment."""

from pathlib import Path

import torch

from dragoman.checkpoint.model import LoadedModel, model_description, vocab_of
from dragoman.decode.search.config import SearchConfig
from dragoman.engines.export import export_ctranslate2
from dragoman.models import build_model as build_model
from dragoman.models import config_class
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig


def small_export(directory: Path) -> Path:
    """A model that has learnt nothing, as CTranslate2 runs it."""
    texts = ["the cat sat on the mat", "a dog ran under the red mat"]
    tokenizers = [Tokenizer.train(texts, TokenizerConfig(vocab_size=300))] * 2
    vocab = vocab_of(*tokenizers)
    fields = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 32}
    config = config_class("transformer")(**fields)
    torch.manual_seed(1)
    model = build_model("transformer", config, vocab).eval()
    state = {"model": model_description("transformer", config, vocab, *tokenizers)}
    loaded = LoadedModel(model, *tokenizers, "0000001", state)
    return export_ctranslate2(loaded, directory, search=SearchConfig(), languages=("en", "de"))

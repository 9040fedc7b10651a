"""Every model by its name. A new model is its own file, a line here, a preset and a test entry."""

from collections.abc import Callable
from typing import Any

from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.convs2s import ConvS2SConfig, convs2s
from dragoman.models.gpt import GptConfig, gpt
from dragoman.models.markov import MarkovConfig, markov
from dragoman.models.mixed import MixedConfig, mixed
from dragoman.models.rnn import RnnConfig, rnn
from dragoman.models.transformer import TransformerConfig, transformer

MODELS: dict[str, tuple[type, Callable[[Any, Vocab], EncoderDecoder]]] = {
    "transformer": (TransformerConfig, transformer),
    "rnn": (RnnConfig, rnn),
    "mixed": (MixedConfig, mixed),
    "convs2s": (ConvS2SConfig, convs2s),
    "markov": (MarkovConfig, markov),
    "gpt": (GptConfig, gpt),
}


def config_class(kind: str) -> type:
    if kind not in MODELS:
        raise UserError(f"model.kind: '{kind}' is not known; models are {', '.join(MODELS)}")
    return MODELS[kind][0]


def build(kind: str, config: object, vocab: Vocab) -> EncoderDecoder:
    """A fresh model: its weights are random, its tables empty."""
    expected = config_class(kind)
    if not isinstance(config, expected):
        raise TypeError(f"model {kind} takes a {expected.__name__}, not a {type(config).__name__}")
    return MODELS[kind][1](config, vocab)

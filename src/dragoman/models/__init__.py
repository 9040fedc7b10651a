"""All models by name. To add one: its file, a line here, a preset and a test entry."""

from collections.abc import Callable
from typing import Any

from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.bert import Bert, BertConfig, bert
from dragoman.models.convs2s import ConvS2SConfig, convs2s
from dragoman.models.elmo import Elmo, ElmoConfig, elmo
from dragoman.models.gpt import GptConfig, gpt
from dragoman.models.markov import MarkovConfig, markov
from dragoman.models.mixed import MixedConfig, mixed
from dragoman.models.rnn import RnnConfig, rnn
from dragoman.models.transformer import TransformerConfig, transformer
from dragoman.models.ulmfit import UlmfitConfig, ulmfit
from dragoman.models.unilm import UnilmConfig, unilm
from dragoman.models.vit import Vit, VitConfig, vit

MODELS: dict[str, tuple[type, Callable[[Any, Vocab], EncoderDecoder]]] = {
    "transformer": (TransformerConfig, transformer),
    "rnn": (RnnConfig, rnn),
    "mixed": (MixedConfig, mixed),
    "convs2s": (ConvS2SConfig, convs2s),
    "markov": (MarkovConfig, markov),
    "gpt": (GptConfig, gpt),
    "ulmfit": (UlmfitConfig, ulmfit),
    "unilm": (UnilmConfig, unilm),
}

READERS: dict[str, tuple[type, Callable[[Any, Vocab], Bert | Elmo | Vit]]] = {
    "bert": (BertConfig, bert),
    "elmo": (ElmoConfig, elmo),
    "vit": (VitConfig, vit),
}
"""Models that read and do not write."""

Network = EncoderDecoder | Bert | Elmo | Vit


def config_classes() -> dict[str, type]:
    """The config of every kind."""
    return {kind: config for kind, (config, _) in {**MODELS, **READERS}.items()}


def config_class(kind: str) -> type:
    known = config_classes()
    if kind not in known:
        raise UserError(f"model.kind: '{kind}' is not known; models are {', '.join(known)}")
    return known[kind]


def build(kind: str, config: object, vocab: Vocab) -> EncoderDecoder:
    """A new model with random weights and empty tables."""
    model = build_network(kind, config, vocab)
    if not isinstance(model, EncoderDecoder):
        raise UserError(f"model.kind: {kind} reads and does not write; choose one of {', '.join(MODELS)}")
    return model


def build_network(kind: str, config: object, vocab: Vocab) -> Network:
    """Build any network, including models that only read."""
    expected = config_class(kind)
    if not isinstance(config, expected):
        raise TypeError(f"model {kind} takes a {expected.__name__}, not a {type(config).__name__}")
    return {**MODELS, **READERS}[kind][1](config, vocab)

"""All models by name, and the model that a section of a configuration chooses. To add one: its file, a line
here, a preset and a test entry."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman.config import from_dict, to_dict
from dragoman.errors import UserError, did_you_mean
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.bert import Bert, BertConfig, bert
from dragoman.models.convs2s import ConvS2SConfig, convs2s
from dragoman.models.elmo import Elmo, ElmoConfig, elmo
from dragoman.models.gpt import GptConfig, gpt
from dragoman.models.markov import MarkovConfig, markov
from dragoman.models.mixed import MixedConfig, mixed
from dragoman.models.presets import preset
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


def chosen_config(
    section: object, classes: Mapping[str, type] | None = None, where: str = "model"
) -> tuple[str, Any]:
    """The kind and config of `{preset: name, field: value…}` or `{kind: name, field: value…}`. `classes` are
    the kinds to choose from; by default all."""
    classes = config_classes() if classes is None else classes
    if not isinstance(section, Mapping):
        raise UserError(f"{where}: expected a mapping of fields, found {section!r}")
    fields = dict(section)
    chosen = fields.pop("preset", None)
    if chosen is not None and not isinstance(chosen, str):
        raise UserError(f"{where}.preset: expected text, found {chosen!r}")
    if chosen is None:
        kind = fields.pop("kind", "transformer")
        base: dict[str, Any] = {}
    else:
        kind, config = preset(chosen, where)
        base = to_dict(config)
        if fields.pop("kind", kind) != kind:
            raise UserError(f"{where}.kind: the preset '{chosen}' is a {kind}; leave one of the two out")
    if not isinstance(kind, str):
        raise UserError(f"{where}.kind: expected text, found {kind!r}")
    if kind not in classes:
        advice = did_you_mean(kind, classes) or f"; choose one of {', '.join(classes)}"
        raise UserError(f"{where}.kind: '{kind}' is not known here{advice}")
    check_fields(kind, fields, classes, where)
    return kind, from_dict(classes[kind], {**base, **fields}, where)


def check_fields(
    kind: str, given: Iterable[object], classes: Mapping[str, type] | None = None, where: str = "model"
) -> None:
    """Refuse a field that only other kinds of model have, and name these."""
    classes = config_classes() if classes is None else classes
    known = {other: [f.name for f in dataclasses.fields(config)] for other, config in classes.items()}
    for name in given:
        kinds = [other for other, names in known.items() if name in names]
        if kinds and kind not in kinds:
            raise UserError(f"{where}.{name}: unknown field of kind {kind}; it belongs to {', '.join(kinds)}")


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

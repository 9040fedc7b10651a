"""All models by name, and the model that a section of a configuration chooses. To add one: its file, a line
here, a preset and a test entry."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
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


def build_model(kind: str, config: object, vocab: Vocab) -> EncoderDecoder:
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


_NAMES = {
    "transformer": "Transformer",
    "convs2s": "convolutional (ConvS2S)",
    "gpt": "GPT",
    "bert": "BERT",
    "unilm": "UniLM",
    "elmo": "ELMo",
    "ulmfit": "ULMFiT",
    "vit": "ViT",
    "markov": "counts of n-grams (Markov)",
    "mixed": "mixed halves",
}


def outline(kind: str, config: Any) -> str:
    """The essence of it, such as `Transformer, 4 + 4 layers of width 256`."""
    there = {field.name for field in fields(config)}
    name = _named(
        kind, getattr(config, "cell", None), getattr(config, "attention", None), "attention" in there
    )
    layers, width = _layers(config), getattr(config, "model_dim", None)
    if not layers:
        return f"{name}, order {config.order}" if "order" in there else name
    return f"{name}, {layers} of width {width:,}" if isinstance(width, int) else f"{name}, {layers}"


def _layers(config: Any) -> str | None:
    """`4 + 4 layers`, or `4 layers` of a model that has one stack; None where there are none."""
    there = {field.name for field in fields(config)}
    layers = config.num_layers if "num_layers" in there else None
    if layers is None:
        return None
    if "num_decoder_layers" in there:
        return f"{layers} + {config.num_decoder_layers or layers} layers"
    return f"{layers} layer{'s' * (layers != 1)}"


def describe(kind: str, config: Any) -> str:
    """One line, such as `LSTM with additive attention, 1 + 1 layers, width 256, dropout 0.2`. It asks for
    fields, not for the kind: a new model is described by what its configuration has."""
    there = {field.name for field in fields(config)}

    def of(name: str) -> Any:
        return getattr(config, name) if name in there else None

    parts = [_named(kind, of("cell"), of("attention"), "attention" in there)]
    if (layers := _layers(config)) is not None:
        parts.append(layers)
    for name, told in (
        ("model_dim", "width {:,}"),
        ("num_heads", "{} heads"),
        ("ff_dim", "feed-forward {:,}"),
    ):
        if isinstance(of(name), int):
            parts.append(told.format(of(name)))
    if of("norm") is not None:
        parts.append(f"{of('norm')}-norm")
    if isinstance(of("positions"), str):
        parts.append(f"{of('positions')} positions")
    if isinstance(of("order"), int):
        parts.append(f"order {of('order')}")
    if of("copy"):
        parts.append("copying from the source")
    if isinstance(of("dropout"), float):
        parts.append(f"dropout {of('dropout'):g}")
    return ", ".join(parts)


def _named(kind: str, cell: str | None, attention: Any, attends: bool) -> str:
    if cell is None:
        return _NAMES.get(kind, kind)
    name = cell.upper()
    if not attends or not isinstance(attention, str):
        return name
    return f"{name} without attention" if attention == "none" else f"{name} with {attention} attention"

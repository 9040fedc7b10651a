"""A model in words, for plans and pages: what it is, how deep, how wide."""

from dataclasses import fields
from typing import Any

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

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


def describe(kind: str, config: Any) -> str:
    """One line, such as `LSTM with additive attention, 1 + 1 layers, width 256, dropout 0.2`. It asks for
    fields, not for the kind: a new model is described by what its configuration has."""
    there = {field.name for field in fields(config)}

    def of(name: str) -> Any:
        return getattr(config, name) if name in there else None

    parts = [_named(kind, of("cell"), of("attention"), "attention" in there)]
    layers, below = of("num_layers"), of("num_decoder_layers")
    if layers is not None:
        both = "num_decoder_layers" in there
        parts.append(
            f"{layers} + {below or layers} layers" if both else f"{layers} layer{'s' * (layers != 1)}"
        )
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

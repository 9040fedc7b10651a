"""The published families that are known, by the `model_type` of their config.json."""

from typing import Any

from dragoman.checkpoint.huggingface.bart import BART
from dragoman.checkpoint.huggingface.bert import BERT
from dragoman.checkpoint.huggingface.family import Family
from dragoman.checkpoint.huggingface.gpt import GPT, GPT2
from dragoman.checkpoint.huggingface.m2m import M2M
from dragoman.checkpoint.huggingface.marian import MARIAN
from dragoman.checkpoint.huggingface.pegasus import PEGASUS
from dragoman.checkpoint.huggingface.t5 import T5
from dragoman.errors import UserError
from dragoman.models.bert import BertConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.transformer import TransformerConfig

FAMILIES: dict[str, Family] = {
    family.model_type: family for family in (MARIAN, PEGASUS, T5, BART, M2M, BERT, GPT, GPT2)
}
_BY_POSITIONS = {"sinusoidal": MARIAN, "learned": BART, "t5": T5}


def family_of(kind: str, config: Any) -> Family:
    """The family that a model of ours can be written as, if its other options allow it."""
    if isinstance(config, GptConfig):
        return GPT2 if config.norm == "pre" else GPT
    if isinstance(config, BertConfig):
        return BERT
    if not isinstance(config, TransformerConfig):
        known = ", ".join(dict.fromkeys(family.kind for family in FAMILIES.values()))
        elsewhere = "; --to onnx takes it" if kind == "rnn" else ""
        raise UserError(f"model.kind: transformers has no model like {kind}, only like {known}{elsewhere}")
    if config.copy:
        raise UserError(
            "model.copy: transformers has no encoder-decoder that copies from its source; use the run "
            "itself, or train one with model.copy=false"
        )
    if config.positions not in _BY_POSITIONS:
        raise UserError(
            f"model.positions: transformers has no such encoder-decoder with {config.positions} positions; "
            "export this run with --to onnx, ctranslate2 or argos, or train one with "
            "model.positions=sinusoidal, which --to huggingface takes"
        )
    if config.positions == "sinusoidal" and config.norm == "pre":
        return PEGASUS
    return _BY_POSITIONS[config.positions]

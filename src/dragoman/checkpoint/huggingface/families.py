"""The published families that are known, by the `model_type` of their config.json."""

from dragoman.checkpoint.huggingface.bart import BART
from dragoman.checkpoint.huggingface.family import Family
from dragoman.checkpoint.huggingface.marian import MARIAN
from dragoman.checkpoint.huggingface.t5 import T5
from dragoman.errors import UserError
from dragoman.models.transformer import TransformerConfig

FAMILIES: dict[str, Family] = {family.model_type: family for family in (MARIAN, T5, BART)}
_BY_POSITIONS = {"sinusoidal": MARIAN, "learned": BART, "t5": T5}


def family_of(kind: str, config: object) -> tuple[Family, TransformerConfig]:
    """The family that a model of ours can be written as, if its other options allow it."""
    if kind != "transformer" or not isinstance(config, TransformerConfig):
        raise UserError(f"model.kind: transformers has no counterpart of {kind}; only transformer has one")
    if config.positions not in _BY_POSITIONS:
        known = ", ".join(f"{name} ({family.architecture})" for name, family in _BY_POSITIONS.items())
        raise UserError(
            f"model.positions: transformers has no encoder-decoder with {config.positions}; it has {known}"
        )
    return _BY_POSITIONS[config.positions], config

"""Named configurations: `model: {preset: transformer-base}`. Each is a function that returns its config."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from dragoman.errors import UserError, did_you_mean
from dragoman.models import pretrained_presets as pretrained
from dragoman.models.abilities import Abilities
from dragoman.models.convs2s import ConvS2SConfig
from dragoman.models.markov import MarkovConfig
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig


class ModelConfig(Protocol):
    """A frozen dataclass that says what its model can do."""

    @property
    def abilities(self) -> Abilities: ...


def transformer_tiny() -> TransformerConfig:
    """For a few ten thousand pairs (Wu et al. 2021, text-only Multi30k): 2.6 M parameters."""
    return TransformerConfig(num_layers=4, model_dim=128, num_heads=4, ff_dim=256, dropout=0.3)


def transformer_small() -> TransformerConfig:
    """For two CPU cores and up to some hundred thousand pairs."""
    return TransformerConfig(num_layers=3, model_dim=256, num_heads=4, ff_dim=1024, dropout=0.1)


def transformer_base() -> TransformerConfig:
    """The paper's base model (Vaswani et al. 2017, table 3)."""
    return TransformerConfig(num_layers=6, model_dim=512, num_heads=8, ff_dim=2048, dropout=0.1)


def transformer_big() -> TransformerConfig:
    """The paper's big model (Vaswani et al. 2017, table 3)."""
    return TransformerConfig(num_layers=6, model_dim=1024, num_heads=16, ff_dim=4096, dropout=0.3)


def transformer_student() -> TransformerConfig:
    """For speed: a deep encoder, which reads all positions at once, and a decoder of one layer, which runs
    once for every piece (Kasai et al. 2021). Meant for distillation."""
    return TransformerConfig(
        num_layers=6, num_decoder_layers=1, model_dim=256, num_heads=4, ff_dim=1024, dropout=0.1
    )


def lstm() -> RnnConfig:
    """Bidirectional LSTM with additive attention, after Bahdanau et al. 2015, at a small size."""
    return RnnConfig(cell="lstm", num_layers=1, model_dim=256, attention="additive", dropout=0.2)


def lstm_no_attention() -> RnnConfig:
    """The same without attention: the source is one vector."""
    return RnnConfig(cell="lstm", num_layers=1, model_dim=256, attention="none", dropout=0.2)


def convs2s_preset() -> ConvS2SConfig:
    """Convolutions with attention at every decoder layer, after Gehring et al. 2017, at a small size."""
    return ConvS2SConfig(num_layers=4, model_dim=256, kernel_width=3, attention="dot", dropout=0.2)


def bag_of_words() -> TransformerConfig:
    """Vectors of pieces, without places: the mean of them is what a task sees. The layers above are not used,
    and are as small as they can be."""
    return TransformerConfig(
        num_layers=1, model_dim=100, num_heads=1, ff_dim=1, positions="none", scale_embeddings=False
    )


def markov_preset() -> MarkovConfig:
    """A trigram model of the target language: it never looks at the source."""
    return MarkovConfig(order=2)


def markov_skips() -> MarkovConfig:
    """Every earlier word votes, those of the source too, as far as the mask lets it be heard."""
    return MarkovConfig(order=2, skips=True, mask="selective")


class Preset(NamedTuple):
    kind: str
    make: Callable[[], ModelConfig]
    objective: str | None = None
    """The way of learning that it is pre-trained with; None where there is no usual one."""
    task: Mapping[str, str] = {}
    """How a task uses it, unless somebody says otherwise."""


PRESETS: dict[str, Preset] = {
    "transformer-tiny": Preset("transformer", transformer_tiny),
    "transformer-small": Preset("transformer", transformer_small),
    "transformer-base": Preset("transformer", transformer_base),
    "transformer-big": Preset("transformer", transformer_big),
    "transformer-student": Preset("transformer", transformer_student),
    "lstm": Preset("rnn", lstm),
    "lstm-no-attention": Preset("rnn", lstm_no_attention),
    "convs2s": Preset("convs2s", convs2s_preset),
    "gpt": Preset("gpt", pretrained.gpt_preset, "causal"),
    "gpt-2": Preset("gpt", pretrained.gpt2, "causal"),
    "gpt-2-medium": Preset("gpt", pretrained.gpt2_medium, "causal"),
    "gpt-2-large": Preset("gpt", pretrained.gpt2_large, "causal"),
    "gpt-2-xl": Preset("gpt", pretrained.gpt2_xl, "causal"),
    "gpt-small": Preset("gpt", pretrained.gpt_small, "causal"),
    "gpt-tiny": Preset("gpt", pretrained.gpt_tiny, "causal"),
    "bert-base": Preset("bert", pretrained.bert_base, "masked"),
    "bert-large": Preset("bert", pretrained.bert_large, "masked"),
    "bert-tiny": Preset("bert", pretrained.bert_tiny, "masked"),
    "ulmfit": Preset("ulmfit", pretrained.ulmfit_preset, "causal"),
    "ulmfit-tiny": Preset("ulmfit", pretrained.ulmfit_tiny, "causal"),
    "elmo": Preset("elmo", pretrained.elmo_preset, "bidirectional"),
    "elmo-tiny": Preset("elmo", pretrained.elmo_tiny, "bidirectional"),
    "unilm-base": Preset("unilm", pretrained.unilm_base, "unilm"),
    "unilm-large": Preset("unilm", pretrained.unilm_large, "unilm"),
    "unilm-tiny": Preset("unilm", pretrained.unilm_tiny, "unilm"),
    "t5-small": Preset("transformer", pretrained.t5_small, "spans"),
    "t5-base": Preset("transformer", pretrained.t5_base, "spans"),
    "t5-large": Preset("transformer", pretrained.t5_large, "spans"),
    "t5-tiny": Preset("transformer", pretrained.t5_tiny, "spans"),
    "bart-base": Preset("transformer", pretrained.bart_base, "denoise"),
    "bart-large": Preset("transformer", pretrained.bart_large, "denoise"),
    "bart-tiny": Preset("transformer", pretrained.bart_tiny, "denoise"),
    "vit-base": Preset("vit", pretrained.vit_base),
    "vit-tiny": Preset("vit", pretrained.vit_tiny),
    "vit-series": Preset("vit", pretrained.vit_series),
    "bag-of-words": Preset("transformer", bag_of_words, task={"layers": "embeddings", "pooling": "mean"}),
    "markov": Preset("markov", markov_preset, "causal"),
    "markov-skips": Preset("markov", markov_skips, "causal"),
}


def usual_objective(name: str) -> str:
    """The objective that a preset is pre-trained with."""
    preset(name)
    objective = PRESETS[name].objective
    if objective is None:
        raise UserError(
            f"--model: '{name}' has no default objective; choose one with  objective.name=causal, spans "
            "or denoise"
        )
    return objective


def unknown_preset(name: str, where: str) -> UserError:
    advice = did_you_mean(name, PRESETS) or f"; presets are {', '.join(PRESETS)}"
    return UserError(f"{where}: '{name}' is not known{advice}")


def preset(name: str, where: str = "model") -> tuple[str, ModelConfig]:
    """The model's kind and its config."""
    if name not in PRESETS:
        raise unknown_preset(name, f"{where}.preset")
    return PRESETS[name].kind, PRESETS[name].make()

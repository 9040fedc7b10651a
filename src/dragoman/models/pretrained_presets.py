"""Presets of models that are pre-trained on text or read images: published sizes, and small ones."""

from dataclasses import replace

from dragoman.models.bert import BertConfig
from dragoman.models.elmo import ElmoConfig
from dragoman.models.gpt import GptConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.ulmfit import UlmfitConfig
from dragoman.models.unilm import UnilmConfig
from dragoman.models.vit import VitConfig


def gpt_preset() -> GptConfig:
    """The model of «Improving Language Understanding by Generative Pre-Training» (Radford et al. 2018)."""
    return GptConfig(num_layers=12, model_dim=768, num_heads=12, ff_dim=3072, norm="post", max_positions=512)


def gpt2() -> GptConfig:
    """The smallest model of Radford et al. 2019."""
    return GptConfig(num_layers=12, model_dim=768, num_heads=12, ff_dim=3072, norm="pre")


def gpt2_medium() -> GptConfig:
    return replace(gpt2(), num_layers=24, model_dim=1024, num_heads=16, ff_dim=4096)


def gpt2_large() -> GptConfig:
    return replace(gpt2(), num_layers=36, model_dim=1280, num_heads=20, ff_dim=5120)


def gpt2_xl() -> GptConfig:
    """The largest model of Radford et al. 2019."""
    return replace(gpt2(), num_layers=48, model_dim=1600, num_heads=25, ff_dim=6400)


def gpt_small() -> GptConfig:
    """GPT-2's wiring for a GPU and an hour, or two CPU cores and a night."""
    return GptConfig(num_layers=6, model_dim=384, num_heads=6, ff_dim=1536, max_positions=512)


def gpt_tiny() -> GptConfig:
    """GPT-2's wiring for two CPU cores and some minutes."""
    return GptConfig(num_layers=4, model_dim=128, num_heads=4, ff_dim=512, max_positions=512)


def bert_base() -> BertConfig:
    """The smaller model of Devlin et al. 2019."""
    return BertConfig(num_layers=12, model_dim=768, num_heads=12, ff_dim=3072)


def bert_large() -> BertConfig:
    """The larger one."""
    return BertConfig(num_layers=24, model_dim=1024, num_heads=16, ff_dim=4096)


def bert_tiny() -> BertConfig:
    """For two CPU cores and some minutes."""
    return BertConfig(num_layers=4, model_dim=128, num_heads=4, ff_dim=512, max_positions=512)


def ulmfit_preset() -> UlmfitConfig:
    """AWD-LSTM as it is for the Penn Treebank (Merity et al. 2018, section 5), and in ULMFiT."""
    return UlmfitConfig()


def ulmfit_tiny() -> UlmfitConfig:
    """The same architecture, small enough for a CPU, with less dropout."""
    return UlmfitConfig(
        num_layers=2,
        model_dim=128,
        hidden_dim=256,
        embedding_dropout=0.05,
        input_dropout=0.1,
        dropout=0.1,
        output_dropout=0.1,
        weight_dropout=0.2,
    )


def elmo_preset() -> ElmoConfig:
    """The model of Peters et al. 2018, section 3.4."""
    return ElmoConfig()


def elmo_tiny() -> ElmoConfig:
    """The same architecture, small enough for a CPU."""
    filters = ((1, 16), (2, 32), (3, 64), (4, 64))
    return ElmoConfig(model_dim=96, hidden_dim=256, max_characters=16, filters=filters, num_highway=1)


def unilm_base() -> UnilmConfig:
    """As large as BERT base."""
    return UnilmConfig(num_layers=12, model_dim=768, num_heads=12, ff_dim=3072)


def unilm_large() -> UnilmConfig:
    """Of the size of Dong et al. 2019."""
    return UnilmConfig(num_layers=24, model_dim=1024, num_heads=16, ff_dim=4096)


def unilm_tiny() -> UnilmConfig:
    """For two CPU cores and some minutes."""
    return UnilmConfig(num_layers=4, model_dim=128, num_heads=4, ff_dim=512, max_positions=512)


def t5_tiny() -> TransformerConfig:
    """T5's wiring (Raffel et al. 2020) for two CPU cores and some minutes."""
    return replace(t5_small(), num_layers=3, model_dim=128, num_heads=4, head_dim=None, ff_dim=256)


def t5_small() -> TransformerConfig:
    """The smallest model of Raffel et al. 2020: distances inside every attention, a norm without a mean, no
    biases, nothing scaled."""
    return TransformerConfig(
        num_layers=6,
        model_dim=512,
        num_heads=8,
        head_dim=64,
        ff_dim=2048,
        ff_dropout=0.1,
        attention_dropout=0.1,
        norm="pre",
        norm_kind="rms",
        norm_eps=1e-6,
        bias=False,
        scale_attention=False,
        positions="t5",
        scale_embeddings=False,
        scale_output=True,
    )


def t5_base() -> TransformerConfig:
    return replace(t5_small(), num_layers=12, model_dim=768, num_heads=12, ff_dim=3072)


def t5_large() -> TransformerConfig:
    """The largest model of Raffel et al. 2020 whose heads together are as wide as the model."""
    return replace(t5_small(), num_layers=24, model_dim=1024, num_heads=16, ff_dim=4096)


def bart_tiny() -> TransformerConfig:
    """BART's wiring (Lewis et al. 2020) for two CPU cores and some minutes."""
    return replace(bart_base(), num_layers=3, model_dim=128, num_heads=4, ff_dim=256, max_positions=512)


def bart_base() -> TransformerConfig:
    """The smaller model of Lewis et al. 2020: learnt positions, and a norm on the embeddings."""
    return TransformerConfig(
        num_layers=6,
        model_dim=768,
        num_heads=12,
        ff_dim=3072,
        attention_dropout=0.1,
        activation="gelu",
        positions="learned",
        max_positions=1024,
        scale_embeddings=False,
        norm_embeddings=True,
    )


def vit_base() -> VitConfig:
    """ViT-B/16 for images of 224 × 224 in colours."""
    return VitConfig()


def vit_tiny() -> VitConfig:
    """For small images, and series with labels."""
    return VitConfig(num_layers=4, model_dim=128, num_heads=4, ff_dim=512, dropout=0.1, norm_eps=1e-6)


def vit_series() -> VitConfig:
    """For forecasts: the sizes that Nie et al. (2023) use for small data."""
    return VitConfig(num_layers=3, model_dim=16, num_heads=4, ff_dim=128, dropout=0.3, norm_eps=1e-6)


def bart_large() -> TransformerConfig:
    """The larger one."""
    return replace(bart_base(), num_layers=12, model_dim=1024, num_heads=16, ff_dim=4096)

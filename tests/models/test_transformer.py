"""What the options of a Transformer share, refuse and leave out."""

from typing import Any

import pytest
import torch

from battery.models import VOCAB, random_batch
from dragoman.config import from_dict, to_dict
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.attention_kernels import open_tap
from dragoman.nn.average_attention import AverageAttention

_SMALL: dict[str, Any] = {"num_layers": 2, "model_dim": 16, "num_heads": 4, "ff_dim": 24}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"positions": "rotary", "head_dim": 3}, "a head of width 3 cannot be divided into pairs"),
        ({"positions": "t5", "decoder_self": "average"}, "decoder_self: average has no scores"),
        ({"positions": "shaw", "decoder_self": "average"}, "positions shaw could change"),
        ({"position_base": 0.0}, "position_base: expected a number above 0, found 0.0"),
        ({"max_positions": 0}, "max_positions: expected a whole number of at least 1, found 0"),
        ({"relative_window": 0}, "relative_window: expected a whole number of at least 1, found 0"),
        ({"relative_buckets": 7}, "relative_buckets: expected an even number of at least 4, found 7"),
        ({"relative_max_distance": 16}, "relative_max_distance: expected more than half of the 32"),
        ({"positions": "t6"}, "positions: expected one of sinusoidal, learned, t5, shaw, rotary, none"),
    ],
)
def test_impossible_options_are_refused_in_one_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence) as error:
        from_dict(TransformerConfig, {**_SMALL, **fields}, "model")
    assert str(error.value).startswith("model.")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("fields", "packs"),
    [
        ({}, True),
        ({"positions": "rotary"}, True),
        ({"positions": "shaw"}, False),
        ({"decoder_self": "average"}, False),
        ({"decoder_self": "average", "positions": "learned"}, False),
    ],
)
def test_packed_is_what_looks_at_other_positions_by_attention_alone(
    fields: dict[str, Any], packs: bool
) -> None:
    """An average of all earlier positions would run over the ends of the packed sentences."""
    assert TransformerConfig(**_SMALL, **fields).abilities.packs is packs


def test_options_survive_a_file() -> None:
    config = TransformerConfig(**_SMALL, positions="t5", gated=True, norm_kind="rms", bias=False)
    assert from_dict(TransformerConfig, to_dict(config)) == config


def test_t5_has_one_table_a_stack_and_shaw_two_a_layer() -> None:
    model = build_model("transformer", TransformerConfig(**_SMALL, positions="t5", relative_buckets=8), VOCAB)
    tables = {name: tuple(p.shape) for name, p in model.named_parameters() if "relations" in name}
    assert tables == {"encoder.relations.weight": (8, 4), "decoder.relations.weight": (8, 4)}
    model = build_model(
        "transformer", TransformerConfig(**_SMALL, positions="shaw", relative_window=3), VOCAB
    )
    tables = {name: tuple(p.shape) for name, p in model.named_parameters() if "distances" in name}
    assert len(tables) == 2 * 2 * 2
    assert set(tables.values()) == {(7, 4), (4, 4)}


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "none"])
def test_positions_without_parameters_add_nothing_to_a_checkpoint(positions: Any) -> None:
    expected = build_model("transformer", TransformerConfig(**_SMALL), VOCAB).state_dict()
    model = build_model("transformer", TransformerConfig(**_SMALL, positions=positions), VOCAB)
    assert list(model.state_dict()) == list(expected)


def test_without_biases_only_the_norms_have_any() -> None:
    config = TransformerConfig(**_SMALL, bias=False, positions="learned", decoder_self="average")
    names = [
        name for name, _ in build_model("transformer", config, VOCAB).named_parameters() if "bias" in name
    ]
    assert names
    assert all(".norm.bias" in name for name in names)


def test_an_average_decoder_shows_no_weights_of_its_own() -> None:
    model = build_model("transformer", TransformerConfig(**_SMALL, decoder_self="average"), VOCAB).eval()
    owners: list[torch.nn.Module] = []
    src, mask, tgt = random_batch(VOCAB, [4, 2], 3)
    with torch.no_grad(), open_tap(lambda owner, _weights: owners.append(owner)):
        model(src, mask, tgt)
    assert len(owners) == 2 + 2  # the encoder's self-attentions and the decoder's cross-attentions
    assert not any(isinstance(owner, AverageAttention) for owner in owners)


@pytest.mark.parametrize("positions", ["learned", "t5", "shaw", "rotary"])
def test_sentences_longer_than_any_table_are_read(positions: Any) -> None:
    config = TransformerConfig(
        **_SMALL, positions=positions, max_positions=5, relative_window=2, relative_max_distance=20
    )
    model = build_model("transformer", config, VOCAB).eval()
    src, mask, tgt = random_batch(VOCAB, [600, 3], 530)
    with torch.no_grad():
        assert model(src, mask, tgt).isfinite().all()


def test_embeddings_that_nothing_scales_begin_with_unit_variance() -> None:
    """As T5's: what is projected is divided by √D instead. Elsewhere their variance is 1/D."""
    torch.manual_seed(0)
    vocab = Vocab(400, 400, shared=True)
    stds = []
    for scaled in (True, False):
        config = TransformerConfig(**_SMALL, scale_embeddings=scaled, scale_output=not scaled)
        stds.append(build_model("transformer", config, vocab).decoder.embedding.weight.std().item())
    assert stds[0] == pytest.approx(_SMALL["model_dim"] ** -0.5, rel=0.1)
    assert stds[1] == pytest.approx(1.0, rel=0.1)

"""Halves that come from different models: what they share, and what a wrong section is told."""

import pytest
import torch

from battery.models import VOCAB
from dragoman.config import from_dict, to_dict
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.mixed import MixedConfig
from dragoman.models.rnn import RnnConfig, RnnDecoder
from dragoman.models.transformer import TransformerConfig, TransformerEncoder

_SMALL = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 16}


def test_a_section_is_written_out_in_full_and_reads_back() -> None:
    config = MixedConfig({"preset": "transformer-tiny", "num_layers": 1}, {"kind": "rnn", "model_dim": 12})
    assert config.encoder["kind"] == "transformer"
    assert config.encoder["ff_dim"] == 256
    assert config.decoder == {"kind": "rnn", **to_dict(RnnConfig(model_dim=12))}
    assert config.model_dim == 12
    assert from_dict(MixedConfig, to_dict(config)) == config


@pytest.mark.parametrize("width, shared", [(16, True), (12, False)])
def test_one_matrix_where_widths_allow(width: int, shared: bool) -> None:
    config = MixedConfig({"kind": "transformer", **_SMALL}, {"kind": "rnn", "model_dim": width})
    model = build_model("mixed", config, VOCAB)
    assert isinstance(model.encoder, TransformerEncoder)
    assert isinstance(model.decoder, RnnDecoder)
    assert (model.encoder.embedding.weight is model.decoder.embedding.weight) == shared
    assert model.decoder.embedding.weight is model.projection.weight


def test_two_halves_of_one_kind_are_that_kind() -> None:
    both = {"kind": "transformer", **_SMALL}
    torch.manual_seed(1)
    mixed = build_model("mixed", MixedConfig(both, both), VOCAB)
    torch.manual_seed(1)
    whole = build_model("transformer", TransformerConfig(**_SMALL), VOCAB)
    for (name, ours), (same, theirs) in zip(
        mixed.state_dict().items(), whole.state_dict().items(), strict=True
    ):
        assert name == same
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize(
    "encoder, message",
    [
        ({"kind": "mixed"}, r"^model\.encoder\.kind: 'mixed' is not known here; choose one of transformer"),
        ({"preset": "nothing"}, r"^model\.encoder\.preset: 'nothing' is not known"),
        ({"kind": "rnn", "num_heads": 4}, r"^model\.encoder\.num_heads: unknown field"),
        ({"kind": "rnn", "model_dim": 0}, r"^model\.encoder\.model_dim: expected a whole number"),
        ({"kind": 3}, r"^model\.encoder\.kind: expected text, found 3"),
    ],
)
def test_a_wrong_section_is_named(encoder: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        from_dict(MixedConfig, {"encoder": encoder, "decoder": {}}, "model")

"""What a model is where a recipe or an older run says nothing else."""

from dataclasses import replace

import pytest
import torch

from dragoman.errors import UserError
from dragoman.models import build_model, chosen_config
from dragoman.models.base import Vocab
from dragoman.models.gpt import GptConfig
from dragoman.models.markov import MarkovConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.models.vit import VitConfig, vit


@pytest.mark.parametrize("silent", [False, True])
def test_padding_has_a_probability_unless_it_is_silent(silent: bool) -> None:
    config = GptConfig(num_layers=1, model_dim=8, num_heads=2, ff_dim=8)
    config = replace(config, silent_pad=True) if silent else config
    model = build_model("gpt", config, Vocab(9, 9, shared=True, pad_id=3)).eval()
    ids = torch.tensor([[1, 4, 5]])
    assert model.projection is not None
    with torch.no_grad():
        said = model.projection(model(ids, ids > 0, ids)).softmax(dim=-1)
    assert bool((said[..., 3] == 0).all()) == silent


def test_vectors_are_those_of_pictures_in_squares_of_16() -> None:
    config = VitConfig(num_layers=1, model_dim=8, num_heads=2, ff_dim=8)
    model = vit(config, Vocab(3, 3, shared=True))
    pictures = torch.randn(1, 4, 3 * 16 * 16)
    assert model.read(pictures, torch.ones(1, 5, dtype=torch.bool)).shape == (1, 5, 8)
    assert config.max_positions == 14 * 14


@pytest.mark.parametrize("sizes", [(5, 3), (3, 5)])
def test_control_pieces_are_in_both_vocabularies(sizes: tuple[int, int]) -> None:
    with pytest.raises(UserError, match="eos_id: expected the number of a piece, found 3"):
        Vocab(*sizes, shared=False, eos_id=3)


def test_a_field_of_another_kind_of_model_is_named() -> None:
    with pytest.raises(UserError, match=r"model\.order: unknown field of kind transformer; it belongs to "):
        chosen_config({"order": 3}, {"transformer": TransformerConfig, "markov": MarkovConfig})

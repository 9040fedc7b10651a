"""Captions by any decoder behind an encoder of patches: computed in two ways, and alone as in a batch."""

from typing import Any

import numpy as np
import pytest
import torch

from dragoman.data.batch import collate, pad_vectors
from dragoman.data.labelled.config import TaskConfig
from dragoman.data.labelled.example import VectorExample
from dragoman.data.vectors.config import ImageInput
from dragoman.data.vectors.examples import LabelledVectors
from dragoman.decode.predict_vectors import Captioner
from dragoman.decode.search.config import BeamSearch
from dragoman.errors import UserError
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.mixed import MixedConfig
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

TASK = TaskConfig("caption", image=ImageInput(4, 6, 1, 2, (0.5,), (0.25,)))
ENCODER = {"kind": "vit", "num_layers": 1, "model_dim": 8, "num_heads": 2, "ff_dim": 8, "input_dim": 4}
DECODERS: dict[str, dict[str, Any]] = {
    "transformer": {"kind": "transformer", "num_layers": 1, "model_dim": 8, "num_heads": 2, "ff_dim": 8},
    "rnn": {"kind": "rnn", "model_dim": 12, "attention": "additive"},
    "convs2s": {"kind": "convs2s", "num_layers": 2, "model_dim": 8},
}


def captioner(decoder: dict[str, Any], beam: int) -> Captioner:
    tokenizer = Tokenizer.train(["red blue green"], TokenizerConfig(kind="byte", vocab_size=259))
    torch.manual_seed(3)
    config = MixedConfig({**ENCODER, "max_positions": 6}, decoder)
    model = build_model("mixed", config, Vocab(tokenizer.size, tokenizer.size, shared=True)).double().eval()
    search = BeamSearch(beam=beam, max_length=7, max_ratio=1)
    return Captioner(model, tokenizer, TASK, search, torch.device("cpu"))


def images(count: int) -> LabelledVectors:
    pixels = np.random.default_rng(5).integers(0, 255, size=(count, 4, 6, 1), dtype=np.uint8)
    examples = [VectorExample((str(number),), None, "", each) for number, each in enumerate(pixels)]
    return LabelledVectors(pixels, examples, TASK)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("decoder", list(DECODERS))
def test_step_by_step_is_as_all_at_once(decoder: str, beam: int) -> None:
    own, shown = captioner(DECODERS[decoder], beam), images(5)
    found = own.captions(shown, np.arange(5))
    vectors = shown.unchanged(np.arange(5)).vectors.double()
    text = collate([((), best.tokens) for best in found])
    with torch.no_grad():
        hidden = own.model(vectors, torch.ones(5, 6, dtype=torch.bool), text.tgt_in)
        scores = own.model.project(hidden).log_softmax(dim=-1).gather(2, text.tgt_out[..., None])[..., 0]
    for row, best in enumerate(found):
        count = len(best.tokens)
        assert count
        np.testing.assert_allclose(best.token_scores[:count], scores[row, :count], atol=1e-6)
        (alone,) = own.captions(shown, np.array([row]))
        assert alone.tokens == best.tokens
    assert len({best.tokens for best in found}) > 1  # what is seen counts


def test_vectors_are_padded_at_the_end() -> None:
    rows = [np.ones((2, 3)), np.full((1, 3), 2.0)]
    vectors, mask = pad_vectors(rows)
    assert vectors.tolist() == [[[1, 1, 1]] * 2, [[2, 2, 2], [0, 0, 0]]]
    assert mask.tolist() == [[True, True], [True, False]]


def test_vit_is_no_decoder() -> None:
    with pytest.raises(UserError, match=r"decoder\.kind: 'vit' is not known here"):
        MixedConfig({"kind": "transformer"}, {"kind": "vit"})

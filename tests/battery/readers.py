"""Every model that reads and does not write, small and random, with a batch and its objective."""

import dataclasses

import torch

from dragoman.data.batch import TextBatch
from dragoman.learning.bidirectional import Bidirectional
from dragoman.learning.loss import Objective
from dragoman.learning.masked import MaskedLanguageModel
from dragoman.learning.masked_prediction import AnsweredPieces
from dragoman.models import READERS, build_network
from dragoman.models.base import Vocab
from dragoman.models.bert import Bert, BertConfig
from dragoman.models.elmo import Elmo, ElmoConfig

VOCAB = Vocab(23, 23, shared=True)
CASES: dict[str, tuple[str, object, Objective]] = {
    "bert": ("bert", BertConfig(2, 16, 4, 24, max_positions=16), MaskedLanguageModel()),
    "elmo": (
        "elmo",
        ElmoConfig(2, 16, 24, 4, 8, ((1, 8), (2, 8), (3, 8)), num_highway=1),
        AnsweredPieces(Bidirectional()),
    ),
}
# ViT reads vectors, not pieces: tests/models/test_vit.py
assert {kind for kind, _, _ in CASES.values()} == set(READERS) - {"vit"}


def make_reader(name: str, dtype: torch.dtype = torch.float64) -> tuple[Bert | Elmo, TextBatch]:
    """Random weights, biases and gains too, no dropout; two texts, one of them shorter."""
    torch.manual_seed(0)
    kind, config, _ = CASES[name]
    model = build_network(kind, config, VOCAB)
    assert isinstance(model, Bert | Elmo)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    ids = torch.tensor([[1, 5, 3, 11, 7, 2], [4, 3, 8, 6, 0, 0]])  # each begins and ends in its own way
    segments = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 0, 0]])
    asked = torch.tensor([1, 2, 3, 4, 7, 8])
    targets = ids.flatten()[asked]
    follows = torch.tensor([True, False])
    batch = TextBatch(ids, ids != 0, segments, asked, targets, follows, len(asked))
    if name == "elmo":
        batch = dataclasses.replace(batch, follows=None, num_tokens=2 * len(asked))
    return model.to(dtype).eval(), batch

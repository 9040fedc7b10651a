"""Hugging Face's MarianMT with our weights: the same logits, and the same greedy and beam translations."""

import pytest
import torch

from dragoman.data.batch import collate
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.scorer import Scorer
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.transformer import TransformerConfig
from peers import published_like
from searching import search

SIZE = 97
PAD, BOS, EOS = 0, 1, 2
CONFIG = TransformerConfig(
    num_layers=2,
    model_dim=32,
    num_heads=4,
    ff_dim=64,
    activation="silu",
    position_layout="halves",
    output_bias=True,
)


@pytest.fixture(scope="module")
def ours() -> EncoderDecoder:
    torch.manual_seed(3)
    model = build_model("transformer", CONFIG, Vocab(SIZE, SIZE, shared=True)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    teach_lengths(model)
    return model


def teach_lengths(model: EncoderDecoder) -> None:
    """Random weights end at once or never; a little practice in copying makes ends as various as sources."""
    optimizer, objective = torch.optim.Adam(model.parameters(), lr=3e-3), CrossEntropy()
    generator = torch.Generator().manual_seed(5)
    for _ in range(60):
        lengths = torch.randint(1, 19, (16,), generator=generator).tolist()
        rows = [torch.randint(3, SIZE, (n,), generator=generator).tolist() for n in lengths]
        loss = objective(model, collate([(row, row) for row in rows]))
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        optimizer.step()


@pytest.fixture(scope="module")
def marian(ours: EncoderDecoder):
    return published_like(ours, CONFIG).eval()


def sentences(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(14)
    lengths = torch.randint(2, 20, (count,), generator=generator)
    mask = torch.arange(20)[None] < lengths[:, None]
    src = torch.randint(3, SIZE, (count, 20), generator=generator)
    src[torch.arange(count), lengths - 1] = EOS
    return src.masked_fill(~mask, PAD), mask


def test_same_logits(ours: EncoderDecoder, marian) -> None:
    src, mask = sentences(16)
    tgt = torch.randint(3, SIZE, (16, 15), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        theirs = marian(input_ids=src, attention_mask=mask.long(), decoder_input_ids=tgt).logits
        torch.testing.assert_close(ours.project(ours(src, mask, tgt)), theirs, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("beam", [1, 4])
def test_same_translations(ours: EncoderDecoder, marian, beam: int) -> None:
    src, mask = sentences(60)
    theirs = marian.generate(
        input_ids=src,
        attention_mask=mask.long(),
        num_beams=beam,
        do_sample=False,
        early_stopping=beam > 1,
        length_penalty=1.0,
        max_new_tokens=60,
        bad_words_ids=[[PAD], [BOS]],
    )[:, 1:].tolist()
    config = SearchConfig(beam=beam, alpha=1.0, max_ratio=0, max_extra=60, stop="complete")
    found = search(Scorer([ours]), src, mask, config)
    expected = [tuple(row[: row.index(EOS) + 1]) if EOS in row else tuple(row) for row in theirs]
    ended = [index for index, row in enumerate(expected) if row[-1] == EOS]
    assert len({len(expected[index]) for index in ended}) > 3  # about twenty; without practice, one or two
    for index in ended:
        assert found[index][0].tokens == expected[index], index

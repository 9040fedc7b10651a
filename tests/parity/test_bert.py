"""BERT against Hugging Face's with the same random weights: both heads, with padding and segments."""

import pytest
import torch
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining

from dragoman.checkpoint.huggingface.families import family_of
from dragoman.checkpoint.model import load_into
from dragoman.data.batch import TextBatch
from dragoman.learning.masked import MaskedLanguageModel
from dragoman.models import build_network
from dragoman.models.base import Vocab
from dragoman.models.bert import Bert, BertConfig

SIZE, PLACES, WIDTH, LAYERS = 29, 12, 16, 2


@pytest.fixture(scope="module")
def both() -> tuple[BertForPreTraining, Bert]:
    torch.manual_seed(1)
    heads = {"num_attention_heads": 4, "num_hidden_layers": LAYERS, "intermediate_size": 40}
    theirs = BertForPreTraining(
        TheirConfig(vocab_size=SIZE, hidden_size=WIDTH, max_position_embeddings=PLACES, **heads)
    ).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    config = BertConfig(LAYERS, WIDTH, 4, 40, max_positions=PLACES)
    ours = build_network("bert", config, Vocab(SIZE, SIZE, True))
    assert isinstance(ours, Bert)
    weights = dict(theirs.named_parameters())
    table = family_of("bert", config).weights(config, True)
    load_into(ours, {name: weight.read(weights) for name, weight in table.items()}, "theirs")
    return theirs, ours.eval()


def test_the_loss_is_the_same(both) -> None:
    theirs, ours = (model.double() for model in both)
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(3, SIZE, (3, PLACES), generator=generator)
    segments = torch.randint(0, 2, (3, PLACES), generator=generator)
    mask = torch.arange(PLACES) < torch.tensor([PLACES, 7, 4])[:, None]
    asked = torch.tensor([1, 5, PLACES + 2, PLACES + 6, 2 * PLACES + 3])
    targets, follows = torch.tensor([9, 4, 11, 28, 7]), torch.tensor([True, False, False])
    labels = torch.full((3 * PLACES,), -100).index_put((asked,), targets).view(3, PLACES)
    arguments = {"attention_mask": mask.long(), "token_type_ids": segments}
    expected = theirs(ids, **arguments, labels=labels, next_sentence_label=(~follows).long()).loss
    batch = TextBatch(ids.masked_fill(~mask, 0), mask, segments, asked, targets, follows, 5)
    loss = MaskedLanguageModel()(ours, batch)
    torch.testing.assert_close(loss.total / loss.count, expected, atol=1e-10, rtol=0)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
@pytest.mark.parametrize("lengths", [[PLACES] * 3, [PLACES, 5, 1]], ids=["whole", "padded"])
def test_both_heads_say_the_same(both, dtype: torch.dtype, tolerance: float, lengths: list[int]) -> None:
    theirs, ours = (model.to(dtype) for model in both)
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(3, SIZE, (3, PLACES), generator=generator)
    segments = torch.randint(0, 2, (3, PLACES), generator=generator)
    mask = torch.arange(PLACES) < torch.tensor(lengths)[:, None]
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask.long(), token_type_ids=segments, output_hidden_states=True)
        layers = ours.read_layers(ids.masked_fill(~mask, 0), mask, segments)
        hidden = ours.read(ids.masked_fill(~mask, 0), mask, segments)
        found = ours.project(hidden)
    close = {"atol": tolerance, "rtol": 0}
    for layer, their_layer in zip(layers, expected.hidden_states, strict=True):
        torch.testing.assert_close(layer[mask], their_layer[mask], **close)
    torch.testing.assert_close(found[mask], expected.prediction_logits[mask], **close)
    torch.testing.assert_close(ours.follows(hidden), expected.seq_relationship_logits, **close)
    for row, length in enumerate(lengths):
        with torch.no_grad():
            alone = ours.read(*(x[row : row + 1, :length] for x in (ids, mask, segments)))
        torch.testing.assert_close(alone[0], hidden[row, :length], **close)

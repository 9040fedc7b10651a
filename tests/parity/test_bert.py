"""BERT against Hugging Face's with the same random weights: both heads, with padding and segments."""

import pytest
import torch
from transformers import BertConfig as TheirConfig
from transformers import BertForPreTraining

from dragoman.data.batch import TextBatch
from dragoman.models import build_network
from dragoman.models.base import Vocab
from dragoman.models.bert import Bert, BertConfig
from dragoman.objectives import MaskedLanguageModel

SIZE, PLACES, WIDTH, LAYERS = 29, 12, 16, 2
_NAMES = {
    "bert.embeddings.word_embeddings.weight": "embedding.weight",
    "bert.embeddings.position_embeddings.weight": "positions.weight",
    "bert.embeddings.token_type_embeddings.weight": "segments",
    "bert.embeddings.LayerNorm.": "embedding_norm.",
    "bert.pooler.dense.": "pooler.",
    "cls.predictions.transform.dense.": "transform.",
    "cls.predictions.transform.LayerNorm.": "transform_norm.",
    "cls.predictions.bias": "projection.bias",
    "cls.seq_relationship.": "next_sentence.",
    "bert.encoder.layer.": "layers.",
    "attention.output.dense.": "self_attention.out.",
    "attention.output.LayerNorm.": "self_residual.norm.",
    "intermediate.dense.": "feedforward.widen.",
    "output.dense.": "feedforward.narrow.",
    "output.LayerNorm.": "ff_residual.norm.",
}


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
    ours = build_network(
        "bert", BertConfig(LAYERS, WIDTH, 4, 40, max_positions=PLACES), Vocab(SIZE, SIZE, True)
    )
    assert isinstance(ours, Bert)
    weights = {renamed(name): tensor.detach() for name, tensor in theirs.named_parameters()}
    for kind in ("weight", "bias"):
        for layer in range(LAYERS):
            parts = [
                weights.pop(f"layers.{layer}.attention.self.{part}.{kind}")
                for part in ("query", "key", "value")
            ]
            weights[f"layers.{layer}.self_attention.query_key_value.{kind}"] = torch.cat(parts)
    weights["projection.weight"] = weights["embedding.weight"]
    ours.load_state_dict(weights)
    return theirs, ours.eval()


def renamed(name: str) -> str:
    for theirs, ours in _NAMES.items():
        if theirs in name:
            name = name.replace(theirs, ours)
    return name


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

"""Models that copy from their source: what only they have to do. The battery has the rest."""

import pytest
import torch

from battery.models import VOCAB, random_batch
from dragoman.checkpoint.model import load_into, model_tensors
from dragoman.data.batch import collate
from dragoman.data.packed import PackedPairs
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Job
from dragoman.decode.search.scorer import Scorer
from dragoman.errors import UserError
from dragoman.kernels import int8
from dragoman.learning.cross_entropy import CrossEntropy, RDrop, decode_own_words
from dragoman.models import build_model
from dragoman.models.base import Vocab, source_attentions
from dragoman.models.copying import CopyingEncoderDecoder
from dragoman.models.rnn import RnnConfig
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.linear import quantize
from dragoman.nn.lora import add_pairs
from dragoman.probe.inside import look_inside
from searching import search

SMALL = TransformerConfig(num_layers=2, model_dim=16, num_heads=2, ff_dim=24, copy=True)


def make(vocab: Vocab = VOCAB, config: TransformerConfig = SMALL) -> CopyingEncoderDecoder:
    torch.manual_seed(4)
    model = build_model("transformer", config, vocab).double().eval()
    assert isinstance(model, CopyingEncoderDecoder)
    return model


def test_with_the_gate_closed_it_says_nothing_but_pieces_of_its_source() -> None:
    model = make()
    with torch.no_grad():
        model.copy.gate.weight.zero_()
        model.copy.vote.weight.zero_()
        model.copy.gate.bias.fill_(-40.0)
    src, mask, _ = random_batch(VOCAB, [5, 2, 7], 1)
    for row, found in enumerate(search(Scorer([model]), src, mask, SearchConfig(beam=3, max_extra=4))):
        assert found[0].tokens
        assert set(found[0].tokens) - {VOCAB.eos_id} <= set(src[row].tolist())


def test_two_vocabularies_without_a_table_are_a_model_that_generates() -> None:
    vocab = Vocab(src_size=19, tgt_size=23, shared=False)
    model = make(vocab)
    src, mask, tgt = random_batch(vocab, [5, 2, 7], 4)
    memory = model.encode(src, mask)
    expected = model.copy.projection(model.decoder(tgt, memory)).log_softmax(-1)
    torch.testing.assert_close(model.decode(tgt, memory), expected)
    with pytest.raises(UserError, match=r"^model\.copy: no piece of the source is one of the target"):
        model.match_pieces(["a"] * vocab.src_size, ["b"] * vocab.tgt_size)


def test_the_table_is_kept_with_the_weights() -> None:
    model, other = make(), make()
    model.match_pieces(["x"] * VOCAB.src_size, [None, None, None, "x", *"abcdefghijklmnopqrs"])
    assert model.copy.table[0].tolist() == [3] * VOCAB.src_size
    tensors = model_tensors(model)
    load_into(other, tensors, "here")
    assert torch.equal(other.copy.table, model.copy.table)
    assert (
        sum(tensor.shape == (23, 16) for tensor in tensors.values()) == 1
    )  # embeddings and projection are one
    assert model.projection is None


def test_pieces_are_matched_by_name_and_by_their_other_form() -> None:
    model = make(Vocab(src_size=8, tgt_size=10, shared=False))
    src = [None, None, None, "a", "b", "▁c", "only here", "<0x61>"]
    model.match_pieces(src, [None, None, None, "<0x61>", "▁c", "▁a", "a", "b▁", "c", "g"])
    assert model.copy.table.tolist() == [[-1, -1, -1, 6, -1, 4, -1, 3], [-1, -1, -1, 5, 7, 8, -1, -1]]


@pytest.mark.parametrize("objective", [CrossEntropy(0.1), RDrop(1.0)])
def test_without_padding_it_learns_the_same(objective: CrossEntropy | RDrop) -> None:
    model = make().train()
    for module in model.modules():
        if hasattr(module, "dropout"):
            module.dropout = 0.0
    batch = collate([([5, 6, 5, 9], [5, 6]), ([7], [8, 7, 7, 4]), ([3, 4, 11, 12, 13], [13, 12, 3])])
    found = []
    for each in (batch, PackedPairs.of(batch), PackedPairs.of(batch, multiple=16)):
        model.zero_grad()
        loss = objective(model, each)
        loss.total.backward()
        gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
        found.append((loss.nll.detach(), gradients))
    for nll, gradients in found[1:]:
        torch.testing.assert_close(nll, found[0][0])
        torch.testing.assert_close(gradients, found[0][1])


def test_to_look_for_its_own_words_leaves_its_scores_as_they_are() -> None:
    torch.manual_seed(4)
    model = build_model("rnn", RnnConfig(model_dim=16, copy=True), VOCAB).eval()
    batch = collate([([5, 6, 5, 9], [5, 6, 7]), ([7, 8], [8, 7, 7, 4])])
    found = decode_own_words(model, batch, given=torch.zeros_like(batch.tgt_mask))
    torch.testing.assert_close(found.exp().sum(-1), torch.ones(2, 5))
    assert found.isfinite().all()


def test_a_shortlist_is_not_for_it() -> None:
    model = make()
    with pytest.raises(UserError, match=r"^search\.shortlist: this model copies pieces of its source"):
        Scorer([model]).among([Job((3, 4, 2))])


def test_its_attention_is_seen_and_not_taken_for_one_that_aligns() -> None:
    model = make()
    assert set(source_attentions(model)) == {f"decoder.layers.{n}.cross_attention" for n in (0, 1)}
    inside = look_inside(model, [5, 6, 7], [6, 5])
    (own,) = inside.of("copy")
    assert own.module == "copy"
    assert own.weights.shape == (1, 3, 4)
    assert (own.weights[..., -1] == 0).all()  # </s> is not copied
    assert inside.labels("copy") == (inside.steps, inside.src)


def test_ensembles_lora_and_int8() -> None:
    copying, plain = make(), build_model("rnn", RnnConfig(model_dim=16), VOCAB).double().eval()
    src, mask, tgt = random_batch(VOCAB, [5, 2, 7], 4)
    batch = collate(
        [(row[kept].tolist(), out.tolist()) for row, kept, out in zip(src, mask, tgt, strict=True)]
    )
    with torch.no_grad():
        together = Scorer([copying, plain]).forced(batch)[0].exp()
        apart = [Scorer([model]).forced(batch)[0].exp() for model in (copying, plain)]
        torch.testing.assert_close(together, (apart[0] + apart[1]) / 2)
        before = copying(src, mask, tgt)
        add_pairs(copying, rank=2, alpha=4.0, targets=["query_key_value", "query", "key"])
        assert torch.equal(copying(src, mask, tgt), before)  # pairs begin at zero
        if int8.available:
            model = make().float()
            quantize(model)
            found = model(src, mask, tgt)
            torch.testing.assert_close(found.exp().sum(-1), torch.ones(3, 4))

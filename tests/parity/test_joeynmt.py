"""JoeyNMT's recurrent model with the same weights. It does not declare our torch, so the suite's environment
does not have it; `benchmarks/rnn_peers.py` says how to install both."""

import pytest
import torch

from battery.models import random_batch
from dragoman.models.base import Vocab
from dragoman.models.rnn import RnnConfig, rnn

VOCAB = Vocab(src_size=23, tgt_size=23, shared=True)
LENGTHS, DIM = [7, 6, 4, 1], 12  # theirs wants the longest first


class Words:
    """What its models ask of a vocabulary."""

    pad_index, bos_index, eos_index, unk_index, sep_index = 0, 1, 2, 3, None
    specials: tuple[str, ...] = ()
    lang_tags: tuple[str, ...] = ()

    def __len__(self) -> int:
        return VOCAB.tgt_size


@pytest.mark.parametrize("feeding", [True, False])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_same_scores(cell: str, feeding: bool) -> None:
    joeynmt = pytest.importorskip("joeynmt.model")
    shared = {"type": "recurrent", "rnn_type": cell, "num_layers": 1, "dropout": 0.0}
    embeddings = {"embedding_dim": DIM, "scale": False, "dropout": 0.0}
    encoder = {**shared, "embeddings": embeddings, "hidden_size": DIM // 2, "bidirectional": True}
    own = {"hidden_size": DIM, "attention": "bahdanau", "input_feeding": feeding, "init_hidden": "bridge"}
    decoder = {**shared, "embeddings": embeddings, **own}
    torch.manual_seed(0)
    config = {"encoder": encoder, "decoder": decoder, "tied_embeddings": True, "tied_softmax": True}
    words = Words()
    theirs = joeynmt.build_model(config, words, words).double().eval()
    ours = rnn(
        RnnConfig(
            cell=cell,  # type: ignore[arg-type]
            model_dim=DIM,
            attention="additive",
            wiring="luong",
            input_feeding=feeding,
            scale_embeddings=False,
        ),
        VOCAB,
    )
    ours = ours.double().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
        theirs.src_embed.lut.weight[VOCAB.pad_id] = 0.0
        copy_weights(theirs, ours)
        src, mask, tgt = random_batch(VOCAB, LENGTHS, 5)
        expected, *_ = theirs._encode_decode(
            src=src,
            trg_input=tgt,
            src_mask=mask[:, None],
            src_length=mask.sum(dim=1),
            trg_mask=torch.ones_like(tgt, dtype=torch.bool)[:, None],
        )
        found = ours.project(ours(src, mask, tgt))
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def copy_weights(theirs: torch.nn.Module, ours: torch.nn.Module) -> None:
    """Where theirs has one bridge for both states of an LSTM, ours has two; the readout takes its two parts
    in the other order."""
    there, here = theirs.decoder, ours.decoder
    ours.projection.weight.copy_(theirs.src_embed.lut.weight)
    ours.encoder.stack.layers[0].load_state_dict(theirs.encoder.rnn.state_dict())
    here.stack.layers[0].load_state_dict(there.rnn.state_dict())
    here.bridge.weight.copy_(there.bridge_layer.weight.repeat(here.parts, 1))
    here.bridge.bias.copy_(there.bridge_layer.bias.repeat(here.parts))
    top, context = there.att_vector_layer.weight.split(DIM, dim=1)
    here.readout.weight.copy_(torch.cat([context, top], dim=1))
    here.readout.bias.copy_(there.att_vector_layer.bias)
    score = here.attention.score
    for name, layer in (
        ("query", there.attention.query_layer),
        ("key", there.attention.key_layer),
        ("energy", there.attention.energy_layer),
    ):
        getattr(score, name).weight.copy_(layer.weight)

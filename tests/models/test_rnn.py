"""What recurrent models promise beside the battery: loops and kernels, other encoders, dropout."""

from dataclasses import replace

import pytest
import torch

from battery.models import make, random_batch, weights_of_three_beams
from dragoman.models.rnn import RnnDecoder
from dragoman.probe.record import record

NAMES = ["lstm-bahdanau", "gru-luong-feeding", "lstm-luong-general", "lstm-none"]


@pytest.mark.parametrize("name", ["lstm-luong-general", "scaled-dot", "rnn-none", "lstm-none"])
def test_all_positions_at_once_equal_the_loop(name: str) -> None:
    model = make(name)
    src, mask, tgt = random_batch(model.vocab, [7, 4, 1, 6], 12)
    decoder = model.decoder
    assert isinstance(decoder, RnnDecoder)
    assert decoder.at_once
    with torch.no_grad():
        at_once = model(src, mask, tgt)
        decoder.at_once = False
        torch.testing.assert_close(model(src, mask, tgt), at_once, atol=1e-12, rtol=0)


def test_a_recording_names_the_attention() -> None:
    """The loop is seen position by position; together the weights are those of all positions at once."""
    model = make("lstm-luong-general")
    src, mask, tgt = random_batch(model.vocab, [7, 4], 5)
    with torch.no_grad(), record(model) as at_once:
        model(src, mask, tgt)
    model.decoder.at_once = False  # type: ignore[attr-defined]
    with torch.no_grad(), record(model) as looped:
        model(src, mask, tgt)
    (whole,) = at_once["decoder.attention"]
    assert whole.shape == (2, 1, 5, 7)
    torch.testing.assert_close(torch.cat(looped["decoder.attention"], 2), whole, atol=1e-12, rtol=0)
    assert (whole[1, ..., 4:] == 0).all()


def test_beams_of_a_sentence_share_its_memory() -> None:
    assert weights_of_three_beams(make("lstm-bahdanau")) == [(2, 1, 3, 7)]


@pytest.mark.parametrize("name", NAMES)
def test_dropout_is_drawn_in_training_alone(name: str) -> None:
    model = make(name)
    src, mask, tgt = random_batch(model.vocab, [7, 4], 5)
    with torch.no_grad():
        assert torch.equal(model(src, mask, tgt), model(src, mask, tgt))
        model.train()
        assert not torch.equal(model(src, mask, tgt), model(src, mask, tgt))


@pytest.mark.parametrize("name", [*NAMES, "rnn-none", "scaled-dot"])
def test_without_attention_the_source_is_one_vector(name: str) -> None:
    """Whatever the encoder says of single positions, only attention reads it."""
    model = make(name)
    src, mask, tgt = random_batch(model.vocab, [7, 4], 5)
    with torch.no_grad():
        memory = model.encoder(src, mask)
        assert memory.ended is not None
        others = replace(memory, hidden=memory.hidden + 1)
        same = torch.equal(model.decoder(tgt, memory), model.decoder(tgt, others))
    assert same == name.endswith("none")

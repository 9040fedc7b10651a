"""What recurrent models promise beside the battery: search, loops and kernels, other encoders, dropout."""

import pytest
import torch

from battery.models import make, random_batch
from dragoman.decode.config import SearchConfig
from dragoman.decode.scorer import Scorer
from dragoman.decode.search import search
from dragoman.models.rnn import RnnDecoder
from dragoman.nn.attention import open_tap
from dragoman.probe.record import record

NAMES = ["lstm-bahdanau", "gru-luong-feeding", "lstm-luong-general", "lstm-none"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("beam", [1, 4])
def test_search_gives_true_scores_whoever_else_is_in_the_batch(name: str, beam: int) -> None:
    model = make(name)
    lengths = [3, 8, 5, 1] * 3
    src, mask, _ = random_batch(model.vocab, lengths, 1)
    config = SearchConfig(beam=beam, n_best=beam, max_ratio=1, max_extra=4)
    together = search(Scorer([model]), src, mask, config)
    for row, length in enumerate(lengths):
        (alone,) = search(Scorer([model]), src[row : row + 1, :length], mask[row : row + 1, :length], config)
        assert [h.tokens for h in alone] == [h.tokens for h in together[row]]
        for hypothesis in together[row]:
            tokens = torch.tensor(hypothesis.tokens)
            tgt_in = torch.cat([torch.tensor([model.vocab.bos_id]), tokens[:-1]])[None]
            with torch.no_grad():
                logits = model.project(model(src[row : row + 1], mask[row : row + 1], tgt_in))[0]
            expected = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
            torch.testing.assert_close(
                torch.tensor(hypothesis.token_scores, dtype=torch.float64), expected, atol=1e-5, rtol=0
            )


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
    model = make("lstm-bahdanau")
    src, mask, _ = random_batch(model.vocab, [7, 4], 1)
    seen: list[torch.Size] = []
    with torch.no_grad():
        state = model.start(model.encode(src, mask)).expand(3)
        with open_tap(lambda _module, weights: seen.append(weights.shape)):
            model.step(torch.full((6,), 4), state)
    assert seen == [(2, 1, 3, 7)]


@pytest.mark.parametrize("name", NAMES)
def test_dropout_is_drawn_in_training_alone(name: str) -> None:
    model = make(name)
    src, mask, tgt = random_batch(model.vocab, [7, 4], 5)
    with torch.no_grad():
        assert torch.equal(model(src, mask, tgt), model(src, mask, tgt))
        model.train()
        assert not torch.equal(model(src, mask, tgt), model(src, mask, tgt))

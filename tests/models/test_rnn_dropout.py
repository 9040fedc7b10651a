"""Dropout in recurrent models: held in the state, the same in both ways to decode, and by default as plain as
torch's own at every position."""

from dataclasses import replace

import pytest
import torch

from battery.models import CASES, VOCAB, random_batch
from dragoman.data.batch import collate
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder
from dragoman.models.rnn import RnnConfig, RnnDecoder, RnnEncoder, RnnState, final_states
from dragoman.nn.dropout import dropout
from dragoman.nn.recurrent import RecurrentStack

LENGTHS = [7, 4, 1, 6]
HELD = {
    "dropout": 0.3,
    "variational_dropout": True,
    "memory_dropout": 0.15,
    "embedding_dropout": 0.2,
    "recurrent_dropout": 0.25,
    "weight_dropout": 0.4,
}
NAMES = ["lstm-bahdanau", "gru-luong-feeding", "lstm-luong-general", "lstm-none", "rnn-none"]


def make(name: str, **dropouts: float) -> EncoderDecoder:
    """In training mode."""
    kind, config, vocab = CASES[name]
    assert isinstance(config, RnnConfig)
    torch.manual_seed(0)
    return build_model(kind, replace(config, **dropouts), vocab).double().train()


def train_loss(model: EncoderDecoder, seed: int) -> torch.Tensor:
    pairs = [(list(range(3, 3 + n)), list(range(4, 4 + n))) for n in (5, 3, 1, 9)]
    torch.manual_seed(seed)
    return CrossEntropy(0.1)(model, collate(pairs)).total


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("left_out", ["recurrent_dropout", "weight_dropout", None])
def test_step_by_step_equals_parallel_in_training(name: str, left_out: str | None) -> None:
    """The masks are drawn in `start`, so one state of the generator gives one result, whichever way."""
    model = make(name, **{key: rate for key, rate in HELD.items() if key != left_out})
    src, mask, tgt = random_batch(model.vocab, LENGTHS, 9)
    with torch.no_grad():
        memory = model.encode(src, mask)
        torch.manual_seed(3)
        parallel = model.decode(tgt, memory)
        torch.manual_seed(3)
        state, hidden = model.start(memory), []
        for t in range(tgt.size(1)):
            out, state = model.step(tgt[:, t], state)
            hidden.append(out)
    torch.testing.assert_close(torch.stack(hidden, 1), parallel, atol=1e-12, rtol=0)
    assert (parallel == 0).any(dim=-1).all()
    dropped = parallel == 0  # by the mask on the output
    assert torch.equal(dropped, dropped[:, :1].expand_as(dropped))


@pytest.mark.parametrize("rate", list(HELD))
def test_each_option_changes_training_and_nothing_else(rate: str) -> None:
    plain, changed = make("lstm-bahdanau"), make("lstm-bahdanau", **{rate: HELD[rate]})
    assert plain.state_dict().keys() == changed.state_dict().keys()
    assert train_loss(plain, 1) != train_loss(changed, 1)
    assert torch.equal(train_loss(plain.eval(), 1), train_loss(changed.eval(), 1))


@pytest.mark.parametrize("name", NAMES)
def test_gradients_flow_and_weights_stay(name: str) -> None:
    model = make(name, **HELD)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    train_loss(model, 1).backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.abs().sum() > 0, key
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize("held", [True, False])
def test_memory_dropout_is_on_what_the_encoder_hands_over(held: bool) -> None:
    model = make("lstm-bahdanau", dropout=0.0, memory_dropout=0.5, variational_dropout=held)
    src, mask, _ = random_batch(model.vocab, LENGTHS, 1)
    with torch.no_grad():
        dropped, whole = model.encode(src, mask), model.eval().encode(src, mask)
    kept = dropped.hidden != 0
    torch.testing.assert_close(dropped.hidden[kept], 2 * whole.hidden[kept], atol=1e-12, rtol=0)
    left_out = ~kept & mask[:, :, None]
    assert left_out.any(dim=-1)[mask].all()
    same_at_all_positions = torch.equal(left_out, left_out[:, :1] & mask[:, :, None])
    assert same_at_all_positions == held
    assert dropped.ended is not None
    assert torch.equal(dropped.ended, final_states(dropped.hidden, mask, bidirectional=True))


def test_masks_move_with_their_rows() -> None:
    model = make("lstm-bahdanau", **HELD)
    src, mask, _ = random_batch(model.vocab, LENGTHS, 1)
    with torch.no_grad():
        state = model.start(model.encode(src, mask))
        assert isinstance(state, RnnState)
        moved = state.expand(2).select(torch.tensor([1, 1, 2, 3, 5, 4, 6, 7])).keep(torch.tensor([3, 1]))
        rows = torch.tensor([3, 3, 1, 1])
        assert moved.masks.inputs is not None
        assert state.masks.inputs is not None
        assert torch.equal(moved.masks.inputs, state.masks.inputs[rows])
        last = torch.tensor([5, 6, 7, 8])
        together, after = model.step(last, moved)
        again, _ = model.step(last, after)
        for i, row in enumerate(rows.tolist()):
            alone = state.keep(torch.tensor([row]))
            one, alone = model.step(last[i : i + 1], alone)
            torch.testing.assert_close(together[i], one[0], atol=1e-12, rtol=0)
            torch.testing.assert_close(again[i], model.step(last[i : i + 1], alone)[0][0], atol=1e-12, rtol=0)


# --- by default: what it was before there was anything to hold -----------------------------------------


def plain_stack(stack: RecurrentStack, x: torch.Tensor, rate: float, past: tuple | None = None):
    """Torch's own layers on unpadded sequences, with its dropout before every layer but the first."""
    after = []
    for i, layer in enumerate(stack.layers):
        begin = None if past is None else tuple(part[i : i + 1].contiguous() for part in past)
        out, end = layer(dropout(x, rate) if i else x, begin)
        after.append(end)
        x = out if i == 0 else x + out
    return x, tuple(torch.cat(parts) for parts in zip(*after, strict=True))


def test_by_default_dropout_is_torchs_at_every_position() -> None:
    """Written out for an LSTM after Bahdanau, the draws in the order in which they come."""
    config = RnnConfig(model_dim=16, num_layers=2, dropout=0.3)
    torch.manual_seed(0)
    model = build_model("rnn", config, VOCAB).double().train()
    encoder, decoder, rate = model.encoder, model.decoder, config.dropout
    assert isinstance(encoder, RnnEncoder)
    assert isinstance(decoder, RnnDecoder)
    src, mask, tgt = random_batch(VOCAB, [6, 6, 6], 5)
    torch.manual_seed(7)
    ours = model(src, mask, tgt)
    state_of_generator = torch.get_rng_state()

    torch.manual_seed(7)
    x = dropout(encoder.embedding(src), rate)
    lower = encoder.stack.layers[0](x)[0]
    # between the layers of an encoder the tokens lie position by position
    fed = dropout(lower.transpose(0, 1).flatten(0, 1), rate).unflatten(0, (6, 3)).transpose(0, 1)
    memory = lower + encoder.stack.layers[1](fed)[0]
    embedded = dropout(decoder.embedding(tgt), rate)
    first = torch.tanh(decoder.bridge(final_states(memory, mask, True))).unflatten(-1, (2, 2, 16))
    past = tuple(first.permute(1, 2, 0, 3).unbind())
    prepared = decoder.attention.prepare(memory, mask)  # type: ignore[call-arg]
    hidden = []
    for t in range(tgt.size(1)):
        context = decoder.attention(past[0][-1][:, None], prepared)
        y = embedded[:, t : t + 1]
        top, past = plain_stack(decoder.stack, torch.cat([y, context], -1), rate, past)
        hidden.append(torch.tanh(decoder.readout(torch.cat([top, context, y], -1))))
    torch.testing.assert_close(ours, dropout(torch.cat(hidden, 1), rate), atol=1e-12, rtol=0)
    assert torch.equal(torch.get_rng_state(), state_of_generator)

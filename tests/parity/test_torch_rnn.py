"""The recurrent models against torch's own stacks without padding, and against decoders written in NumPy."""

import numpy as np
import pytest
import torch
from torch import nn

from battery.models import random_batch
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.rnn import RnnConfig, rnn

VOCAB = Vocab(src_size=19, tgt_size=23, shared=False)
LENGTHS, DIM = [7, 4, 1, 6], 12
THEIRS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
Weights = dict[str, np.ndarray]


def make(config: RnnConfig) -> EncoderDecoder:
    torch.manual_seed(0)
    model = rnn(config, VOCAB).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", THEIRS)
def test_the_encoder_is_torchs_layer_on_each_sentence_alone(cell: str, bidirectional: bool) -> None:
    config = RnnConfig(cell=cell, num_layers=2, model_dim=DIM, bidirectional=bidirectional)  # type: ignore[arg-type]
    model = make(config)
    src, mask, _ = random_batch(VOCAB, LENGTHS, 1)
    width = DIM // 2 if bidirectional else DIM
    first, second = (THEIRS[cell](DIM, width, bidirectional=bidirectional).double() for _ in range(2))
    first.load_state_dict(model.encoder.stack.layers[0].state_dict())
    second.load_state_dict(model.encoder.stack.layers[1].state_dict())
    with torch.no_grad():
        memory = model.encode(src, mask)
        for row, length in enumerate(LENGTHS):
            x = model.encoder.embedding(src[row : row + 1, :length])[0][:, None]  # time first, a batch of one
            lower = first(x)[0]
            expected = (lower + second(lower)[0])[:, 0]
            torch.testing.assert_close(memory.hidden[row, :length], expected, atol=1e-12, rtol=0)
            assert (memory.hidden[row, length:] == 0).all()


@pytest.mark.parametrize("cell", THEIRS)
def test_final_states_are_torchs_final_states(cell: str) -> None:
    """With one layer, what the bridge reads from the memory is what the kernel itself returns as h_n."""
    model = make(RnnConfig(cell=cell, model_dim=DIM, attention="none"))  # type: ignore[arg-type]
    src, mask, _ = random_batch(VOCAB, LENGTHS, 1)
    with torch.no_grad():
        state = model.start(model.encode(src, mask))
        for row, length in enumerate(LENGTHS):
            after = model.encoder.stack.layers[0](model.encoder.embedding(src[row : row + 1, :length]))[1]
            final = after[0] if cell == "lstm" else after  # 2 1 D/2
            torch.testing.assert_close(state.memory.values[row, 0], final.flatten(), atol=1e-12, rtol=0)
            bridged = torch.tanh(model.decoder.bridge(final.flatten()))[:DIM]
            torch.testing.assert_close(state.recurrent.hidden[0, row], bridged, atol=1e-12, rtol=0)


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def lstm_cell(w: Weights, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Hochreiter & Schmidhuber 1997, with a forget gate."""
    gates = w["weight_ih_l0"] @ x + w["bias_ih_l0"] + w["weight_hh_l0"] @ h + w["bias_hh_l0"]
    i, f, g, o = np.split(gates, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_cell(w: Weights, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """Cho et al. 2014, with the reset gate after the product, as the fused kernels have it."""
    xr, xz, xn = np.split(w["weight_ih_l0"] @ x + w["bias_ih_l0"], 3)
    hr, hz, hn = np.split(w["weight_hh_l0"] @ h + w["bias_hh_l0"], 3)
    z = sigmoid(xz + hz)
    return (1 - z) * np.tanh(xn + sigmoid(xr + hr) * hn) + z * h


def numbers(module: nn.Module) -> Weights:
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def bridged(model: EncoderDecoder, memory: np.ndarray) -> list[np.ndarray]:
    w = numbers(model.decoder.bridge)
    final = np.concatenate([memory[-1, : DIM // 2], memory[0, DIM // 2 :]])
    return np.split(np.tanh(w["weight"] @ final + w["bias"]), len(w["bias"]) // DIM)


def both_sides(model: EncoderDecoder) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """For each sentence: its memory without padding, its embedded target, and our output."""
    src, mask, tgt = random_batch(VOCAB, LENGTHS, 6)
    with torch.no_grad():
        memory = model.encode(src, mask)
        ours, embedded = model.decode(tgt, memory), model.decoder.embedding(tgt)
    return [
        (memory.hidden[row, :length].numpy(), embedded[row].numpy(), ours[row].numpy())
        for row, length in enumerate(LENGTHS)
    ]


def test_a_bahdanau_decoder_in_numpy() -> None:
    model = make(RnnConfig(cell="lstm", model_dim=DIM, attention="additive", attention_dim=7))
    score, cell = numbers(model.decoder.attention.score), numbers(model.decoder.stack.layers[0])
    out = numbers(model.decoder.readout)
    for memory, embedded, ours in both_sides(model):
        s, c = bridged(model, memory)
        for y, expected in zip(embedded, ours, strict=True):
            asked = score["query.weight"] @ s
            energies = [score["energy.weight"][0] @ np.tanh(asked + score["key.weight"] @ h) for h in memory]
            context = softmax(np.array(energies)) @ memory
            s, c = lstm_cell(cell, np.concatenate([y, context]), s, c)
            hidden = np.tanh(out["weight"] @ np.concatenate([s, context, y]) + out["bias"])
            np.testing.assert_allclose(hidden, expected, atol=1e-12)


@pytest.mark.parametrize("feeding", [False, True])
def test_a_luong_decoder_in_numpy(feeding: bool) -> None:
    model = make(
        RnnConfig(cell="gru", model_dim=DIM, attention="general", wiring="luong", input_feeding=feeding)
    )
    score, cell = numbers(model.decoder.attention.score), numbers(model.decoder.stack.layers[0])
    out = numbers(model.decoder.readout)
    for memory, embedded, ours in both_sides(model):
        (s,) = bridged(model, memory)
        hidden = np.zeros(DIM)
        for y, expected in zip(embedded, ours, strict=True):
            s = gru_cell(cell, np.concatenate([y, hidden]) if feeding else y, s)
            energies = [s @ score["key.weight"] @ h for h in memory]
            context = softmax(np.array(energies)) @ memory
            hidden = np.tanh(out["weight"] @ np.concatenate([context, s]) + out["bias"])
            np.testing.assert_allclose(hidden, expected, atol=1e-12)


def test_a_decoder_without_attention_in_numpy() -> None:
    model = make(RnnConfig(cell="rnn", model_dim=DIM, attention="none"))
    cell, out = numbers(model.decoder.stack.layers[0]), numbers(model.decoder.readout)
    for memory, embedded, ours in both_sides(model):
        (s,) = bridged(model, memory)
        context = np.concatenate([memory[-1, : DIM // 2], memory[0, DIM // 2 :]])
        for y, expected in zip(embedded, ours, strict=True):
            x = np.concatenate([y, context])
            bias = cell["bias_ih_l0"] + cell["bias_hh_l0"]
            s = np.tanh(cell["weight_ih_l0"] @ x + cell["weight_hh_l0"] @ s + bias)
            hidden = np.tanh(out["weight"] @ np.concatenate([s, context, y]) + out["bias"])
            np.testing.assert_allclose(hidden, expected, atol=1e-12)

"""ConvS2S against Gehring et al. 2017 written out in NumPy, a sentence and a position at a time."""

import numpy as np
import pytest
import torch

from battery.models import SEPARATE, random_batch
from dragoman.models.base import EncoderDecoder
from dragoman.models.convs2s import ConvS2SConfig, convs2s

LENGTHS = [7, 4, 1, 6]
Weights = dict[str, np.ndarray]


def make(config: ConvS2SConfig) -> tuple[EncoderDecoder, Weights]:
    torch.manual_seed(0)
    model = convs2s(config, SEPARATE).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model, {name: value.numpy().copy() for name, value in model.state_dict().items()}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def linear(w: Weights, name: str, x: np.ndarray) -> np.ndarray:
    return w[f"{name}.weight"] @ x + w[f"{name}.bias"]


def embedded(w: Weights, half: str, ids: list[int]) -> np.ndarray:
    """Token plus position; beyond the table, its last row."""
    table, places = w[f"{half}.embedding.weight"], w[f"{half}.positions.weight"]
    return np.array([table[token] + places[min(i, len(places) - 1)] for i, token in enumerate(ids)])


def block(w: Weights, name: str, rows: np.ndarray, offsets: list[int]) -> np.ndarray:
    """h_i = √½ (GLU(W [inputs at i + offset] + b) + h_i), zeros beyond the ends (section 3.2, 3.4)."""
    out = []
    for i, here in enumerate(rows):
        parts = [
            rows[i + offset] if 0 <= i + offset < len(rows) else np.zeros(len(here)) for offset in offsets
        ]
        a, b = np.split(linear(w, f"{name}.gates", np.concatenate(parts)), 2)
        out.append(np.sqrt(0.5) * (a * sigmoid(b) + here))
    return np.array(out)


def encoder(w: Weights, config: ConvS2SConfig, ids: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """z and e."""
    e = embedded(w, "encoder", ids)
    rows = np.array([linear(w, "encoder.into", x) for x in e])
    for layer in range(config.num_layers):
        r = config.dilation_base ** (layer % config.dilation_cycle)
        half = config.kernel_width // 2
        offsets = [r * tap for tap in range(-half, half + 1)]
        rows = block(w, f"encoder.layers.{layer}", rows, offsets)
    return np.array([linear(w, "encoder.out", x) for x in rows]), e


def decoder(
    w: Weights, config: ConvS2SConfig, ids: list[int], keys: np.ndarray, values: np.ndarray
) -> np.ndarray:
    g = embedded(w, "decoder", ids)
    rows = np.array([linear(w, "decoder.into", x) for x in g])
    width, m = config.decoder_kernel_width or config.kernel_width, len(keys)
    for layer in range(config.num_decoder_layers or config.num_layers):
        name = f"decoder.layers.{layer}"
        r = config.dilation_base ** (layer % config.dilation_cycle)
        offsets = [r * tap for tap in range(-width + 1, 1)]
        rows = block(w, f"{name}.convolution", rows, offsets)
        after = []
        for h, own in zip(rows, g, strict=True):
            d = linear(w, f"{name}.query", h) + own
            scores = np.array([d @ z for z in keys])
            a = np.exp(scores - scores.max())
            a /= a.sum()
            c = sum(weight * value for weight, value in zip(a, values, strict=True)) * m * np.sqrt(1 / m)
            after.append(h + (linear(w, f"{name}.context", c) if f"{name}.context.weight" in w else c))
        rows = np.array(after)
    return np.array([linear(w, "decoder.out", x) for x in rows])


@pytest.mark.parametrize(
    "config",
    [
        ConvS2SConfig(num_layers=2, model_dim=10),
        ConvS2SConfig(
            num_layers=2, num_decoder_layers=3, model_dim=8, conv_dim=10, kernel_width=5, max_positions=4
        ),
        ConvS2SConfig(
            num_layers=3, model_dim=8, decoder_kernel_width=2, dilation_base=2, dilation_cycle=2, dropout=0.5
        ),
    ],
    ids=["plain", "widths", "dilated"],
)
def test_the_whole_model_in_numpy(config: ConvS2SConfig) -> None:
    model, w = make(config)
    src, mask, tgt = random_batch(SEPARATE, LENGTHS, 6)
    with torch.no_grad():
        memory = model.encode(src, mask)
        ours, logits = model.decode(tgt, memory), model.project(model.decode(tgt, memory))
    assert memory.values is not None
    for row, length in enumerate(LENGTHS):
        z, e = encoder(w, config, src[row, :length].tolist())
        np.testing.assert_allclose(memory.hidden[row, :length].numpy(), z, atol=1e-10, rtol=0)
        np.testing.assert_allclose(memory.values[row, :length].numpy(), z + e, atol=1e-10, rtol=0)
        hidden = decoder(w, config, tgt[row].tolist(), z, z + e)
        np.testing.assert_allclose(ours[row].numpy(), hidden, atol=1e-10, rtol=0)
        scores = hidden @ w["projection.weight"].T + w["projection.bias"]
        np.testing.assert_allclose(logits[row].numpy(), scores, atol=1e-10, rtol=0)

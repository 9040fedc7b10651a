"""ELMo against the equations of its papers, written out in NumPy in float64."""

import numpy as np
import torch

from dragoman.models import build_network
from dragoman.models.base import Vocab
from dragoman.models.elmo import Elmo, ElmoConfig
from dragoman.models.task_heads import ScalarMix

WORDS = [b"", b"", b"", b"a", b"ab", b" the", "é".encode(), b"longer"]
CONFIG = ElmoConfig(2, 4, 6, character_dim=3, max_characters=6, filters=((1, 3), (2, 4)), num_highway=2)


def make() -> Elmo:
    torch.manual_seed(0)
    model = build_network("elmo", CONFIG, Vocab(len(WORDS), len(WORDS), shared=True))
    assert isinstance(model, Elmo)
    model.spell(WORDS)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model.double().eval()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def spelt(number: int) -> list[int]:
    """0 padding, 1 begins, 2 ends, 3 says that a number follows, 4 is the byte 0."""
    word = WORDS[number]
    inner = [4 + byte for byte in word] if word else [3, *(4 + byte for byte in str(number).encode())]
    row = [1, *inner[:4], 2]
    return row + [0] * (6 - len(row))


def vector(w: dict[str, np.ndarray], number: int) -> np.ndarray:
    """Convolutions over characters, the greatest of each, highways, projection."""
    characters = spelt(number)
    x = np.array([w["embedding.weight"][c] if c else np.zeros(3) for c in characters])
    found = []
    for i, (width, count) in enumerate(CONFIG.filters):
        kernel, bias = w[f"embedding.convolutions.{i}.weight"], w[f"embedding.convolutions.{i}.bias"]
        for f in range(count):
            sums = [
                sum(kernel[f, :, k] @ x[t + k] for k in range(width)) + bias[f]
                for t in range(len(x) - width + 1)
            ]
            found.append(max(0.0, *sums))
    y = np.array(found)
    for i in range(CONFIG.num_highway):
        out = w[f"embedding.highways.{i}.both.weight"] @ y + w[f"embedding.highways.{i}.both.bias"]
        gate = sigmoid(out[len(y) :])
        y = gate * np.maximum(out[: len(y)], 0) + (1 - gate) * y
    return w["embedding.out.weight"] @ y + w["embedding.out.bias"]


def lstm(w: dict[str, np.ndarray], name: str, xs: list[np.ndarray]) -> list[np.ndarray]:
    """With a projection (Sak et al. 2014): gates in the order input, forget, cell, output."""
    h, c, found = np.zeros(4), np.zeros(6), []
    for x in xs:
        gates = w[f"{name}.weight_ih_l0"] @ x + w[f"{name}.bias_ih_l0"]
        gates = gates + w[f"{name}.weight_hh_l0"] @ h + w[f"{name}.bias_hh_l0"]
        i, f, g, o = np.split(gates, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = w[f"{name}.weight_hr_l0"] @ (sigmoid(o) * np.tanh(c))
        found.append(h)
    return found


def test_every_layer_is_that_of_the_equations() -> None:
    model = make()
    w = {name: value.numpy() for name, value in model.state_dict().items()}
    rows = [[3, 7, 4, 1, 5], [6, 2, 3]]
    ids = torch.tensor([rows[0], [*rows[1], 0, 0]])
    with torch.no_grad():
        found = model.read_layers(ids, ids != 0, torch.zeros_like(ids))
    for number, row in enumerate(rows):
        xs = [vector(w, piece) for piece in row]
        ahead, back = [xs], [xs]
        for layer in range(2):
            one = lstm(w, f"ahead.layers.{layer}", ahead[-1])
            other = lstm(w, f"back.layers.{layer}", back[-1][::-1])[::-1]
            ahead.append([a + b for a, b in zip(ahead[-1], one, strict=True)] if layer else one)
            back.append([a + b for a, b in zip(back[-1], other, strict=True)] if layer else other)
        for layer in range(3):
            expected = np.concatenate([np.array(ahead[layer]), np.array(back[layer])], axis=1)
            np.testing.assert_allclose(found[layer][number, : len(row)].numpy(), expected, atol=1e-12)


def test_the_mix_is_that_of_the_equation() -> None:
    torch.manual_seed(1)
    mix, layers = ScalarMix(3).double(), torch.randn(3, 2, 4, 5, dtype=torch.float64)
    assert mix.shares() == [1 / 3] * 3
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.scale.fill_(1.7)
        found = mix(list(layers)).numpy()
    shares = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    np.testing.assert_allclose(mix.shares(), shares, atol=1e-12)
    np.testing.assert_allclose(found, 1.7 * np.einsum("j,jbtd->btd", shares, layers.numpy()), atol=1e-12)

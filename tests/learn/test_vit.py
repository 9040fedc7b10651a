"""The same encoder learns from pixels and from series of numbers, with the same objective."""

from collections.abc import Callable

import pytest
import torch

from dragoman.data.batch import VectorBatch
from dragoman.data.vectors.patches import image_patches
from dragoman.learning.labels import VectorLabels
from dragoman.models.base import Vocab
from dragoman.models.task_heads import HeadConfig, TaskNetwork
from dragoman.models.vit import VitConfig, vit
from until_learnt import learn_until


def images(count: int, generator: torch.Generator) -> VectorBatch:
    """A bright square of 3 × 3 pixels in noise; the label is the quarter of the image that it is in."""
    labels = torch.randint(0, 4, (count,), generator=generator)
    pixels = 0.3 * torch.randn(count, 8, 8, 1, generator=generator)
    down, right = torch.randint(0, 2, (2, count), generator=generator).tolist()
    for image, label, y, x in zip(pixels[..., 0], labels.tolist(), down, right, strict=True):
        y, x = y + 4 * (label // 2), x + 4 * (label % 2)
        image[y : y + 3, x : x + 3] += 2
    vectors = torch.from_numpy(image_patches(pixels.numpy(), 2))
    return VectorBatch(vectors, torch.ones(count, 17, dtype=torch.bool), labels, count)


def series(count: int, generator: torch.Generator) -> VectorBatch:
    """Two numbers at every moment, of series of different length; the label is which of them has grown."""
    labels = torch.randint(0, 2, (count,), generator=generator)
    lengths = torch.randint(8, 17, (count, 1), generator=generator)
    moments = torch.arange(16)
    growing = torch.stack([labels == 0, labels == 1], dim=1)[:, None]  # B 1 2
    vectors = (moments[None, :, None] / 8 - 1) * growing
    vectors = vectors + 0.3 * torch.randn(count, 16, 2, generator=generator)
    return VectorBatch(vectors, torch.nn.functional.pad(moments < lengths, (1, 0), value=True), labels, count)


def one_channel(count: int, generator: torch.Generator) -> VectorBatch:
    """One number at every moment; the label is whether it grows. With an input projection of 0.02 it was
    never learnt."""
    labels = torch.randint(0, 2, (count,), generator=generator)
    vectors = (torch.arange(16) / 8 - 1) * (2 * labels[:, None] - 1)
    vectors = vectors[..., None] + 0.3 * torch.randn(count, 16, 1, generator=generator)
    return VectorBatch(vectors, torch.ones(count, 17, dtype=torch.bool), labels, count)


@pytest.mark.parametrize(("draw", "labels", "width"), [(images, 4, 4), (series, 2, 2), (one_channel, 2, 1)])
def test_it_learns(draw: Callable[..., VectorBatch], labels: int, width: int) -> None:
    """It took 30 to 60 updates; the limit is 1000."""
    torch.manual_seed(1)
    network = vit(VitConfig(1, 32, 2, 64, input_dim=width, max_positions=16), Vocab(259, 259, shared=True))
    model, objective = TaskNetwork(network, HeadConfig("image", labels)), VectorLabels()
    generator = torch.Generator().manual_seed(2)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    unseen = draw(256, torch.Generator().manual_seed(3))

    def update() -> None:
        loss = objective(model.train(), draw(64, generator), 0)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        optimizer.step()

    def learnt() -> bool:
        with torch.no_grad():
            right = model.eval()(unseen).argmax(dim=1) == unseen.targets
        return right.float().mean().item() > 0.9

    learn_until(learnt, update, at_most=1000, every=10)

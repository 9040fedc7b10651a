"""The same encoder learns from pixels and from series of numbers, with the same objective."""

from collections.abc import Callable

import pytest
import torch

from dragoman.data.batch import VectorBatch
from dragoman.errors import UserError
from dragoman.learning.labels import VectorLabels
from dragoman.models.vit import Vit, VitConfig, patches, vit
from until_learnt import learn_until


def images(count: int, generator: torch.Generator) -> VectorBatch:
    """A bright square of 3 × 3 pixels in noise; the label is the quarter of the image that it is in."""
    labels = torch.randint(0, 4, (count,), generator=generator)
    pixels = 0.3 * torch.randn(count, 1, 8, 8, generator=generator)
    down, right = torch.randint(0, 2, (2, count), generator=generator).tolist()
    for image, label, y, x in zip(pixels[:, 0], labels.tolist(), down, right, strict=True):
        y, x = y + 4 * (label // 2), x + 4 * (label % 2)
        image[y : y + 3, x : x + 3] += 2
    vectors = patches(pixels, 2)
    return VectorBatch(vectors, torch.ones(vectors.shape[:2], dtype=torch.bool), labels)


def series(count: int, generator: torch.Generator) -> VectorBatch:
    """Two numbers at every moment, of series of different length; the label is which of them has grown."""
    labels = torch.randint(0, 2, (count,), generator=generator)
    lengths = torch.randint(8, 17, (count, 1), generator=generator)
    moments = torch.arange(16)
    growing = torch.stack([labels == 0, labels == 1], dim=1)[:, None]  # B 1 2
    vectors = (moments[None, :, None] / 8 - 1) * growing
    vectors = vectors + 0.3 * torch.randn(count, 16, 2, generator=generator)
    return VectorBatch(vectors, moments < lengths, labels)


@pytest.mark.parametrize(("draw", "labels", "width"), [(images, 4, 4), (series, 2, 2)])
def test_it_learns(draw: Callable[..., VectorBatch], labels: int, width: int) -> None:
    """It took 30 to 60 updates; the limit is 1000."""
    torch.manual_seed(1)
    config = VitConfig(1, 32, 2, 64, num_labels=labels, input_dim=width, max_positions=16)
    model, objective = vit(config), VectorLabels()
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
            right = model.eval()(unseen.vectors, unseen.mask).argmax(dim=1) == unseen.labels
        return right.float().mean().item() > 0.9

    learn_until(learnt, update, at_most=1000, every=10)


def small() -> Vit:
    torch.manual_seed(0)
    return vit(VitConfig(2, 16, 4, 24, num_labels=3, input_dim=2, max_positions=8)).double().eval()


def test_padding_is_inert_and_every_parameter_learns() -> None:
    model = small()
    vectors = torch.randn(2, 5, 2, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([5, 3])[:, None]
    with torch.no_grad():
        expected = model(vectors, mask)
        wider = torch.nn.functional.pad(vectors, (0, 0, 0, 2), value=torch.nan)
        found = model(wider.masked_fill(~mask_of(mask)[..., None], torch.nan), mask_of(mask))
        alone = model(vectors[1:, :3], mask[1:, :3])
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(alone[0], expected[1], atol=1e-12, rtol=0)
    loss = VectorLabels()(model, VectorBatch(vectors, mask, torch.tensor([0, 2])))
    loss.total.backward()
    assert loss.count == 2
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0 or name.endswith("query_key_value.bias"), name


def mask_of(mask: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(mask, (0, 2))


def test_patches_by_hand() -> None:
    image = torch.arange(2 * 4 * 4.0).view(1, 2, 4, 4)
    found = patches(image, 2)
    assert found.shape == (1, 4, 8)
    assert found[0, 1].tolist() == [2, 3, 6, 7, 18, 19, 22, 23]
    with pytest.raises(UserError, match="patches: 4 × 4 pixels cannot be cut into squares of 3"):
        patches(image, 3)

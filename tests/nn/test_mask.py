"""Where the sequences of a packed row are."""

import pytest
import torch

from dragoman.nn.mask import Packing


@pytest.mark.parametrize("longest", [None, 4])
def test_a_packing_by_hand(longest: int | None) -> None:
    found = Packing.of(torch.tensor([2, 0, 3, 1]), longest)
    assert found.starts.tolist() == [0, 2, 2, 5, 6] and found.starts.dtype == torch.int32
    assert found.rows.tolist() == [[0, 0, 2, 2, 2, 3]]
    assert found.places.tolist() == [[0, 1, 0, 1, 2, 0]]
    assert found.longest == (longest or 3)
    assert not found.even
    visible = found.visible()
    assert visible is not None
    assert visible[:, 0, 0].sum(dim=1).tolist() == [2, 1, 3, 1]  # an empty one shows one zero
    x = torch.randn(1, 2, 6, 5)
    wide = found.padded(x)
    assert wide.shape == (4, 2, longest or 3, 5)
    assert torch.equal(found.packed(wide), x)
    assert torch.equal(wide[2, :, :3], x[0, :, 2:5]) and not wide[0, :, 2:].any() and not wide[1].any()


def test_sequences_of_one_length_are_no_padding() -> None:
    found = Packing.of(torch.tensor([3, 3]))
    assert found.even and found.visible() is None and found.longest == 3
    assert not Packing.of(torch.tensor([3, 3]), 4).even
    x = torch.randn(1, 2, 6, 5)
    assert torch.equal(found.padded(x)[1], x[0, :, 3:]) and torch.equal(found.packed(found.padded(x)), x)

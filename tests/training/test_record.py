"""Updates played back on a GPU: the same as kernel by kernel, also where a recording breaks off."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import pytest
import torch
from torch import nn

from dragoman.shapes import Float, Tensor
from dragoman.training.graph_capture import GraphRecorder

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU to record on")


@dataclass(frozen=True)
class Numbers:
    """A batch that is nothing but numbers; its form is the number of its rows."""

    x: Float[Tensor, "R D"]
    steady = True

    @property
    def form(self) -> tuple[int, ...]:
        return (len(self.x),)

    def moved(self, move: Callable[[Tensor], Tensor]) -> "Numbers":
        return Numbers(move(self.x))

    def copy_(self, other: "Numbers") -> None:
        self.x.copy_(other.x)


def losses(record: bool, fails: int = 0) -> tuple[list[float], int]:
    """Of 12 updates with dropout, in three forms, and how many recordings there are at the end. Recording
    number `fails` breaks off."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.Dropout(0.5), nn.ReLU(), nn.Linear(64, 1)).cuda()
    begun = 0

    def passed(batch: Any) -> tuple[Tensor, Tensor]:
        nonlocal begun
        if torch.cuda.is_current_stream_capturing():
            begun += 1
            if begun == fails:
                torch.cuda.synchronize()
        loss = model(batch.x).square().sum()
        loss.backward()
        return loss.detach(), loss.detach()

    recorder, found = GraphRecorder(passed, list(model.parameters())), []
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for update in range(12):
        optimizer.zero_grad(set_to_none=False)
        x = torch.randn(16 + update % 3, 32, generator=torch.Generator().manual_seed(update))
        batch = cast(Any, Numbers(x.cuda()))
        torch.manual_seed(100 + update)
        found.append((recorder(batch) if record else passed(batch))[0].item())
        optimizer.step()
    return found, len(recorder._recordings)


def test_what_is_played_back_is_what_goes_kernel_by_kernel() -> None:
    assert losses(record=True) == (losses(record=False)[0], 3)


@pytest.mark.parametrize("fails", [1, 2])
def test_a_recording_that_breaks_off_is_told_and_the_run_goes_on(fails: int) -> None:
    expected, _ = losses(record=False)
    with pytest.warns(UserWarning, match=r"kernel by kernel: .*not permitted when stream is capturing"):
        found = losses(record=True, fails=fails)
    assert found == (expected, 0)

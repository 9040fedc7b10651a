"""Small checkpoints, and what should be in them."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from dragoman import checkpoint


def some_tensors(seed: int) -> dict[str, dict[str, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    model = {f"layer.{i}.weight": torch.randn(5, 7, generator=generator) for i in range(3)}
    optim = {f"exp_avg.{name}": tensor * 2 for name, tensor in model.items()} | {"step.x": torch.tensor(3.0)}
    return {"model": model, "optim": optim}


def some_state(update: int) -> dict[str, Any]:
    return {"progress": {"update": update, "sum": 0.1 + 0.2}}


def save(root: Path, update: int) -> Path:
    return checkpoint.save(root, checkpoint.checkpoint_name(update), some_tensors(update), some_state(update))


def assert_is(found: checkpoint.Checkpoint, update: int) -> None:
    assert found.state == some_state(update)
    for part, tensors in some_tensors(update).items():
        read = found.read(part)
        assert read.keys() == tensors.keys()
        assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


def entries(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())

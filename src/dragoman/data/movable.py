"""What batches have in common: they move from the host to a device as one."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Self

import torch
from torch import Tensor

from dragoman.nn.mask import Packing

Device = torch.device | str | None
Move = Callable[[Tensor], Tensor]


class Movable:
    """A dataclass of tensors, of such classes, and of what the host alone looks at."""

    def to(self, device: Device) -> Self:
        return self.moved(lambda tensor: tensor.to(device, non_blocking=True))

    def pinned(self) -> Self:
        """In page-locked memory, which can be copied to a GPU while the host goes on."""
        return self.moved(lambda tensor: tensor.pin_memory())

    def copy_(self, other: Self) -> None:
        """Take the numbers of one whose tensors have the same shapes."""
        found: list[Tensor] = []
        other.moved(lambda tensor: found.append(tensor) or tensor)
        numbers = iter(found)
        self.moved(lambda tensor: tensor.copy_(next(numbers), non_blocking=True))

    def moved(self, move: Move) -> Self:
        changed = {}
        for field in fields(self):  # type: ignore[arg-type]  # all that inherit are dataclasses
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                changed[field.name] = move(value)
            elif isinstance(value, Movable | Packing):
                changed[field.name] = value.moved(move)
        return replace(self, **changed)  # type: ignore[type-var]

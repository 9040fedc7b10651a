"""An exponential moving average of the weights: ē ← ē + (1 − d)(θ − ē) after every update.

The decay d grows to its full value over the first updates, min(d, (1 + u) / (10 + u)), so that the random
weights of the start are soon forgotten.

With d = 0 it is the weights themselves and, `since` an update that validation has chosen, the mean of all
from there on: ASGD with the trigger of NT-ASGD (Merity et al. 2018, algorithm 1).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from dragoman.checkpoint import refuse_other_names
from dragoman.checkpoint.model import load_into, model_tensors


class Average:
    """The averaged weights of a model, by parameter name. The model must not move to another device."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.model = model
        self.tensors = {name: tensor.clone() for name, tensor in model_tensors(model).items()}
        # The parameters themselves: on a GPU, cuDNN's recurrent layers get other memory with every `to`.
        entries = model.state_dict(keep_vars=True)
        live = {name: entries[name] for name in self.tensors}
        floating = [name for name, tensor in live.items() if tensor.is_floating_point()]
        self._averages = [self.tensors[name] for name in floating]
        self._weights = [live[name] for name in floating]
        self._counters = [(self.tensors[name], live[name]) for name in live if name not in set(floating)]

    @torch.no_grad()
    def update(self, number: int, finite: Tensor | None = None, since: int | None = None) -> None:
        """Take in the weights after update `number`; not where `finite`, which only the device knows, is
        False."""
        decay = min(self.decay, (1 + number) / (10 + number))
        share = 1 - decay if since is None else 1 / (number - since + 1)
        if finite is None:
            torch._foreach_lerp_(self._averages, self._weights, share)  # pyright: ignore[reportPrivateImportUsage]
        else:
            change = torch._foreach_sub(self._weights, self._averages)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_mul_(change, share * finite)  # pyright: ignore[reportPrivateImportUsage]
            torch._foreach_add_(self._averages, change)  # pyright: ignore[reportPrivateImportUsage]
        for average, counter in self._counters:
            average.copy_(counter)

    def load(self, tensors: Mapping[str, Tensor], source: object) -> None:
        refuse_other_names(source, tensors, self.tensors)
        for name, tensor in self.tensors.items():
            tensor.copy_(tensors[name])


@contextmanager
def replaced_weights(model: nn.Module, tensors: Mapping[str, Tensor]) -> Iterator[None]:
    """Context manager: the model has these weights inside, and its own again afterwards, bit for bit."""
    own = {name: tensor.clone() for name, tensor in model_tensors(model).items()}
    load_into(model, tensors, "average")
    try:
        yield
    finally:
        load_into(model, own, "weights")

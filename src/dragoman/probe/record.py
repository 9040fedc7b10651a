"""Collect attention weights while a model runs.

    with record(model) as seen:
        model(src_ids, src_mask, tgt_in)
    seen["decoder.layers.3.cross_attention"][0]      # B H T S

With no recording open, the fused kernels run and no weights exist at all. For a hypothesis of any search,
run it through `decode` under a recording: the weights are the exact ones.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from dragoman.nn.attention_kernels import open_tap
from dragoman.shapes import Float, Tensor

Recording = dict[str, list[Float[Tensor, "B H Q M"]]]
"""For each attention module, by its name in the model, the weights of every call in order. A decoder that
goes position by position calls once for each: joined along Q they are those of the whole sequence."""


@contextmanager
def record(model: nn.Module) -> Iterator[Recording]:
    """Fill a recording with what the attention modules of this model do inside the `with` block."""
    names = {module: name for name, module in model.named_modules()}
    seen: Recording = {}

    def keep(module: nn.Module, weights: Tensor) -> None:
        if module in names:  # another model may run meanwhile
            seen.setdefault(names[module], []).append(weights.detach())

    with open_tap(keep):
        yield seen

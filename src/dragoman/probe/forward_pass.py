"""One pair passing through a model: the output of every part, in the order of computation.

    embedding ─ positions ─ [ norm ─ attention ─ + ─ norm ─ feed-forward ─ + ] × layers ─ norm ─ logits
    embedding ─ cells of a recurrent encoder ─ one vector ─ first state ─ context ─ cells ─ readout ─ logits

Recorded by hooks. Only the gates of recurrent cells are computed again, because kernels do not return them. A
part that runs once a position is one stage.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

from dragoman.data.batch import Device, collate
from dragoman.models.base import EncoderDecoder, Memory
from dragoman.models.rnn import RnnDecoder, RnnEncoder, SingleContext
from dragoman.nn.attention import CrossAttention, SelfAttention
from dragoman.nn.layer import FeedForward
from dragoman.nn.linear import TokenEmbedding
from dragoman.nn.recurrent import RecurrentStack
from dragoman.nn.scores import ScoredAttention
from dragoman.probe.gates import Fed, cells_of, fed_to_decoder
from dragoman.probe.hooks import standing
from dragoman.shapes import Float, Tensor

StageKind = Literal[
    "embedding", "positions", "norm", "self_attention", "cross_attention", "scored_attention", "one_vector",
    "cell", "feedforward", "layer", "memory", "bridge", "readout", "out",
]  # fmt: skip


@dataclass(frozen=True)
class ModelStage:
    """The output of one part of the model."""

    module: str
    kind: StageKind
    given: Float[Tensor, "P D"]
    """One vector per position."""
    before: Float[Tensor, "P E"] | None = None
    """norm: its input, the sum of a residual connection; attention: its heads side by side; feed-forward: its
    inner layer before the activation; readout: what is read out, side by side."""
    gates: Mapping[str, Float[Tensor, "P D"]] = field(default_factory=dict)
    """cell: what it computes for each position, in order; the last one is `given`."""
    backward: bool = False
    """cell: whether it reads from right to left."""

    @property
    def half(self) -> str:
        """encoder or decoder."""
        return "encoder" if self.module.split(".")[0] == "encoder" else "decoder"


@dataclass(frozen=True)
class Walk:
    stages: tuple[ModelStage, ...]
    logits: Float[Tensor, "T V"]
    """Before the softmax, at each target position."""


def walk(
    model: EncoderDecoder, src_ids: Sequence[int], tgt_ids: Sequence[int], device: Device = None
) -> Walk:
    """The stages for a given pair of ids, both without `</s>`."""
    calls: dict[str, list[tuple[Tensor | None, Tensor]]] = {}
    kinds = _kinds(model)
    modules = dict(model.named_modules())
    inner: dict[str, list[Tensor]] = {}
    fed: dict[str, list[Fed]] = {}
    hooks = [
        module.register_forward_pre_hook(partial(_keep_fed, fed, name))
        for name, module in modules.items()
        if isinstance(module, RecurrentStack)
    ]
    hooks += [
        modules[name].register_forward_hook(partial(_keep, calls, name, kind)) for name, kind in kinds.items()
    ]
    for name, kind in kinds.items():
        part = getattr(modules[name], {"feedforward": "widen"}.get(kind, "out"), None)
        if kind in ("self_attention", "cross_attention") and isinstance(part, nn.Module):
            hooks.append(part.register_forward_pre_hook(partial(_keep_input, inner, name)))
        elif kind == "feedforward" and isinstance(part, nn.Module):
            hooks.append(part.register_forward_hook(partial(_keep_output, inner, name)))
    batch = collate([(src_ids, tgt_ids)], device)
    with torch.no_grad(), standing(hooks):
        hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)
        logits = model.project(hidden[0]).float().cpu()
    stages = [
        _stage(name, _kind_of(name, kinds), found, inner.get(name, [])) for name, found in calls.items()
    ]
    stages.append(ModelStage("decoder.out", "out", hidden[0].float().cpu()))
    return Walk(tuple(_with_cells(stages, modules, fed)), logits)


def _with_cells(
    stages: list[ModelStage], modules: Mapping[str, nn.Module], fed: Mapping[str, list[Fed]]
) -> list[ModelStage]:
    """Put recurrent cells where they run. Encoders and most decoders call their stacks packed or position by
    position, so what these read is put together from the other stages."""
    given = {stage.module: stage.given for stage in stages}
    for name, module in modules.items():
        if isinstance(module, RnnEncoder):
            found = cells_of(f"{name}.stack", module.stack, [Fed(given[f"{name}.embedding"])])
            before = name
        elif isinstance(module, RnnDecoder):
            parts = (given[f"{name}.{part}"] for part in ("embedding", "bridge", "attention", "readout"))
            found = cells_of(f"{name}.stack", module.stack, [fed_to_decoder(module, *parts)])
            before = f"{name}.attention" if module.luong else f"{name}.readout"
        elif isinstance(module, RecurrentStack) and name in fed and not name.endswith(".stack"):
            found, before = cells_of(name, module, fed[name]), "decoder.out"
        else:
            continue
        place = next(at for at, stage in enumerate(stages) if stage.module == before)
        stages[place:place] = [
            ModelStage(cells.module, "cell", cells.gates["state"], None, cells.gates, cells.backward)
            for cells in found
        ]
    return stages


def _keep_fed(fed: dict[str, list[Fed]], name: str, _module: nn.Module, inputs: tuple[Any, ...]) -> None:
    fed.setdefault(name, []).append(Fed(inputs[0][0], inputs[1]))


def _kinds(model: nn.Module) -> dict[str, StageKind]:
    """The parts that are stages, by name."""
    found: dict[str, StageKind] = {}
    for name, module in model.named_modules():
        last = name.rpartition(".")[2]
        kind: StageKind | None = None
        if isinstance(module, TokenEmbedding):
            kind = "embedding"
        elif isinstance(module, SelfAttention):
            kind = "self_attention"
        elif isinstance(module, CrossAttention):
            kind = "cross_attention"
        elif isinstance(module, ScoredAttention):
            kind = "scored_attention"
        elif isinstance(module, SingleContext):
            kind = "one_vector"
        elif isinstance(module, FeedForward):
            kind = "feedforward"
        elif last in ("positions", "bridge", "readout") and isinstance(module, nn.Module):
            kind = last  # type: ignore[assignment]
        elif last.endswith("norm") and not isinstance(module, nn.Identity):
            kind = "norm"
        elif name.rpartition(".")[0].endswith("layers") and last.isdigit():
            kind = "layer"
        elif name == "encoder":
            kind = "memory"
        if kind is not None:
            found[name] = kind
    return found


def _kind_of(name: str, kinds: dict[str, StageKind]) -> StageKind:
    if name.endswith(".ended"):
        return "one_vector"
    return kinds.get(name, "embedding")


def _keep(
    calls: dict[str, list[tuple[Tensor | None, Tensor]]],
    name: str,
    kind: StageKind,
    _module: nn.Module,
    inputs: tuple[Any, ...],
    output: Any,
) -> None:
    given = output.hidden if isinstance(output, Memory) else output
    if not isinstance(given, Tensor) or not given.is_floating_point() or not 2 <= given.dim() <= 3:
        return
    if kind == "embedding" and name in calls and name.startswith("encoder"):
        name = name.replace("encoder", "decoder", 1)  # one matrix for both
    first = inputs[0] if inputs and isinstance(inputs[0], Tensor) and inputs[0].is_floating_point() else None
    calls.setdefault(name, []).append((first if kind in ("norm", "readout") else None, given))
    if isinstance(output, Memory) and output.ended is not None:
        calls.setdefault(f"{name}.ended", []).append((None, output.ended))


def _keep_input(
    inner: dict[str, list[Tensor]], name: str, _module: nn.Module, inputs: tuple[Any, ...]
) -> None:
    inner.setdefault(name, []).append(inputs[0])


def _keep_output(
    inner: dict[str, list[Tensor]], name: str, _module: nn.Module, _inputs: tuple[Any, ...], output: Any
) -> None:
    if isinstance(output, Tensor):
        inner.setdefault(name, []).append(output)


def _stage(
    name: str, kind: StageKind, calls: list[tuple[Tensor | None, Tensor]], inner: list[Tensor]
) -> ModelStage:
    before = [first for first, _ in calls if first is not None] or inner
    return ModelStage(name, kind, _rows([given for _, given in calls]), _rows(before) if before else None)


def _rows(parts: Sequence[Tensor]) -> Float[Tensor, "P D"]:
    """The positions of all calls, of the one sentence."""
    rows = [part.flatten(0, -2).float().cpu() for part in parts]
    return torch.cat(rows)

"""Fine-tuning of a pre-trained network: which parameters are trained, and at which learning rate.

    freeze            embeddings and lowest layers, or parameters by name, stay bit for bit as they are
    layer_decay       the rate of a stage is that of the one above it times this: with ξ for stages 0 … S−1,
                      η_s = η · ξ^(S−1−s); ULMFiT (Howard & Ruder 2018, section 3.2) takes 1/2.6
    unfreeze_every    only the top learns first, and every K updates one stage more (section 3.3): at update u
                      the highest 1 + ⌊(u − 1) / K⌋ stages: a pure function of u
    lora              nothing learns but thin pairs beside frozen matrices (`nn/lora.py`), and a new head

Stages are the parameters in the order of the layers:

    embeddings      tokens, places, segments, and the norm on them
    layers          of an encoder, then of a decoder: the modules of every list called `layers`
    head            everything after the last layer: final norm, readout, projection, pooler, task head

A matrix shared by embedding and projection is an embedding. Stages without parameters are left out, so the
top is never empty. Freezing, learning rates by layer and gradual unfreezing follow this order.
"""

import re
from collections.abc import Sequence

from torch import nn

from dragoman.errors import UserError
from dragoman.nn.lora import pair_names
from dragoman.runs.optim import TransferConfig

EMBEDDINGS, HEAD = "embeddings", "head"
_INPUTS = {"embedding", "positions", "segments", "embedding_norm", "relations", "into"}
_INPUTS |= {"inputs", "class_token"}  # of vectors
_LAYER = re.compile(r"(?:(.*?)\.)?layers\.(\d+)\.")


def stages(model: nn.Module) -> dict[str, list[str]]:
    """Names of parameters by stage, the lowest first."""
    names = [name for name, _ in model.named_parameters()]
    layered: dict[str, list[str]] = {}
    for name in names:
        if found := _LAYER.match(name):
            layered.setdefault(found[0].removesuffix("."), []).append(name)
    encoder = [stage for stage in layered if "encoder" in stage.split(".")]
    order: dict[str, list[str]] = {EMBEDDINGS: [], **layered, HEAD: []}
    for name in names:
        if _LAYER.match(name):
            continue
        parts = name.split(".")
        if _INPUTS & set(parts):
            order[EMBEDDINGS].append(name)
        elif "encoder" in parts and encoder:
            order[encoder[-1]].append(name)  # a norm or a projection at its end
        else:
            order[HEAD].append(name)
    return {stage: found for stage, found in order.items() if found}


def awake(num_stages: int, every: int, update: int) -> int:
    """How many of the highest stages learn at an update, which are counted from 1."""
    return num_stages if not every else min(num_stages, 1 + (update - 1) // every)


class Transfer:
    """The choices of a run applied to its network."""

    def __init__(self, config: TransferConfig, model: nn.Module) -> None:
        """Parameters that never learn are frozen here, before an optimizer or other processes see them."""
        self.config, self.model = config, model
        self.stages = stages(model)
        named = dict(model.named_parameters())
        for name in self._frozen(list(named)):
            named[name].requires_grad_(False)
        if named and not self.num_trained:
            raise UserError("transfer.freeze: nothing is left to learn; freeze less")
        top = len(self.stages) - 1
        self.scales = {
            name: config.layer_decay ** (top - number)
            for number, names in enumerate(self.stages.values())
            for name in names
        }
        """Factor of the learning rate by parameter name."""

    def _frozen(self, names: Sequence[str]) -> set[str]:
        config, frozen = self.config, set()
        for beginning in config.freeze:
            found = [name for name in names if name.startswith(beginning)]
            if not found:
                raise UserError(
                    f"transfer.freeze: no parameter's name begins with '{beginning}'; some are "
                    f"{', '.join(names[:3])}"
                )
            frozen.update(found)
        if config.freeze_layers is not None:
            layers = [stage for stage in self.stages if stage not in (EMBEDDINGS, HEAD)]
            if config.freeze_layers > len(layers):
                raise UserError(
                    f"transfer.freeze_layers: found {config.freeze_layers}, and this model has {len(layers)} "
                    "layers; choose fewer"
                )
            for stage in (EMBEDDINGS, *layers[: config.freeze_layers]):
                frozen.update(self.stages.get(stage, ()))
        if config.lora.rank:
            learning = set(pair_names(self.model))
            frozen.update(n for n in names if n not in learning and n.partition(".")[0] != HEAD)
        return frozen

    @property
    def num_trained(self) -> int:
        return sum(p.numel() for p in self.model.parameters() if p.requires_grad)

    @property
    def told(self) -> str | None:
        """A line for the log if some parameters are not trained."""
        trained, whole = self.num_trained, sum(p.numel() for p in self.model.parameters())
        if trained == whole:
            return None
        return f"{trained:,} of {whole:,} parameters are trained ({trained / whole:.1%})"

    def rest(self, update: int) -> None:
        """Clear the gradients of stages that are still frozen, so that no optimizer changes them."""
        count = awake(len(self.stages), self.config.unfreeze_every, update)
        asleep = list(self.stages.values())[: len(self.stages) - count]
        if asleep:
            named = dict(self.model.named_parameters())  # looked up here: sharding puts others in their place
            for name in (name for names in asleep for name in names):
                named[name].grad = None

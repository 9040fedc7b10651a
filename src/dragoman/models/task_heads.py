"""Task heads for networks that read text. Every `Reader` takes every head.

    ids ─ network ─▶ layers ─ last, embeddings or mix ─ [ LSTM from both sides ] ─▶ hidden

    hidden ─ pool ─ dropout ─ linear ─▶ one score a label          classify, pair, image, series
                                     ─▶ one number                   similarity
                                     ─▶ one score a sequence         choice
    hidden of a word's first piece ─ dropout ─ linear ─▶ one score a label            tag
    hidden of every piece ─ dropout ─ linear ─▶ begins here, ends here                span
    hidden of all patches side by side ─ dropout ─ linear ─▶ every number to come    forecast

As in GPT (Radford et al. 2018, section 3.3) and BERT (Devlin et al. 2019, section 4) a head is one linear
layer over the last layer of the network. For ELMo a head mixes all layers (Peters et al. 2018, equation 1),
and a recurrent network reads the mixture.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import nn

from dragoman.config import LEFT_OUT, WIDEST, check_counts, check_sizes
from dragoman.data.batch import TaskBatch, VectorBatch
from dragoman.data.labelled.config import Layers, Pooling, TaskKind
from dragoman.errors import UserError
from dragoman.models import Network
from dragoman.models.base import Reader
from dragoman.models.layer_stack import gpt_weights
from dragoman.nn.dropout import dropout
from dragoman.nn.linear import xavier_linear
from dragoman.nn.mask import lengths
from dragoman.nn.recurrent import RecurrentStack
from dragoman.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class HeadConfig:
    kind: TaskKind
    num_labels: int = 1
    pooling: Pooling = "auto"
    dropout: float = 0.1
    both_orders: bool = False
    layers: Layers = "last"
    recurrent: int = 0
    places: int = field(default=1, metadata=LEFT_OUT)
    """forecast: vectors of a sequence."""

    def __post_init__(self) -> None:
        check_sizes(self, places=["num_labels", "places"])
        check_counts(self, *(["recurrent"] if self.recurrent else []), most=WIDEST)


def pool(hidden: Float[Tensor, "R T D"], mask: Bool[Tensor, "R T"], how: Pooling) -> Float[Tensor, "R P"]:
    """One vector for a sequence. `concat` is the last, the greatest and the mean side by side (Howard & Ruder
    2018, section 3.3): three times as wide."""
    if how == "first":
        return hidden[:, 0]
    if how == "last":
        return hidden[torch.arange(len(hidden), device=hidden.device), lengths(mask) - 1]
    seen = mask[:, :, None]
    if how == "max":
        return hidden.masked_fill(~seen, -torch.inf).amax(dim=1)
    if how == "mean":
        return hidden.masked_fill(~seen, 0.0).sum(dim=1) / lengths(mask)[:, None]
    assert how == "concat", how
    return torch.cat([pool(hidden, mask, each) for each in ("last", "max", "mean")], dim=1)


class ScalarMix(nn.Module):
    """γ Σ_j s_j h_j over the layers h_j of a network (Peters et al. 2018, equation 1). The shares
    s = softmax(w) and the scale γ are learnt for a task. At first all shares are equal."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(num_layers))
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, layers: Sequence[Float[Tensor, "B T D"]]) -> Float[Tensor, "B T D"]:
        shares = self.weights.softmax(dim=0)
        mixed = sum(share * layer for share, layer in zip(shares, layers, strict=True))
        return self.scale * mixed

    def shares(self) -> list[float]:
        """How much each layer counts, from the embeddings to the last; they sum to 1."""
        return self.weights.detach().softmax(dim=0).tolist()


class Head(nn.Module):
    """Base class of heads: one vector per piece from the layers of a network of these `widths`."""

    def __init__(self, config: HeadConfig, widths: Sequence[int]) -> None:
        super().__init__()
        if config.layers == "mix" and len(set(widths)) > 1:
            raise UserError(
                "task.layers: mix needs layers of one width, and those of this model have "
                f"{', '.join(map(str, widths))}; choose last or embeddings"
            )
        self.dropout, self.layer = config.dropout, 0 if config.layers == "embeddings" else -1
        self.mix = ScalarMix(len(widths)) if config.layers == "mix" else None
        self.lstm = None
        self.width = widths[self.layer]
        if config.recurrent:
            self.lstm = RecurrentStack("lstm", self.width, config.recurrent, 1, bidirectional=True)
            self.width = config.recurrent

    def listen(
        self, layers: Sequence[Float[Tensor, "R T W"]], mask: Bool[Tensor, "R T"]
    ) -> Float[Tensor, "R T D"]:
        hidden = layers[self.layer] if self.mix is None else self.mix(layers)
        if self.lstm is None:
            return hidden
        return self.lstm.read(dropout(hidden, self.dropout, self.training), mask)


class Pooled(Head):
    """Scores for a whole sequence from the vectors of its pieces."""

    def __init__(self, config: HeadConfig, network: Network, widths: Sequence[int]) -> None:
        super().__init__(config, widths)
        how = network.abilities.pooling if config.pooling == "auto" else config.pooling
        own = getattr(network, "pool", None)
        if how == "pooler" and own is None:
            raise UserError("task.pooling: this model has no pooler; choose another one")
        if how == "pooler" and self.lstm is not None:
            raise UserError("task.pooling: the pooler knows nothing of task.recurrent; choose mean or concat")
        self.how: Pooling = how
        self.rows = 2 if config.both_orders else 1
        self._own = cast(Callable[[Tensor], Tensor] | None, own) if how == "pooler" else None
        self.out = xavier_linear((3 if how == "concat" else 1) * self.width, [config.num_labels])

    def forward(self, hidden: Float[Tensor, "R T D"], batch: TaskBatch | VectorBatch) -> Float[Tensor, "B C"]:
        pooled = pool(hidden, batch.mask, self.how) if self._own is None else self._own(hidden)
        pooled = pooled.unflatten(0, (-1, self.rows)).sum(dim=1)  # both orders of a pair are added up
        return self.out(dropout(pooled, self.dropout, self.training))


class Classifier(Pooled):
    """A score for every label: of a text, of two, of an image or a series."""


class Regressor(Pooled):
    """One number: 0 and 1 are the lowest and the highest score of the training data."""

    def forward(self, hidden: Float[Tensor, "R T D"], batch: TaskBatch | VectorBatch) -> Float[Tensor, "B"]:
        return super().forward(hidden, batch)[:, 0]


class Chooser(Pooled):
    """A score for every sequence; those of an example stand side by side, −∞ where it has no more."""

    def forward(self, hidden: Float[Tensor, "R T D"], batch: TaskBatch | VectorBatch) -> Float[Tensor, "B K"]:
        assert isinstance(batch, TaskBatch), "choices are texts"
        assert batch.choices is not None, "the batches of this task have choices"
        scores = super().forward(hidden, batch)[:, 0]
        places = torch.arange(int(batch.choices.max()), device=scores.device)
        there = places < batch.choices[:, None]  # B K
        table = scores.new_full(there.shape, -torch.inf)
        return table.masked_scatter(there, scores)


class Tagger(Head):
    """A score for every label, at the first piece of every word."""

    def __init__(self, config: HeadConfig, network: Network, widths: Sequence[int]) -> None:  # noqa: ARG002
        super().__init__(config, widths)
        self.out = xavier_linear(self.width, [config.num_labels])

    def forward(self, hidden: Float[Tensor, "R T D"], batch: TaskBatch) -> Float[Tensor, "A C"]:
        assert batch.asked is not None, "the batches of this task ask for places"
        words = hidden.flatten(0, 1)[batch.asked]
        return self.out(dropout(words, self.dropout, self.training))


class SpanFinder(Head):
    """Scores for the begin and end of an answer; −∞ where it cannot be."""

    def __init__(self, config: HeadConfig, network: Network, widths: Sequence[int]) -> None:  # noqa: ARG002
        super().__init__(config, widths)
        self.out = xavier_linear(self.width, [2])

    def forward(self, hidden: Float[Tensor, "R T D"], batch: TaskBatch) -> Float[Tensor, "B 2 T"]:
        assert batch.allowed is not None, "the batches of this task say where an answer may be"
        scores = self.out(dropout(hidden, self.dropout, self.training)).transpose(1, 2)
        return scores.masked_fill(~batch.allowed[:, None], -torch.inf)


class Forecaster(Head):
    """All numbers to come from all patches at once, as in PatchTST (Nie et al. 2023, section 3.1)."""

    def __init__(self, config: HeadConfig, network: Network, widths: Sequence[int]) -> None:  # noqa: ARG002
        super().__init__(config, widths)
        self.out = xavier_linear(config.places * self.width, [config.num_labels])

    def forward(self, hidden: Float[Tensor, "R T D"], batch: VectorBatch) -> Float[Tensor, "R F"]:
        patches = hidden.masked_fill(~batch.mask[..., None], 0.0)[:, 1:].flatten(1)
        return self.out(dropout(patches, self.dropout, self.training))


AnyHead = Pooled | Tagger | SpanFinder | Forecaster
HEADS: dict[str, Callable[[HeadConfig, Network, Sequence[int]], AnyHead]] = {
    "classify": Classifier,
    "pair": Classifier,
    "similarity": Regressor,
    "regress": Regressor,
    "choice": Chooser,
    "tag": Tagger,
    "span": SpanFinder,
    "image": Classifier,
    "series": Classifier,
    "forecast": Forecaster,
}


def make_head(network: Network, config: HeadConfig, device: str | None = None) -> AnyHead:
    """The head of a network. On the device "meta" it takes no memory."""
    widths = _widths(network, config.layers == "last")
    with nullcontext() if device is None else torch.device(device):
        return HEADS[config.kind](config, network, widths)


class TaskNetwork(nn.Module):
    """A network and its head. It reads as the network does."""

    def __init__(self, network: Network, config: HeadConfig) -> None:
        super().__init__()
        if network.abilities.counts:
            raise UserError(
                "model.kind: this model has no vectors that a head could read; choose another one"
            )
        self.network = network
        self.vocab, self.abilities = network.vocab, network.abilities
        self.only_last = config.layers == "last"
        self.head = make_head(network, config)
        gpt_weights(self.head.out)

    def forward(self, batch: TaskBatch | VectorBatch) -> Tensor:
        """The scores of a batch."""
        network = cast(Any, self.network)
        layers = [network.read(*batch.inputs)] if self.only_last else network.read_layers(*batch.inputs)
        return self.head(self.head.listen(layers, batch.mask), batch)

    def spell(self, spellings: Sequence[bytes]) -> None:
        """Set the spelling of the vocabulary, for networks that need it."""
        cast(Any, self.network).spell(spellings)

    def match_pieces(self, src_pieces: Sequence[str | None], tgt_pieces: Sequence[str | None]) -> None:
        """Say which pieces both sides have, for networks that copy."""
        cast(Any, self.network).match_pieces(src_pieces, tgt_pieces)

    def mixture(self) -> dict[str, float]:
        """The share of each layer, from the embeddings on, and γ; empty if layers are not mixed."""
        mix = self.head.mix
        if mix is None:
            return {}
        shares = {f"layer_{number}": share for number, share in enumerate(mix.shares())}
        return {**shares, "layers_scale": mix.scale.item()}

    def read(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        return cast(Reader, self.network).read(ids, mask, segments)

    def read_layers(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> list[Float[Tensor, "B T D"]]:
        return cast(Reader, self.network).read_layers(ids, mask, segments)


def _widths(network: Network, only_last: bool) -> list[int]:
    """The widths of the layers, found by reading one piece or image. Dropout is off."""
    was_training = network.training
    network.eval()
    with torch.no_grad():
        device = next(network.parameters()).device
        inputs: tuple[Tensor, ...]
        if network.abilities.vectors is None:
            piece = torch.zeros(1, 1, dtype=torch.long, device=device)
            inputs = piece, piece == 0, piece
        else:
            places = network.abilities.max_length or 1  # a whole image: a stem of convolutions reads no less
            vector = torch.zeros(1, places, network.abilities.vectors, device=device)
            inputs = vector, torch.ones(1, 1 + places, dtype=torch.bool, device=device)
        reader = cast(Any, network)
        layers = [reader.read(*inputs)] if only_last else reader.read_layers(*inputs)
    network.train(was_training)
    return [layer.size(-1) for layer in layers]

"""Where a token stands, as numbers to look at: for every kind of position a table and a square.

    sinusoidal, learned   the vectors of the first places            their dot products
    rotary                cosine and sine of each place's angles     1 · R_{j−i} 1, for vectors of ones
    t5                    the bias of each head by distance          of position j for i, mean of heads
    shaw                  a^K by distance, of one layer              their dot products

The textbook's numbers: for 5 places of width 4, row 1 of the sinusoids is 0.8415, 0.5403, 0.0100, 0.99995,
and the dot products have 2 on the diagonal and 1.5403 beside its first cell.
"""

from dataclasses import dataclass
from typing import Literal

import torch

from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.nn.attention import SelfAttention
from dragoman.nn.positions import BucketedBias, LearnedPositions, Rotary, SinusoidalPositions
from dragoman.shapes import Float, Tensor

Half = Literal["encoder", "decoder"]


@dataclass(frozen=True)
class PositionReport:
    kind: str
    table: Float[Tensor, "R C"]
    rows: tuple[str, ...]
    """Row labels: positions, or distances j − i."""
    row_name: str
    column_name: str
    square: Float[Tensor, "A A"]
    square_name: str
    square_labels: tuple[str, ...]


def positions_of(model: EncoderDecoder, length: int = 50, half: Half = "encoder") -> PositionReport:
    """The position report of encoder or decoder, for the first `length` positions."""
    if length < 2:
        raise UserError(f"length: expected at least 2 places, found {length}")
    part = getattr(model, half)
    with torch.no_grad():
        added = getattr(part, "positions", None)
        if isinstance(added, SinusoidalPositions | LearnedPositions):
            kind = "sinusoidal" if isinstance(added, SinusoidalPositions) else "learned"
            return _vectors(kind, _added(added, length))
        relation = getattr(part, "relations", None)
        if isinstance(relation, BucketedBias):
            return _bias(relation, length)
        if isinstance(relation, Rotary):
            return _rotary(relation, length)
        for module in part.modules() if isinstance(part, torch.nn.Module) else ():
            if isinstance(module, SelfAttention) and module.distances is not None:
                return _distances(module.distances.key, causal=half == "decoder")
    raise UserError(f"positions: the {half} of this model has none; it knows no order, or reads one by one")


def sinusoidal_square(table: Float[Tensor, "T D"]) -> Float[Tensor, "T T"]:
    """PE PEᵀ."""
    return table @ table.T


def _added(module: SinusoidalPositions | LearnedPositions, length: int) -> Float[Tensor, "T D"]:
    """The vector added at every position."""
    if isinstance(module, LearnedPositions):
        like, dim = module.weight, module.weight.size(1)
    else:
        like, dim = module.sinusoids.table, module.sinusoids.dim
    return module(torch.zeros(1, length, dim, dtype=like.dtype, device=like.device))[0].double().cpu()


def _vectors(kind: str, table: Float[Tensor, "T D"]) -> PositionReport:
    places = tuple(map(str, range(len(table))))
    square = sinusoidal_square(table)
    return PositionReport(kind, table, places, "position", "dimension", square, "dot products", places)


def _bias(module: BucketedBias, length: int) -> PositionReport:
    bias = module(length, length, like=module.weight).bias
    assert bias is not None
    square = bias[0].double().cpu()  # H Q M
    # The first row has the distances 0 … length−1, the first column their opposites.
    ahead, behind = square[:, 0], square[:, 1:, 0].flip(1)
    table = torch.cat([behind, ahead], dim=1).T  # distances H
    distances = tuple(str(distance) for distance in range(1 - length, length))
    places = tuple(map(str, range(length)))
    name = "bias of position j for i, mean of heads"
    return PositionReport("t5", table, distances, "distance j − i", "head", square.mean(dim=0), name, places)


def _rotary(module: Rotary, length: int) -> PositionReport:
    rotation = module(length, length, like=module.sinusoids.table).rotation
    assert rotation is not None
    cos, sin = rotation.cos.double().cpu(), rotation.sin.double().cpu()
    ones = torch.ones(1, 1, length, 2 * cos.size(1), dtype=torch.float64)
    turned = type(rotation)(cos, sin, rotation.interleaved)(ones)[0, 0]
    places = tuple(map(str, range(length)))
    return PositionReport(
        "rotary",
        torch.cat([cos, sin], dim=1),
        places,
        "position",
        "cosines, then sines, of each pair's angle",
        turned @ turned.T,
        "dot products of vectors of ones after rotation",
        places,
    )


def _distances(key: Float[Tensor, "R E"], causal: bool) -> PositionReport:
    table = key.detach().double().cpu()
    window = len(table) - 1 if causal else len(table) // 2
    labels = tuple(str(row - window) for row in range(len(table)))
    name = "dot products of distances"
    return PositionReport("shaw", table, labels, "distance j − i", "dimension", table @ table.T, name, labels)

"""Our Transformer as two ONNX graphs, with the inputs and outputs of optimum's encoder-decoders.

    encoder   input_ids, attention_mask ─▶ last_hidden_state
    decoder   input_ids, encoder_hidden_states, encoder_attention_mask, past_key_values.*, use_cache_branch
              ─▶ logits, present.*

The decoder reads any number of pieces after its cache. Without `use_cache_branch` the cache counts as empty,
and keys and values of the memory are computed; with it they come from the cache.
"""

import math
from typing import Any

import numpy as np
import torch
from onnx import TensorProto  # pyright: ignore[reportMissingImports]
from torch import Tensor

from dragoman.engines.onnx_graph import OnnxGraph, Wire
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.models.transformer import TransformerConfig
from dragoman.nn.layer import FeedForward
from dragoman.nn.positions import sinusoids

INT64, BOOL = TensorProto.INT64, TensorProto.BOOL
BATCH, SOURCE, TARGET, PAST = "batch", "source", "target", "past"
"""Names of dynamic axes."""


def refuse_unsupported(config: TransformerConfig) -> None:
    if config.decoder_self == "average":
        raise UserError("model.decoder_self: the ONNX graphs have no average in place of self-attention")
    _, head_dim, value_dim = config.heads
    if head_dim != value_dim:
        raise UserError(
            f"model.value_dim: in ONNX exports keys and values have one width, not {head_dim} and {value_dim}"
        )


def encoder_graph(model: EncoderDecoder, config: TransformerConfig, positions: int) -> OnnxGraph:
    graph, ours = OnnxGraph("encoder"), _any(model.encoder)
    ids = graph.input("input_ids", (BATCH, SOURCE), INT64)
    mask = graph.input("attention_mask", (BATCH, SOURCE), INT64)
    length = graph.size(ids, 1)
    half = _Half(graph, ours, config, positions, graph.ints(0), length)
    visible = visible_source(graph, mask)
    x = half.embedded(ids)
    for layer in ours.layers:
        attended, _ = half.self_attention(
            half.before(x, layer.self_residual), layer.self_attention, visible, None
        )
        x = half.after(x, attended, layer.self_residual)
        x = half.feedforward(x, layer)
    graph.output("last_hidden_state", graph.norm(x, ours.final_norm), (BATCH, SOURCE, config.model_dim))
    return graph


def decoder_graph(model: EncoderDecoder, config: TransformerConfig, positions: int) -> OnnxGraph:
    graph, ours = OnnxGraph("decoder"), _any(model.decoder)
    borders = DecoderBorders(graph, config.decoder_layers, config.heads[0], config.heads[1], config.model_dim)
    past_length = borders.past_length
    end = graph.op("Add", past_length, graph.size(borders.ids, 1))
    half = _Half(graph, ours, config, positions, past_length, end)
    visible, causal = visible_source(graph, borders.mask), half.causal()
    x = half.embedded(borders.ids)
    for number, layer in enumerate(ours.layers):
        own = half.before(x, layer.self_residual)
        attended, present = half.self_attention(
            own, layer.self_attention, causal, borders.past(number, "decoder")
        )
        x = half.after(x, attended, layer.self_residual)
        own, cross = half.before(x, layer.cross_residual), layer.cross_attention
        query = half.heads(graph.linear(own, cross.query.weight, cross.query.bias))
        memory = graph.linear(borders.new_memory, cross.key_value.weight, cross.key_value.bias)
        width = config.heads[0] * config.heads[1]
        made = [half.heads(part) for part in graph.split(memory, width, width)]
        known = borders.past(number, "encoder")
        key, value = (graph.concat(2, *pair) for pair in zip(known, made, strict=True))
        read = half.read(query, key, value, visible, cross.scaled)
        x = half.after(x, graph.linear(read, cross.out.weight, cross.out.bias), layer.cross_residual)
        x = half.feedforward(x, layer)
        borders.present(number, "decoder", *present)
        borders.present(number, "encoder", key, value)
    hidden = graph.norm(x, ours.final_norm)
    if ours.output_scale is not None:
        hidden = graph.scaled(hidden, ours.output_scale)
    borders.logits(hidden, model)
    return graph


class DecoderBorders:
    """Inputs and outputs of a decoder with a cache. `width` is that of every head in the cache."""

    def __init__(
        self, graph: OnnxGraph, layers: int, heads: int, width: int, memory_dim: int, step: str | int = TARGET
    ) -> None:
        self.graph, self.shape, self.step = graph, (heads, width), step
        self.ids = graph.input("input_ids", (BATCH, step), INT64)
        self.memory = memory = graph.input("encoder_hidden_states", (BATCH, SOURCE, memory_dim))
        self.mask = graph.input("encoder_attention_mask", (BATCH, SOURCE), INT64)
        kinds = [(side, part) for side in ("decoder", "encoder") for part in ("key", "value")]
        self._past = {
            (number, side, part): graph.input(
                f"past_key_values.{number}.{side}.{part}", (BATCH, heads, f"{PAST}_{side}", width)
            )
            for number in range(layers)
            for side, part in kinds
        }
        branch = graph.input("use_cache_branch", (1,), BOOL)
        self.cached = graph.op("Cast", branch, attributes={"to": INT64})
        new = graph.op("Sub", graph.ints(1), self.cached)
        self.new_memory = graph.first(memory, graph.op("Mul", graph.size(memory, 1), new), 1)
        """Input of the memory's keys and values: all of it, or an empty slice."""
        ends = {side: self._end(side) for side in ("decoder", "encoder")}
        self.past_length = ends["decoder"]
        self._ends = ends

    def _end(self, side: str) -> Wire:
        length = self.graph.size(self._past[0, side, "key"], 2)
        return self.graph.op("Mul", length, self.cached)

    def past(self, layer: int, side: str) -> list[Wire]:
        """Keys and values from the cache."""
        parts = (self._past[layer, side, part] for part in ("key", "value"))
        return [self.graph.first(part, self._ends[side], 2) for part in parts]

    def present(self, layer: int, side: str, key: Wire, value: Wire) -> None:
        heads, width = self.shape
        for part, tensor in (("key", key), ("value", value)):
            self.graph.output(
                f"present.{layer}.{side}.{part}", tensor, (BATCH, heads, f"present_{side}", width)
            )

    def logits(self, hidden: Wire, model: EncoderDecoder) -> None:
        projection = _any(model.projection)
        found = self.graph.linear(hidden, projection.weight, projection.bias)
        self.graph.output("logits", found, (BATCH, self.step, model.vocab.tgt_size))


class _Half:
    """An encoder or a decoder. Its queries are at positions `start` to `end` (exclusive)."""

    def __init__(
        self,
        graph: OnnxGraph,
        ours: Any,
        config: TransformerConfig,
        positions: int,
        start: Wire,
        end: Wire,
    ) -> None:
        self.graph, self.ours, self.config = graph, ours, config
        self.positions, self.start, self.end = positions, start, end
        self.angles = self._angles() if config.positions == "rotary" else None
        self.distances = self._distances() if config.positions in ("t5", "shaw") else None
        self.bias = self._bucketed() if config.positions == "t5" else None

    def embedded(self, ids: Wire) -> Wire:
        x = embedding(self.graph, self.ours.embedding, ids)
        if self.config.positions in ("sinusoidal", "learned"):
            with torch.inference_mode():
                table = self.ours.positions(torch.zeros(1, self.positions, self.config.model_dim))[0]
            x = self.graph.op("Add", x, self._rows(table))
        return self.graph.norm(x, self.ours.embedding_norm)

    def _rows(self, table: Tensor) -> Wire:
        """Rows of a table for the positions of the queries."""
        return self.graph.op("Slice", self.graph.constant(table), self.start, self.end, self.graph.ints(0))

    def before(self, x: Wire, residual: Any) -> Wire:
        return self.graph.norm(x, residual.norm) if residual.place == "pre" else x

    def after(self, x: Wire, sublayer: Wire, residual: Any) -> Wire:
        total = self.graph.op("Add", x, sublayer)
        return total if residual.place == "pre" else self.graph.norm(total, residual.norm)

    def feedforward(self, x: Wire, layer: Any) -> Wire:
        graph, ours, config = self.graph, layer.feedforward, self.config
        assert isinstance(ours, FeedForward)
        inner = graph.linear(self.before(x, layer.ff_residual), ours.widen.weight, ours.widen.bias)
        if config.gated:
            opened, passed = graph.split(inner, config.ff_dim, config.ff_dim)
            inner = graph.op("Mul", graph.activation(opened, config.activation), passed)
        else:
            inner = graph.activation(inner, config.activation)
        return self.after(x, graph.linear(inner, ours.narrow.weight, ours.narrow.bias), layer.ff_residual)

    def heads(self, x: Wire) -> Wire:
        """Reshape B T H·E to B H T E."""
        heads, width, _ = self.config.heads
        return self.graph.transpose(self.graph.reshape(x, 0, 0, heads, width), 0, 2, 1, 3)

    def self_attention(
        self, x: Wire, ours: Any, visible: Wire, past: list[Wire] | None
    ) -> tuple[Wire, list[Wire]]:
        """The output, and keys and values of all positions."""
        weight, bias = _halves_first(ours, self.config)
        width = ours.num_heads * ours.head_dim
        parts = self.graph.split(self.graph.linear(x, weight, bias), width, width, width)
        query, key, value = map(self.heads, parts)
        if self.angles is not None:
            query, key = self._rotated(query), self._rotated(key)
        if past is not None:
            key, value = (self.graph.concat(2, *pair) for pair in zip(past, (key, value), strict=True))
        if self.bias is not None:
            visible = self.graph.op("Add", visible, self.bias)
        read = self.read(query, key, value, visible, ours.scaled, ours.distances)
        return self.graph.linear(read, ours.out.weight, ours.out.bias), [key, value]

    def read(
        self,
        query: Wire,
        key: Wire,
        value: Wire,
        visible: Wire,
        scaled: bool,
        distances: Any = None,
    ) -> Wire:
        graph, width = self.graph, self.config.heads[1]
        query = graph.scaled(query, 1 / math.sqrt(width) if scaled else 1.0)
        scores = graph.op("MatMul", query, graph.transpose(key, 0, 1, 3, 2))
        if distances is not None:
            by_place = graph.transpose(query, 2, 0, 1, 3)  # Q B H E
            keys = graph.transpose(self._table(distances.key), 0, 1, 3, 2)  # Q 1 E M
            scores = graph.op("Add", scores, graph.transpose(graph.op("MatMul", by_place, keys), 1, 2, 0, 3))
        weights = graph.op("Softmax", graph.op("Add", scores, visible), attributes={"axis": -1})
        found = graph.op("MatMul", weights, value)
        if distances is not None:
            by_place = graph.transpose(weights, 2, 0, 1, 3)  # Q B H M
            values = graph.op("MatMul", by_place, self._table(distances.value))
            found = graph.op("Add", found, graph.transpose(values, 1, 2, 0, 3))
        return graph.reshape(graph.transpose(found, 0, 2, 1, 3), 0, 0, self.config.heads[0] * width)

    def causal(self) -> Wire:
        """The causal mask: Q M."""
        graph = self.graph
        queries = graph.unsqueeze(graph.counted(self.start, self.end), 1)
        memory = graph.unsqueeze(graph.counted(graph.ints(0), self.end), 0)
        return graph.penalty(graph.op("LessOrEqual", memory, queries))

    def _distances(self) -> Wire:
        """Clipped distances from queries to positions, as row numbers of a table: Q M."""
        graph, config = self.graph, self.config
        queries = graph.unsqueeze(graph.counted(self.start, self.end), 1)
        memory = graph.unsqueeze(graph.counted(graph.ints(0), self.end), 0)
        apart = graph.op("Sub", memory, queries)
        if config.positions == "t5":
            least = most = config.relative_max_distance
        else:
            least, most = self.ours.relations.window, self.ours.relations.ahead
        bounds = (graph.constant(np.int64(bound)) for bound in (-least, most))
        return graph.op("Add", graph.op("Clip", apart, *bounds), graph.ints(least))

    def _bucketed(self) -> Wire:
        """The learnt bias by distance: 1 H Q M."""
        relations = self.ours.relations
        table = relations.weight[relations.buckets]
        found = self.graph.op("Gather", self.graph.constant(table), self.distances or "")
        return self.graph.unsqueeze(self.graph.transpose(found, 2, 0, 1), 0)

    def _table(self, vectors: Tensor) -> Wire:
        """Shaw's vectors of all pairs: Q 1 M E."""
        found = self.graph.op("Gather", self.graph.constant(vectors), self.distances or "")
        return self.graph.unsqueeze(found, 1)

    def _angles(self) -> list[Wire]:
        """Sines and cosines for rotary positions of the queries: T E/2."""
        width = self.config.heads[1]
        table = sinusoids(self.positions, width, self.config.position_base, "halves").float()
        return [self._rows(part) for part in table.chunk(2, dim=-1)]

    def _rotated(self, x: Wire) -> Wire:
        graph, half = self.graph, self.config.heads[1] // 2
        sin, cos = self.angles or ["", ""]
        first, second = graph.split(x, half, half)
        left, right = graph.op("Mul", first, cos), graph.op("Mul", second, sin)
        up, down = graph.op("Mul", first, sin), graph.op("Mul", second, cos)
        return graph.concat(-1, graph.op("Sub", left, right), graph.op("Add", up, down))


def _halves_first(ours: Any, config: TransformerConfig) -> tuple[Tensor, Tensor | None]:
    """Projections of a self-attention. Interleaved rotary positions are converted to rotated halves by
    permuting the elements of queries and keys, which does not change their products."""
    linear = ours.query_key_value
    if config.positions != "rotary" or config.position_layout == "halves":
        return linear.weight, linear.bias
    heads, width, _ = config.heads
    inside = torch.cat([torch.arange(0, width, 2), torch.arange(1, width, 2)])
    half = (torch.arange(heads)[:, None] * width + inside).flatten()
    order = torch.cat([half, half + heads * width, torch.arange(2 * heads * width, 3 * heads * width)])
    return linear.weight[order], None if linear.bias is None else linear.bias[order]


def embedding(graph: OnnxGraph, ours: Any, ids: Wire) -> Wire:
    """Rows of the scaled embedding matrix; the row of padding is zero."""
    rows = ours.weight.detach().clone() * ours.scale
    rows[ours.pad_id] = 0
    return graph.op("Gather", graph.constant(rows), ids)


def visible_source(graph: OnnxGraph, mask: Wire) -> Wire:
    """The source mask: B 1 1 S."""
    visible = graph.op("Cast", mask, attributes={"to": BOOL})
    return graph.penalty(graph.unsqueeze(visible, 1, 2))


def _any(part: object) -> Any:
    """Modules are known by what they have here."""
    return part

"""Recurrent encoder-decoders as two ONNX graphs with the inputs and outputs of `engines/onnx_transformer.py`,
so that programs for encoder-decoders with a cache can run them too.

The cache has one layer with one head:

    decoder.key      one row for every piece so far: the hidden states of all layers and the last output
    decoder.value    the cells of an LSTM
    encoder.key      the keys of the attention
    encoder.value    the memory

All are padded to one width, because programs expect it. A step reads one piece and the last row of the state,
and appends a row.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.engines.onnx_graph import OnnxGraph, Wire
from dragoman.engines.onnx_transformer import BATCH, INT64, SOURCE, DecoderBorders, embedding, visible_source
from dragoman.errors import UserError
from dragoman.models.base import EncoderDecoder
from dragoman.models.rnn import RnnConfig
from dragoman.nn.scores import (
    AdditiveScore,
    BasicScore,
    ConcatScore,
    CosineScore,
    DotScore,
    GeneralScore,
    ScaledDotScore,
)

_KINDS = {"LSTM": "LSTM", "GRU": "GRU", "RNN_TANH": "RNN"}
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN_TANH": (0,)}
"""torch's gates in ONNX's order."""
_PRODUCTS = (BasicScore, DotScore, ScaledDotScore, GeneralScore)
_OTHERS = ("location",)
_SHORTEST_VECTOR = 1e-12
"""Least length that `F.normalize` divides by."""


def refuse_unsupported_recurrent(config: RnnConfig) -> None:
    if config.attention in _OTHERS:
        raise UserError(f"model.attention: the ONNX graphs have no {config.attention} scores")


def cache_width(config: RnnConfig) -> int:
    layers = config.num_decoder_layers or config.num_layers
    states = (layers + config.input_feeding) * config.model_dim
    return max(states, config.attention_dim or config.model_dim)


def encoder_graph(model: EncoderDecoder, config: RnnConfig) -> OnnxGraph:
    graph, ours = OnnxGraph("encoder"), _any(model.encoder)
    ids = graph.input("input_ids", (BATCH, SOURCE), INT64)
    mask = graph.input("attention_mask", (BATCH, SOURCE), INT64)
    lengths = graph.op("Cast", _lengths(graph, mask), attributes={"to": 6})  # int32
    x = embedding(graph, ours.embedding, ids)
    for number, layer in enumerate(ours.stack.layers):
        out = _layer(graph, layer, x, lengths, config.model_dim)
        x = graph.op("Add", x, out) if number else out
    graph.output("last_hidden_state", x, (BATCH, SOURCE, config.model_dim))
    return graph


def decoder_graph(model: EncoderDecoder, config: RnnConfig) -> OnnxGraph:
    graph, ours = OnnxGraph("decoder"), _any(model.decoder)
    dim, width = config.model_dim, cache_width(config)
    borders = DecoderBorders(graph, 1, 1, width, dim, step=1)
    summary = _summary(graph, borders.memory, borders.mask, config.bidirectional, dim)
    hidden, cells, fed, rows = _last_state(graph, ours, borders, summary, width, dim)
    keys, values = _memory(graph, ours, borders, width, dim)
    word = graph.op("Squeeze", embedding(graph, ours.embedding, borders.ids), graph.ints(1))

    def look(query: Wire) -> Wire:
        if config.attention == "none":
            return summary
        scores = _scores(graph, ours.attention.score, graph.unsqueeze(query, 1), keys)
        visible = graph.op("Squeeze", visible_source(graph, borders.mask), graph.ints(1))
        weights = graph.op("Softmax", graph.op("Add", scores, visible), attributes={"axis": -1})
        return graph.op("Squeeze", graph.op("MatMul", weights, values), graph.ints(1))

    context = None if ours.luong else look(hidden[-1])
    beside = context if context is not None else fed
    x = word if beside is None else graph.concat(-1, word, beside)
    top, states, kept = _advance(graph, ours.stack.layers, x, hidden, cells)
    context = look(top) if context is None else context
    parts = [context, top] if ours.luong else [top, context, word]
    out = graph.op("Tanh", graph.linear(graph.concat(-1, *parts), ours.readout.weight, ours.readout.bias))
    new = [*states, *([out] if config.input_feeding else [])], kept or states
    present = [
        graph.concat(2, known, _row(graph, own, dim, width)) for known, own in zip(rows, new, strict=True)
    ]
    borders.present(0, "decoder", *present)
    borders.logits(graph.unsqueeze(out, 1), model)
    return graph


def _last_state(
    graph: OnnxGraph, ours: Any, borders: DecoderBorders, summary: Wire, width: int, dim: int
) -> tuple[list[Wire], list[Wire], Wire | None, list[Wire]]:
    """Hidden states, cells and last output after the last piece, or the initial ones; and the cache so
    far."""
    layers, lstm = ours.num_layers, ours.parts == 2
    begun = graph.op("Tanh", graph.linear(summary, ours.bridge.weight, ours.bridge.bias))
    parts = graph.split(begun, *[dim] * (ours.parts * layers))
    zeros = [graph.op("Sub", parts[0], parts[0])] if ours.input_feeding else []
    starts = [*parts[:layers], *zeros], parts[layers:] if lstm else parts[:layers]
    rows = borders.past(0, "decoder")
    found: list[list[Wire]] = []
    for start, known in zip(starts, rows, strict=True):
        whole = graph.concat(2, _row(graph, start, dim, width), known)
        last = graph.op("Squeeze", graph.last(whole, 2), graph.ints(1))  # B W
        rest = width - len(start) * dim
        found.append(graph.split(last, *[dim] * len(start), *([rest] if rest else [])))
    fed = found[0][layers] if ours.input_feeding else None
    return found[0][:layers], found[1][:layers] if lstm else [], fed, rows


def _row(graph: OnnxGraph, parts: Sequence[Wire], dim: int, width: int) -> Wire:
    """The vectors of one position as a row of the cache: B 1 1 W."""
    side_by_side = graph.concat(-1, *parts)
    return graph.unsqueeze(_padded(graph, side_by_side, 2, len(parts) * dim, width), 1, 2)


def _memory(graph: OnnxGraph, ours: Any, borders: DecoderBorders, width: int, dim: int) -> tuple[Wire, Wire]:
    """Keys and values of the attention: computed in the first step, then taken from the cache."""
    memory, score = borders.new_memory, getattr(ours.attention, "score", None)
    keys, own = (memory, dim) if score is None else _prepared(graph, score, memory, dim)
    known, found = borders.past(0, "encoder"), []
    for past, (part, size) in zip(known, ((keys, own), (memory, dim)), strict=True):
        new = graph.unsqueeze(_padded(graph, part, 3, size, width), 1)
        found.append(graph.concat(2, past, new))
    borders.present(0, "encoder", *found)
    rows = [graph.op("Squeeze", part, graph.ints(1)) for part in found]
    narrow = [graph.first(part, graph.ints(size), 2) for part, size in zip(rows, (own, dim), strict=True)]
    return narrow[0], narrow[1]


def _prepared(graph: OnnxGraph, score: Any, memory: Wire, dim: int) -> tuple[Wire, int]:
    if isinstance(score, ConcatScore):
        weight = score.joint.weight[:, score.query_dim :]
        return graph.linear(memory, weight), len(weight)
    key = getattr(score, "key", None)
    if key is None or isinstance(key, nn.Identity):
        found, width = memory, dim
    else:
        found, width = graph.linear(memory, key.weight, key.bias), len(key.weight)
    if isinstance(score, CosineScore):
        found = _unit(graph, found)
    return graph.scaled(found, getattr(score, "scale", 1.0)), width


def _unit(graph: OnnxGraph, x: Wire) -> Wire:
    """Vectors of length 1, as `F.normalize` makes them."""
    length = graph.op("ReduceL2", x, attributes={"axes": [-1], "keepdims": 1})
    return graph.op("Div", x, graph.op("Max", length, graph.constant(np.float32(_SHORTEST_VECTOR))))


def _scores(graph: OnnxGraph, score: Any, query: Wire, keys: Wire) -> Wire:
    """Attention scores: B 1 S."""
    if isinstance(score, CosineScore):
        product = graph.op("MatMul", _unit(graph, query), graph.transpose(keys, 0, 2, 1))
        return graph.scaled(product, score.log_sharpness.exp().item())
    if isinstance(score, _PRODUCTS):
        return graph.op("MatMul", query, graph.transpose(keys, 0, 2, 1))
    assert isinstance(score, AdditiveScore | ConcatScore), "others are refused"
    concat = isinstance(score, ConcatScore)
    weight = score.joint.weight[:, : score.query_dim] if concat else score.query.weight
    inner = graph.op("Tanh", graph.op("Add", graph.linear(query, weight), keys))  # B S A
    return graph.transpose(graph.linear(inner, score.energy.weight), 0, 2, 1)


def _advance(
    graph: OnnxGraph,
    layers: Sequence[nn.RNNBase],
    x: Wire,
    hidden: Sequence[Wire],
    cells: Sequence[Wire],
) -> tuple[Wire, list[Wire], list[Wire]]:
    """One step of a stack: its output, and the states and cells of all layers."""
    states, kept = [], []
    for number, layer in enumerate(layers):
        from_input, from_past, input_bias, bias = layer.all_weights[0]
        seen = graph.linear(x, from_input, input_bias)
        asked = graph.linear(hidden[number], from_past, bias)
        if layer.mode == "GRU":
            out = _gru(graph, layer.hidden_size, seen, asked, hidden[number])
        elif layer.mode == "LSTM":
            gates = graph.split(graph.op("Add", seen, asked), *[layer.hidden_size] * 4)
            out, cell = _lstm(graph, gates, cells[number])
            kept.append(cell)
        else:
            out = graph.op("Tanh", graph.op("Add", seen, asked))
        states.append(out)
        x = graph.op("Add", x, out) if number else out
    return x, states, kept


def _lstm(graph: OnnxGraph, gates: Sequence[Wire], cell: Wire) -> tuple[Wire, Wire]:
    into, forget, new, out = gates
    kept = graph.op("Mul", graph.op("Sigmoid", forget), cell)
    added = graph.op("Mul", graph.op("Sigmoid", into), graph.op("Tanh", new))
    cell = graph.op("Add", kept, added)
    return graph.op("Mul", graph.op("Sigmoid", out), graph.op("Tanh", cell)), cell


def _gru(graph: OnnxGraph, dim: int, seen: Wire, asked: Wire, hidden: Wire) -> Wire:
    (seen_reset, seen_update, seen_new), (reset, update, new) = (
        graph.split(gates, dim, dim, dim) for gates in (seen, asked)
    )
    reset, update = (
        graph.op("Sigmoid", graph.op("Add", one, other))
        for one, other in ((seen_reset, reset), (seen_update, update))
    )
    new = graph.op("Tanh", graph.op("Add", seen_new, graph.op("Mul", reset, new)))
    apart = graph.op("Mul", update, graph.op("Sub", hidden, new))
    return graph.op("Add", new, apart)


def _layer(graph: OnnxGraph, layer: nn.RNNBase, x: Wire, lengths: Wire, dim: int) -> Wire:
    """A whole sequence by ONNX's recurrent operator: B S D."""
    order = _GATES[layer.mode]
    parts = list(zip(*layer.all_weights, strict=True))  # by kind, one per direction

    def sorted_gates(of: Sequence[Tensor]) -> list[Tensor]:
        return [torch.cat([weight.detach().chunk(len(order))[gate] for gate in order]) for weight in of]

    inputs, past, input_bias, bias = (sorted_gates(kind) for kind in parts)
    biases = [torch.cat(pair) for pair in zip(input_bias, bias, strict=True)]
    attributes: dict[str, Any] = {
        "hidden_size": layer.hidden_size,
        "direction": "bidirectional" if layer.bidirectional else "forward",
    }
    if layer.mode == "GRU":
        attributes["linear_before_reset"] = 1
    tensors = [graph.constant(torch.stack(kind)) for kind in (inputs, past, biases)]
    out = graph.op(
        _KINDS[layer.mode], graph.transpose(x, 1, 0, 2), *tensors, lengths, attributes=attributes
    )  # S P B W
    return graph.reshape(graph.transpose(out, 2, 0, 1, 3), 0, 0, dim)


def _lengths(graph: OnnxGraph, mask: Wire) -> Wire:
    """Lengths: B."""
    return graph.op("ReduceSum", mask, graph.ints(1), attributes={"keepdims": 0})


def _summary(graph: OnnxGraph, memory: Wire, mask: Wire, bidirectional: bool, dim: int) -> Wire:
    """The final state of each direction: B D."""
    ends = graph.unsqueeze(graph.op("Sub", _lengths(graph, mask), graph.ints(1)), 1)
    places = graph.unsqueeze(graph.counted(graph.ints(0), graph.size(memory, 1)), 0)
    chosen = graph.op("Cast", graph.op("Equal", places, ends), attributes={"to": 1})  # B S
    last = graph.op("Squeeze", graph.op("MatMul", graph.unsqueeze(chosen, 1), memory), graph.ints(1))
    if not bidirectional:
        return last
    first = graph.op("Gather", memory, graph.constant(np.int64(0)), attributes={"axis": 1})
    half = dim // 2
    return graph.concat(-1, graph.split(last, half, half)[0], graph.split(first, half, half)[1])


def _padded(graph: OnnxGraph, x: Wire, rank: int, size: int, width: int) -> Wire:
    """Pad the last axis with zeros."""
    return x if size == width else graph.op("Pad", x, graph.ints(*[0] * (2 * rank - 1), width - size))


def _any(part: object) -> Any:
    return part

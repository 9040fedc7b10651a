"""A Transformer's decoder with caches that stay where they are, so that a step can be recorded and replayed.

A sentence has a slot for every position and beam. The key and value of beam k at position t are written into
slot (t, k) and stay there. Where beams change places, nothing is moved: a beam knows its ancestors, the place
that it had at every position, and sees their slots alone.

    position   0   1   2   3
    place 0    a   c   e   g        g came from f, f from c, c from a:   ancestors 0 0 1 0, sees a c f g
    place 1    b   d   f   h        h came from e, e from d, d from a:   ancestors 0 1 0 1, sees a d e h

The beams of a sentence ask together, as so many queries, and each slot is read once for all of them.
Sentences are at positions of their own, so that one can come in when another is done.
"""

import math

import torch
import torch.nn.functional as F

from dragoman.models.base import EncoderDecoder, Memory
from dragoman.models.transformer import TransformerDecoder
from dragoman.nn.attention import SelfAttention, attend, join_heads, split_heads
from dragoman.nn.layer import DecoderLayer
from dragoman.nn.relative import NoRelation
from dragoman.shapes import Bool, Float, Int, Tensor


def fits(model: EncoderDecoder) -> bool:
    """Whether a model's steps can be made of slots: a Transformer whose positions are added, if any."""
    decoder = model.decoder
    return (
        isinstance(decoder, TransformerDecoder)
        and isinstance(decoder.relations, NoRelation)
        and all(isinstance(layer.self_attention, SelfAttention) for layer in decoder.layers)
    )


def past_bytes(model: EncoderDecoder) -> int:
    """What one position of one beam takes in all layers."""
    decoder = model.decoder
    assert isinstance(decoder, TransformerDecoder)
    own = [layer.self_attention for layer in decoder.layers]
    numbers = sum(a.num_heads * (a.head_dim + a.value_dim) for a in own if isinstance(a, SelfAttention))
    return numbers * decoder.embedding.weight.element_size()


class LayerSlots:
    """The keys and values of one layer: of what was written, side by side, and of the memory."""

    def __init__(self, layer: DecoderLayer, shape: tuple[int, int, int, int], like: Tensor) -> None:
        sentences, beams, capacity, memory = shape
        own, cross = layer.self_attention, layer.cross_attention
        assert isinstance(own, SelfAttention)
        self.layer, self.own, self.cross = layer, own, cross
        self.widths = [own.num_heads * own.head_dim, own.num_heads * own.value_dim]
        self.past = like.new_zeros(sentences, capacity, beams, sum(self.widths))
        self.memory_key = like.new_zeros(sentences, cross.num_heads, memory, cross.head_dim)
        self.memory_value = like.new_zeros(sentences, cross.num_heads, memory, cross.value_dim)
        self.sentences = torch.arange(sentences, device=like.device)

    def admit(self, rows: Int[Tensor, "R"], memory: Float[Tensor, "R S D"]) -> None:
        key, value = self.cross.project_memory(memory)
        length = key.size(2)
        self.memory_key[:, :, :length].index_copy_(0, rows, key)
        self.memory_value[:, :, :length].index_copy_(0, rows, value)

    def step(
        self,
        x: Float[Tensor, "B K D"],
        position: Int[Tensor, "B"],
        seen: Float[Tensor, "B 1 K M"],
        memory_seen: Float[Tensor, "B 1 1 S"],
    ) -> Float[Tensor, "B K D"]:
        layer, own, cross = self.layer, self.own, self.cross
        asked, written = own.query_key_value(layer.self_residual.before(x)).split(
            [self.widths[0], sum(self.widths)], dim=-1
        )
        self.past[self.sentences, position] = written
        slots = self.past[:, : seen.size(3) // x.size(1)].flatten(1, 2)  # B M ·, as it lies in memory
        key, value = (split_heads(part, own.num_heads) for part in slots.split(self.widths, dim=-1))
        query = split_heads(asked, own.num_heads)
        attended = attend(own, query, key, value, bias=seen, scaled=own.scaled)
        x = layer.self_residual.after(x, own.out(join_heads(attended)))
        query = split_heads(cross.query(layer.cross_residual.before(x)), cross.num_heads)
        memory = (self.memory_key, self.memory_value)
        attended = attend(cross, query, *memory, bias=memory_seen, scaled=cross.scaled)
        x = layer.cross_residual.after(x, cross.out(join_heads(attended)))
        return layer.ff_residual.after(x, layer.feedforward(layer.ff_residual.before(x)))


class TransformerSlots:
    """Room for so many sentences with so many beams each, of so many positions, over memories of so many."""

    def __init__(self, model: EncoderDecoder, sentences: int, beams: int, capacity: int, memory: int) -> None:
        decoder = model.decoder
        assert isinstance(decoder, TransformerDecoder)
        self.decoder, self.beams, self.capacity = decoder, beams, capacity
        like = decoder.embedding.weight
        shape = (sentences, beams, capacity, memory)
        self.layers = [LayerSlots(layer, shape, like.detach()) for layer in decoder.layers]
        nothing = like.new_zeros(1, capacity, like.size(1))
        self.places = decoder.positions(nothing).detach()[0]  # T D: what is added at each position
        self.memory_seen = like.new_zeros(sentences, 1, 1, memory).detach()

    def admit(self, rows: Int[Tensor, "R"], memory: Memory) -> None:
        """Sentences take the places of others. What those have written is hidden by its position."""
        for layer in self.layers:
            layer.admit(rows, memory.hidden)
        missing = self.memory_seen.size(3) - memory.mask.size(1)
        hidden = F.pad(~memory.mask, (0, missing), value=True)
        seen = self.memory_seen.new_zeros(hidden.shape).masked_fill(hidden, -math.inf)
        self.memory_seen.index_copy_(0, rows, seen[:, None, None])

    def step(
        self,
        last: Int[Tensor, "B K"],
        position: Int[Tensor, "B"],
        ancestors: Int[Tensor, "B K C"],
        used: int,
    ) -> Float[Tensor, "B K D"]:
        """One further position for every beam; no sentence has more than `used` of them with this one."""
        x = self.decoder.embedding(last) + self.places[position][:, None]
        visible = self._visible(position, ancestors[:, :, :used])
        seen = torch.zeros_like(visible, dtype=x.dtype).masked_fill_(~visible, -math.inf)
        for layer in self.layers:
            x = layer.step(x, position, seen[:, None], self.memory_seen)
        return self.decoder.final_norm(x)

    def _visible(self, position: Int[Tensor, "B"], ancestors: Int[Tensor, "B K U"]) -> Bool[Tensor, "B K M"]:
        """Every beam sees one slot at each position up to its own."""
        times = torch.arange(ancestors.size(2), device=position.device)
        beams = torch.arange(self.beams, device=position.device)
        past = times <= position[:, None]  # B U
        own = ancestors[:, :, :, None] == beams  # B K U J
        return (own & past[:, None, :, None]).flatten(2)

"""A Transformer decoder whose caches never move, so that a step can be captured and replayed; it may copy.

A sentence has a slot for every position and beam. The key and value of beam k at position t are written into
slot (t, k) and stay there. When beams are reordered, nothing is moved: each beam has a list of ancestors, the
slot to read at every position.

    position   0   1   2   3
    place 0    a   c   e   g        g came from f, f from c, c from a:   ancestors 0 0 1 0, sees a c f g
    place 1    b   d   f   h        h came from e, e from d, d from a:   ancestors 0 1 0 1, sees a d e h

The beams of a sentence are queries to the same slots, so each slot is read once for all of them. Every
sentence has its own position, so a new one can take the place of one that is done.
"""

import math
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F

from dragoman.kernels import usable
from dragoman.models.base import EncoderDecoder, Memory
from dragoman.models.copying import CopyingEncoderDecoder
from dragoman.models.transformer import TransformerDecoder
from dragoman.nn.attention import CrossAttention, SelfAttention, attend
from dragoman.nn.attention_kernels import Projected, join_heads, split_heads
from dragoman.nn.copying import CopySource
from dragoman.nn.layer import DecoderLayer
from dragoman.nn.mask import lengths
from dragoman.nn.positions import NoRelation, Rotary, Rotation
from dragoman.shapes import Bool, Float, Int, Tensor


def fits(model: EncoderDecoder) -> bool:
    """Whether a model can use slots: the decoder is a Transformer that scores queries and keys alone. The
    encoder may be any, and it may copy."""
    decoder = model.decoder
    return (
        isinstance(decoder, TransformerDecoder)
        and isinstance(decoder.relations, NoRelation | Rotary)
        and all(isinstance(layer.self_attention, SelfAttention) for layer in decoder.layers)
    )


def past_bytes(model: EncoderDecoder) -> int:
    """Bytes of one position of one beam in all layers."""
    decoder = model.decoder
    assert isinstance(decoder, TransformerDecoder)
    own = [layer.self_attention for layer in decoder.layers]
    numbers = sum(a.num_heads * (a.head_dim + a.value_dim) for a in own if isinstance(a, SelfAttention))
    return numbers * decoder.embedding.weight.element_size()


def memory_bytes(model: EncoderDecoder, memory: int) -> int:
    """Bytes of one source of `memory` positions beside its keys and values."""
    return source_bytes(memory) if model.abilities.copies else 0


@dataclass
class StepView:
    """Inputs that all layers of a step share: where to write, and what is visible."""

    position: Int[Tensor, "B"]
    ancestors: Int[Tensor, "B K C"]
    lengths: Int[Tensor, "B"]
    """Lengths of the memories."""
    rotation: Rotation | None = None
    """Rotation of the queries and keys of this step, by sentence and beam."""
    past: Float[Tensor, "B 1 K M"] | None = None
    memory: Float[Tensor, "B 1 1 S"] | None = None
    """Zeros and −∞ to add to scores, where no kernel uses the fields above."""


class LayerSlots:
    """Keys and values of one layer, side by side: of the target so far, and of the memory."""

    def __init__(self, layer: DecoderLayer, shape: tuple[int, int, int, int], like: Tensor) -> None:
        sentences, beams, capacity, memory = shape
        own, cross = layer.self_attention, layer.cross_attention
        assert isinstance(own, SelfAttention)
        self.layer, self.own, self.cross, self.beams = layer, own, cross, beams
        self.widths = [own.num_heads * own.head_dim, own.num_heads * own.value_dim]
        self.past = like.new_zeros(sentences, capacity, beams, sum(self.widths))
        self.memory = like.new_zeros(sentences, memory, sum(self.widths))
        self.sentences = torch.arange(sentences, device=like.device)

    def admit(self, rows: Int[Tensor, "R"], memory: Float[Tensor, "R S D"]) -> None:
        self.memory[:, : memory.size(1)].index_copy_(0, rows, self.cross.key_value(memory))

    def step(self, x: Float[Tensor, "B K D"], view: StepView) -> Float[Tensor, "B K D"]:
        layer = self.layer
        asked = self.own.query_key_value(layer.self_residual.before(x))
        x = layer.self_residual.after(x, self.own.out(self._look_back(asked, view)))
        asked = self.cross.query(layer.cross_residual.before(x))
        x = layer.cross_residual.after(x, self.cross.out(self._look_at_memory(asked, view)))
        return layer.ff_residual.after(x, layer.feedforward(layer.ff_residual.before(x)))

    def _look_back(self, asked: Float[Tensor, "B K J"], view: StepView) -> Float[Tensor, "B K W"]:
        own = self.own
        flat = Projected(asked.flatten(0, 1)[None], None, own.sizes, view.rotation).rotated()[0]
        if view.past is None:
            from dragoman.kernels.slots import attend_past

            found = attend_past(flat, self.past, view.ancestors, view.position, *self._sizes(own))
            return found.unflatten(0, asked.shape[:2])
        query, written = flat.view_as(asked).split([self.widths[0], sum(self.widths)], dim=-1)
        self.past[self.sentences, view.position] = written
        slots = self.past[:, : view.past.size(3) // self.beams].flatten(1, 2)  # B M G, as it lies in memory
        return self._attend(own, query, slots, view.past)

    def _look_at_memory(self, asked: Float[Tensor, "B K J"], view: StepView) -> Float[Tensor, "B K W"]:
        if view.memory is None:
            from dragoman.kernels.slots import attend_memory

            flat = asked.flatten(0, 1)
            found = attend_memory(flat, self.memory, view.lengths, self.beams, *self._sizes(self.cross))
            return found.unflatten(0, asked.shape[:2])
        return self._attend(self.cross, asked, self.memory, view.memory)

    def _attend(
        self,
        owner: SelfAttention | CrossAttention,
        query: Float[Tensor, "B K J"],
        slots: Float[Tensor, "B M G"],
        seen: Float[Tensor, "B 1 #K M"],
    ) -> Float[Tensor, "B K W"]:
        heads = owner.num_heads
        key, value = (split_heads(part, heads) for part in slots.split(self.widths, dim=-1))
        return join_heads(
            attend(owner, split_heads(query, heads), key, value, bias=seen, scaled=owner.scaled)
        )

    def _sizes(self, owner: SelfAttention | CrossAttention) -> tuple[int, int, int, float]:
        scale = owner.head_dim**-0.5 if owner.scaled else 1.0
        return owner.num_heads, owner.head_dim, owner.value_dim, scale


class TransformerSlots:
    """Slots for `sentences` with `beams` each, of `capacity` positions, over memories of `memory`
    positions."""

    def __init__(self, model: EncoderDecoder, sentences: int, beams: int, capacity: int, memory: int) -> None:
        decoder = model.decoder
        assert isinstance(decoder, TransformerDecoder)
        self.decoder, self.beams = decoder, beams
        like = decoder.embedding.weight.detach()
        shape = (sentences, beams, capacity, memory)
        self.layers = [LayerSlots(layer, shape, like) for layer in decoder.layers]
        nothing = like.new_zeros(1, capacity, like.size(1))
        self.places = decoder.positions(nothing).detach()[0].contiguous()  # T D: what is added at each
        self.sinusoids = None  # T E: those that rotate, at each
        if isinstance(decoder.relations, Rotary):
            self.sinusoids = decoder.relations.sinusoids(0, capacity, like)
        self.lengths = torch.ones(sentences, dtype=torch.long, device=like.device)
        self.memory = torch.arange(memory, device=like.device)
        self.by_kernels = usable(like)
        """Kernels read only the slots in use."""
        self.model = model
        self.copying = None
        if isinstance(model, CopyingEncoderDecoder):
            self.copying = CopySlots(model, sentences, beams, memory)

    def admit(self, rows: Int[Tensor, "R"], memory: Memory) -> None:
        """Sentences replace others. Old slots are hidden, since positions begin at 0 again."""
        for layer in self.layers:
            layer.admit(rows, memory.hidden)
        self.lengths.index_copy_(0, rows, lengths(memory.mask))
        if self.copying is not None:
            self.copying.admit(rows, memory)

    def scores(self, hidden: Float[Tensor, "B K D"], last: Int[Tensor, "B K"]) -> Float[Tensor, "N V"]:
        """The logits of every beam after `step`."""
        if self.copying is not None:
            return self.copying.log_p(hidden, last)
        return self.model.project(hidden.flatten(0, 1))

    def step(
        self,
        last: Int[Tensor, "B K"],
        position: Int[Tensor, "B"],
        ancestors: Int[Tensor, "B K C"],
        used: int,
    ) -> Float[Tensor, "B K D"]:
        """Advance every beam by one position. No sentence has more than `used` positions afterwards."""
        view = StepView(position, ancestors, self.lengths, self._rotation(position))
        embedding = self.decoder.embedding
        if self.by_kernels:
            from dragoman.kernels.slots import embed

            x = embed(last, position, embedding.weight, self.places, embedding.scale, embedding.pad_id)
        else:
            x = embedding(last) + self.places[position][:, None]
            view.past = _added(self._visible(position, ancestors[:, :, :used]), x)[:, None]
            view.memory = _added(self.memory < self.lengths[:, None], x)[:, None, None]
        x = self.decoder.embedding_norm(x)
        for layer in self.layers:
            x = layer.step(x, view)
        return self.decoder.finish(x)

    def _rotation(self, position: Int[Tensor, "B"]) -> Rotation | None:
        relations = self.decoder.relations
        if self.sinusoids is None or not isinstance(relations, Rotary):
            return None
        return relations.at(position.repeat_interleave(self.beams), self.sinusoids).rotation

    def _visible(self, position: Int[Tensor, "B"], ancestors: Int[Tensor, "B K U"]) -> Bool[Tensor, "B K M"]:
        """Every beam sees one slot at each position up to the current one."""
        times = torch.arange(ancestors.size(2), device=position.device)
        beams = torch.arange(self.beams, device=position.device)
        past = times <= position[:, None]  # B U
        own = ancestors[:, :, :, None] == beams  # B K U J
        return (own & past[:, None, :, None]).flatten(2)


def _added(visible: Bool[Tensor, "*B"], like: Tensor) -> Float[Tensor, "*B"]:
    return torch.zeros_like(visible, dtype=like.dtype).masked_fill_(~visible, -math.inf)


def source_bytes(memory: int) -> int:
    """Bytes of one source of `memory` positions, nearly all for which of its columns are equal."""
    return 4 * (2 * memory) ** 2


class CopySlots:
    """Copy sources of up to `memory` positions for `sentences`, and runs for their `beams`."""

    def __init__(self, model: CopyingEncoderDecoder, sentences: int, beams: int, memory: int) -> None:
        self.head = model.copy
        like = self.head.key.weight.detach()
        ids = torch.full((sentences, memory), model.vocab.pad_id, device=like.device)
        nothing = like.new_zeros(sentences, memory, self.head.key.in_features)
        with torch.no_grad():
            source = self.head.read(nothing, ids, torch.zeros_like(ids, dtype=torch.bool))
        exact = torch.promote_types(like.dtype, torch.float32)
        # As numbers: a step multiplies by them.
        self.source = CopySource(
            source.keys, source.votes, source.pieces, source.copyable, source.same.to(exact), source.first
        )
        self.runs = torch.zeros(sentences, beams, memory, dtype=torch.long, device=like.device)

    def admit(self, rows: Int[Tensor, "R"], memory: Memory) -> None:
        """Sentences replace others."""
        assert memory.ids is not None, "`encode` has added them"
        room = self.runs.size(2) - memory.ids.size(1)
        hidden, ids, mask = (
            F.pad(memory.hidden, (0, 0, 0, room)),
            *(F.pad(x, (0, room)) for x in (memory.ids, memory.mask)),
        )
        new = self.head.read(hidden, ids, mask)
        for field in fields(CopySource):
            kept = getattr(self.source, field.name)
            kept.index_copy_(0, rows, getattr(new, field.name).to(kept.dtype))
        self.runs.index_fill_(0, rows, 0)

    def log_p(self, hidden: Float[Tensor, "B K D"], last: Int[Tensor, "B K"]) -> Float[Tensor, "N V"]:
        """The log-probabilities after the tokens `last` have been read."""
        self.runs.copy_(self.source.next_runs(last, self.runs))
        return self.head(hidden, self.source, self.runs).flatten(0, 1)

    def follow(self, parents: Int[Tensor, "B K"], token: Int[Tensor, "B K"]) -> None:  # noqa: ARG002
        """Every beam takes over the runs of its parent."""
        self.runs.copy_(self.runs.gather(1, parents[:, :, None].expand_as(self.runs)))

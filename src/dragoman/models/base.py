"""The contract of every sequence-to-sequence model, and the memory between its halves.

    encode(src_ids, src_mask) -> Memory                read the source
    decode(tgt_in, memory)    -> hidden  B T D         all target positions at once (teacher forcing)
    start(memory)             -> State                 before the first target position
    step(last_ids, state)     -> hidden  N D, State    one further position for every row
    project(hidden)           -> logits  ... V         separate, so that a loss can work in chunks

Training, search, scoring and probes use these five and never ask which model it is. A sequence of `step`s
gives the same as one `decode`; tests compare them for every model.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast, runtime_checkable

from torch import nn

from dragoman.config import check_counts
from dragoman.data.packed import PackedPairs
from dragoman.errors import UserError, shown
from dragoman.models.abilities import Abilities
from dragoman.nn.linear import Projection, TokenEmbedding, embedding_weight
from dragoman.nn.mask import lengths
from dragoman.nn.state import State
from dragoman.shapes import Bool, EncoderInput, Float, Int, Tensor

Tying = bool | Literal["inputs"]
"""Which embeddings share a matrix: none, all with the projection, or only source and target."""

_MOST_PIECES = 1 << 26


@dataclass(frozen=True)
class Vocab:
    """What a model needs to know about its tokenizers: sizes and ids of control pieces."""

    src_size: int
    tgt_size: int
    shared: bool
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self) -> None:
        check_counts(self, "src_size", "tgt_size", most=_MOST_PIECES)
        for name in ("pad_id", "bos_id", "eos_id"):
            if not 0 <= getattr(self, name) < min(self.src_size, self.tgt_size):
                raise UserError(f"{name}: expected the number of a piece, found {shown(getattr(self, name))}")
        if self.shared and self.src_size != self.tgt_size:
            raise UserError(
                f"vocab: a shared vocabulary has one size, not {self.src_size} and {self.tgt_size}"
            )


@dataclass(frozen=True)
class Memory:
    """The output of an encoder: one vector a source position, and which positions are tokens."""

    hidden: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    ended: Float[Tensor, "B D"] | None = None
    """The final state of a recurrent encoder."""
    values: Float[Tensor, "B S D"] | None = None
    """Attention values, where they differ from the keys (ConvS2S)."""
    ids: Int[Tensor, "B S"] | None = None
    """The pieces of the source, for models that copy them."""

    @property
    def summary(self) -> Float[Tensor, "B D"]:
        """One vector for the whole sentence: the final state, or the mean over positions."""
        if self.ended is not None:
            return self.ended
        total = self.hidden.masked_fill(~self.mask[:, :, None], 0.0).sum(dim=1)
        return total / lengths(self.mask)[:, None]


class Encoder(Protocol):
    def __call__(self, src_ids: EncoderInput, src_mask: Bool[Tensor, "B S"]) -> Memory: ...


class Decoder(Protocol):
    def __call__(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]: ...
    def start(self, memory: Memory) -> State: ...
    def step(self, last_ids: Int[Tensor, "N"], state: Any) -> tuple[Float[Tensor, "N D"], State]: ...


@runtime_checkable
class LayeredEncoder(Protocol):
    """An encoder that can return the output of every layer."""

    def read_layers(
        self, src_ids: EncoderInput, src_mask: Bool[Tensor, "B S"]
    ) -> list[Float[Tensor, "B S D"]]: ...


@runtime_checkable
class Reader(Protocol):
    """A network with a vector for every piece that it reads, for heads, embeddings and probes."""

    def read(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]: ...

    def read_layers(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> list[Float[Tensor, "B T D"]]:
        """The vectors of every layer, from the embeddings on; the last is the result of `read`."""
        ...


NOTHING_MORE = Abilities()
"""The contract alone."""


class EncoderDecoder(nn.Module):
    """Any encoder with any decoder; `Memory` is all they share.

    Without a projection, the decoder itself gives scores over the vocabulary.
    """

    def __init__(
        self,
        vocab: Vocab,
        encoder: Encoder,
        decoder: Decoder,
        projection: Projection | None,
        abilities: Abilities = NOTHING_MORE,
    ) -> None:
        super().__init__()
        self.vocab, self.abilities = vocab, abilities
        self.encoder = encoder
        self.decoder = decoder
        self.projection = projection

    def encode(self, src_ids: EncoderInput, src_mask: Bool[Tensor, "B S"]) -> Memory:
        return self.encoder(src_ids, src_mask)

    def decode(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        return self.decoder(tgt_in, memory)

    def start(self, memory: Memory) -> State:
        return self.decoder.start(memory)

    def step(self, last_ids: Int[Tensor, "N"], state: State) -> tuple[Float[Tensor, "N D"], State]:
        return self.decoder.step(last_ids, state)

    def project(self, hidden: Float[Tensor, "*B D"]) -> Float[Tensor, "*B V"]:
        return hidden if self.projection is None else self.projection(hidden)

    def project_among(
        self, pieces: Int[Tensor, "C"]
    ) -> Callable[[Float[Tensor, "N D"]], Float[Tensor, "N C"]]:
        """`project` for some pieces alone, as a function for many steps."""
        if self.projection is None:
            return lambda hidden: hidden[..., pieces]
        return self.projection.among(pieces)

    def read(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """Read text as a `Reader`: the memory of a source, or the vectors of a decoder that reads the source
        itself."""
        return self.read_layers(ids, mask, segments)[-1]

    def read_layers(
        self,
        ids: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        segments: Int[Tensor, "B T"],  # noqa: ARG002 (texts are told apart by the marks between them)
    ) -> list[Float[Tensor, "B T D"]]:
        """If an encoder cannot return its layers, only its output."""
        if self.abilities.reads_in_decoder:
            return cast(Any, self.decoder).read_memory(self.encode(ids, mask))
        if isinstance(self.encoder, LayeredEncoder):
            return self.encoder.read_layers(ids, mask)
        return [self.encode(ids, mask).hidden]

    def packed(self, batch: PackedPairs) -> Float[Tensor, "1 N D"]:
        """`forward` for a packed batch: the same numbers, position after position, without the padding."""
        assert self.abilities.packs, "only some models take batches without padding"
        encoder, decoder = cast(Any, self.encoder), cast(Any, self.decoder)
        memory = encoder.packed(batch.src_ids, batch.src)
        return decoder.packed(batch.tgt_in, batch.tgt, memory, batch.src)

    def forward(
        self, src_ids: EncoderInput, src_mask: Bool[Tensor, "B S"], tgt_in: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """Teacher forcing from end to end, without the projection."""
        return self.decode(tgt_in, self.encode(src_ids, src_mask))


def source_attentions(model: nn.Module) -> dict[str, nn.Module]:
    """The attentions of a model to its source by name, from the first layer to the last."""
    return {name: m for name, m in model.named_modules() if getattr(m, "looks_at_memory", False)}


class HalfConfig(Protocol):
    """The part of an encoder or decoder configuration that concerns its embedding."""

    @property
    def model_dim(self) -> int: ...
    @property
    def scale_embeddings(self) -> bool: ...
    @property
    def tie_embeddings(self) -> Tying: ...
    @property
    def output_bias(self) -> bool: ...
    @property
    def abilities(self) -> Abilities: ...


def joined_abilities(encoder: HalfConfig, decoder: HalfConfig) -> Abilities:
    """Abilities of an encoder-decoder: those of the decoder, packing if both support it, and vectors if the
    encoder reads them."""
    packs = encoder.abilities.packs and decoder.abilities.packs
    return replace(decoder.abilities, packs=packs, vectors=encoder.abilities.vectors)


def join(
    vocab: Vocab,
    encoder: Callable[[Any, TokenEmbedding], Encoder],
    encoder_config: HalfConfig,
    decoder: Callable[[Any, TokenEmbedding, int], Decoder],
    decoder_config: HalfConfig,
) -> EncoderDecoder:
    """An encoder and a decoder with their embeddings and the output projection. If tied, target embedding and
    projection share a matrix, and with a joint vocabulary and equal widths the source embedding too (Press &
    Wolf 2017). With `inputs` the projection has its own. If the projection divides by √D and embeddings are
    not scaled, embeddings begin with unit variance, as in T5: smaller ones would vanish beside the layers'
    output.
    """
    here, there = encoder_config, decoder_config
    src = TokenEmbedding(vocab.src_size, here.model_dim, vocab.pad_id, here.scale_embeddings)
    tgt = TokenEmbedding(vocab.tgt_size, there.model_dim, vocab.pad_id, there.scale_embeddings)
    if vocab.shared and here.tie_embeddings and there.tie_embeddings and here.model_dim == there.model_dim:
        src.weight = tgt.weight
    if getattr(there, "scale_output", False) and not there.scale_embeddings:
        for weight in dict.fromkeys([src.weight, tgt.weight]):
            nn.init.normal_(weight)
    tied = there.tie_embeddings is True
    weight = tgt.weight if tied else embedding_weight(vocab.tgt_size, there.model_dim)
    silent = [
        number
        for name, number in (("silent_pad", vocab.pad_id), ("silent_bos", vocab.bos_id))
        if getattr(there, name, False)
    ]
    projection = Projection(weight, there.output_bias, silent)
    halves = encoder(here, src), decoder(there, tgt, here.model_dim)
    abilities = joined_abilities(here, there)
    if abilities.copies:
        from dragoman.models.copying import CopyingEncoderDecoder  # it is one of these

        widths = there.model_dim, here.model_dim
        return CopyingEncoderDecoder(vocab, *halves, projection, widths, abilities)
    return EncoderDecoder(vocab, *halves, projection, abilities)


@dataclass(frozen=True)
class AlignmentGuide:
    """Which head learns to align, and how much that counts (Garg et al. 2019)."""

    weight: float = 0.0
    """0 is off."""
    layer: int | None = None
    """Index of the cross-attention: 0 the first, −1 the last; None the last but one, or the only one."""
    head: int = 0
    step: Literal["read", "predict"] = "read"
    """Which step aligns a word: the one that reads it, or the one that predicts it."""

    def __post_init__(self) -> None:
        if not 0 <= self.weight < math.inf:
            raise UserError(f"weight: expected a number of 0 or more, found {self.weight}")
        if self.head < 0:
            raise UserError(f"head: expected a whole number of at least 0, found {self.head}")

    def find(self, model: nn.Module) -> tuple[str, nn.Module]:
        """The name of the attention in a model, and the attention."""
        found = list(source_attentions(model).items())
        where = "objective.guided_alignment"
        if not found:
            raise UserError(f"{where}.weight: this model has no attention to its source; set it to 0")
        layer = max(-2, -len(found)) if self.layer is None else self.layer
        if not -len(found) <= layer < len(found):
            raise UserError(
                f"{where}.layer: the model has {len(found)} attentions to its source, found {layer}"
            )
        name, module = found[layer]
        heads = getattr(module, "num_heads", 1)
        if self.head >= heads:
            raise UserError(f"{where}.head: {name} has {heads} heads, counted from 0, found {self.head}")
        return name, module

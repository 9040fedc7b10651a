"""The contract that every sequence-to-sequence model keeps, and the memory that joins its halves.

    encode(src_ids, src_mask) -> Memory                read the source
    decode(tgt_in, memory)    -> hidden  B T D         all target positions at once (teacher forcing)
    start(memory)             -> State                 before the first target position
    step(last_ids, state)     -> hidden  N D, State    one further position for every row
    project(hidden)           -> logits  ... V         apart, so that a loss can go in chunks

Training, search, scoring and looking inside use these five and never ask which model it is. `step` after
`step` gives what `decode` gives at once; a test holds every model to it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol, cast, runtime_checkable

from torch import nn

from dragoman.config import check_counts
from dragoman.data.packed import PackedPairs
from dragoman.errors import UserError, shown
from dragoman.models.abilities import Abilities
from dragoman.nn.embedding import Projection, TokenEmbedding
from dragoman.nn.init import embedding_weight
from dragoman.nn.mask import lengths
from dragoman.nn.state import State
from dragoman.shapes import Bool, Float, Int, Tensor

Tying = bool | Literal["inputs"]
"""Which embeddings are one matrix: none, all with the projection, or source and target alone."""

_MOST_PIECES = 1 << 26


@dataclass(frozen=True)
class Vocab:
    """What a model has to know of its tokenizers: sizes and the ids of the control pieces."""

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
    """What the encoder read: one vector a source position, and which positions hold tokens."""

    hidden: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B S"]
    ended: Float[Tensor, "B D"] | None = None
    """Where a recurrent encoder ended, if it is one."""
    values: Float[Tensor, "B S D"] | None = None
    """What an attention should sum, where that is not what it compares: ConvS2S."""

    @property
    def summary(self) -> Float[Tensor, "B D"]:
        """One vector for the whole sentence: the encoder's own, or the mean of its positions."""
        if self.ended is not None:
            return self.ended
        total = self.hidden.masked_fill(~self.mask[:, :, None], 0.0).sum(dim=1)
        return total / lengths(self.mask)[:, None]


class Encoder(Protocol):
    def __call__(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory: ...


class Decoder(Protocol):
    def __call__(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]: ...
    def start(self, memory: Memory) -> State: ...
    def step(self, last_ids: Int[Tensor, "N"], state: Any) -> tuple[Float[Tensor, "N D"], State]: ...


@runtime_checkable
class LayeredEncoder(Protocol):
    """An encoder that can show what is between its embeddings and its memory."""

    def read_layers(
        self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]
    ) -> list[Float[Tensor, "B S D"]]: ...


@runtime_checkable
class Reader(Protocol):
    """A network that has a vector for every piece it reads: what a head, an embedding or a probe asks."""

    def read(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]: ...

    def read_layers(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> list[Float[Tensor, "B T D"]]:
        """The vectors of every layer, from the embeddings to the last; the last is what `read` gives."""
        ...


NOTHING_MORE = Abilities()
"""The contract alone."""


class EncoderDecoder(nn.Module):
    """Any encoder with any decoder: they meet in `Memory` alone.

    Without a projection, what the decoder gives are the scores over the vocabulary themselves.
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

    def encode(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
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
        """`project` for some pieces alone, as a function that may be called for many steps."""
        if self.projection is None:
            return lambda hidden: hidden[..., pieces]
        return self.projection.among(pieces)

    def read(
        self, ids: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"], segments: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """As a `Reader`: the memory of a source, or what a decoder has that reads the source itself."""
        return self.read_layers(ids, mask, segments)[-1]

    def read_layers(
        self,
        ids: Int[Tensor, "B T"],
        mask: Bool[Tensor, "B T"],
        segments: Int[Tensor, "B T"],  # noqa: ARG002 (texts are told apart by the marks between them)
    ) -> list[Float[Tensor, "B T D"]]:
        """Where an encoder does not show its layers, only what comes out of it."""
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
        self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"], tgt_in: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T D"]:
        """Teacher forcing from end to end; the projection is left to the loss."""
        return self.decode(tgt_in, self.encode(src_ids, src_mask))


def source_attentions(model: nn.Module) -> dict[str, nn.Module]:
    """The attentions of a model to its source by their names, from the first layer to the last."""
    return {name: m for name, m in model.named_modules() if getattr(m, "looks_at_memory", False)}


class HalfConfig(Protocol):
    """What every half of a model has to say about its embedding."""

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
    """Of an encoder and a decoder together: what the decoder can, and packing where both can."""
    packs = encoder.abilities.packs and decoder.abilities.packs
    return replace(decoder.abilities, packs=packs)


def join(
    vocab: Vocab,
    encoder: Callable[[Any, TokenEmbedding], Encoder],
    encoder_config: HalfConfig,
    decoder: Callable[[Any, TokenEmbedding, int], Decoder],
    decoder_config: HalfConfig,
) -> EncoderDecoder:
    """An encoder and a decoder with their embeddings and the output projection. Tied, one matrix serves
    target and projection and, with a joint vocabulary and one width, the source too (Press & Wolf 2017);
    with `inputs` the projection has a matrix of its own. Where the projection divides by √D instead of the
    embedding multiplying with it, embeddings begin with unit variance, as T5's do: what the layers add would
    drown them."""
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
    return EncoderDecoder(vocab, *halves, projection, joined_abilities(here, there))

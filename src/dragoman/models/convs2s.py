"""ConvS2S: convolutions on both sides, and attention at every layer of the decoder (Gehring et al. 2017).

    source ─ embed ─ + positions ─▶ e ─ in ─ [ convolution ]×L ─ out ─▶ z         memory: z; values: z + e

    target ─ embed ─ + positions ─▶ g ─ in ─ [ causal convolution ─ h ─┬──────────── + ]×L ─ out ─▶ hidden
                                                                       └─ attention ─┘
    attention at every layer (section 3.3):
        d = W h + b + g        the query
        a = softmax over j of score(d, z_j)
        c = √m Σ_j a_j (z_j + e_j)             m source positions, m √(1/m) = √m (section 3.4)

`in` and `out` are linear maps between the width of embeddings and memory (`model_dim`) and that of the
convolutions (`conv_dim`). With `dilation_base` b the inputs of layer l are b^l apart, so the receptive field
grows as a power of b (ByteNet, Kalchbrenner et al. 2016).

In training the gradient of the encoder is divided by the number of attentions; that of the source embedding
inside the values is not (section 3.4). Weights are initialised as in section 3.5, except token embeddings,
whose standard deviation is 1/√D as in every model here, not 0.1. The sums d, z + e and h + c are not scaled,
as in the paper. With `weight_norm` the length of each row of weights is learnt apart from its direction, in
all layers but the embeddings and the parts of the attention score (section 3.5). Not implemented: widths that
change from layer to layer.

The convolution (section 3.2), for whole sequences and step by step:

    x ─┬─ dropout ─ the k inputs around or before a position, side by side ─ W · + b ─ GLU ─ + ─ ·√½ ─▶
       └────────────────────────────────────────────────────────────────────────────────────┘

    GLU([A; B]) = A ⊙ σ(B)                        Dauphin et al. 2017

A causal block sees a position and those before it. A block that is not causal sees equally far to both sides.
With dilation r the inputs are r positions apart (Kalchbrenner et al. 2016, ByteNet). Beyond the ends of a
sequence there are zeros.

The convolution is one matrix product over gathered inputs, so one position and many use the same code.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

import torch
import torch.nn.functional as F
from torch import nn

from dragoman.config import check_shares, check_sizes
from dragoman.errors import UserError
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder, Memory, Vocab, join
from dragoman.nn.dropout import dropout
from dragoman.nn.linear import Linear, TokenEmbedding, normal_linear
from dragoman.nn.mask import lengths
from dragoman.nn.positions import LearnedPositions
from dragoman.nn.scores import PreparedMemory, ScoredAttention, check_score, make_score
from dragoman.nn.state import InputWindow, rows_of
from dragoman.nn.weight_norm import normed_linear
from dragoman.shapes import Bool, Float, Int, Tensor

HALVE_VARIANCE = math.sqrt(0.5)  # of a sum of two terms (Gehring et al. 2017, section 3.4)
_LONGEST_DILATION = 1024


@dataclass(frozen=True)
class ConvS2SConfig:
    num_layers: int = 4
    num_decoder_layers: int | None = None  # as many as in the encoder
    model_dim: int = 256  # of embeddings and memory
    conv_dim: int | None = None  # of the convolutions; model_dim
    kernel_width: int = 3
    decoder_kernel_width: int | None = None  # the same as kernel_width
    dilation_base: int = 1  # 1 is none
    dilation_cycle: int = 5  # layers after which dilation begins again at 1
    attention: str = "dot"  # a name of `nn/scores.py`
    attention_dim: int | None = None  # inside concat and additive; model_dim
    max_positions: int = 512
    dropout: float = 0.1
    scale_embeddings: bool = False
    tie_embeddings: bool = True  # one matrix for projection, target and, with a joint vocabulary, source
    output_bias: bool = True
    weight_norm: bool = False  # of the convolutions and the linear layers around them
    copy: bool = False  # pieces of the source can be copied (`nn/copying.py`)

    def __post_init__(self) -> None:
        check_sizes(
            self,
            depths=["num_layers", "num_decoder_layers", "dilation_cycle"],
            widths=["model_dim", "conv_dim", "kernel_width", "decoder_kernel_width", "attention_dim"],
            places=["max_positions", "dilation_base"],
        )
        check_shares(self, "dropout")
        if self.kernel_width % 2 == 0:
            raise UserError(
                f"kernel_width: the encoder looks equally far to both sides, which takes an odd width, "
                f"found {self.kernel_width}; decoder_kernel_width alone may be even"
            )
        check_score(self.attention, self.attention_dim)
        deepest = max(self.num_layers, self.num_decoder_layers or 1)
        if max(self.dilations(deepest)) > _LONGEST_DILATION:
            raise UserError(
                f"dilation_base: {self.dilation_base} grows beyond {_LONGEST_DILATION} positions in "
                f"{min(deepest, self.dilation_cycle)} layers; choose less, or a shorter dilation_cycle"
            )

    @property
    def abilities(self) -> Abilities:
        return Abilities(copies=self.copy, max_length=self.max_positions)

    @property
    def linear(self) -> Callable[..., Linear]:
        """What makes the linear layers."""
        return normed_linear if self.weight_norm else normal_linear

    def dilations(self, num_layers: int) -> list[int]:
        """The dilation of each layer."""
        return [self.dilation_base ** (layer % self.dilation_cycle) for layer in range(num_layers)]


def convs2s(config: ConvS2SConfig, vocab: Vocab) -> EncoderDecoder:
    """Assemble the whole model."""
    return join(vocab, ConvEncoder, config, ConvDecoder, config)


class ConvolutionBlock(nn.Module):
    """Gated convolution of `kernel_width` inputs in a residual connection."""

    def __init__(
        self,
        dim: int,
        kernel_width: int,
        dilation: int = 1,
        causal: bool = False,
        dropout: float = 0.0,
        linear: Callable[..., Linear] = normal_linear,
    ) -> None:
        super().__init__()
        self.dim, self.kernel_width, self.dilation = dim, kernel_width, dilation
        self.reach = (kernel_width - 1) * dilation  # from the first input to the last
        self.left = self.reach if causal else self.reach // 2
        self.dropout = dropout
        self.gates = linear(kernel_width * dim, 2 * dim, gain=4 * (1 - dropout))

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """All positions. The caller sets padding to zero."""
        length = x.size(1)
        padded = F.pad(self._drop(x), (0, 0, self.left, self.reach - self.left))
        inputs = [padded[:, i * self.dilation :][:, :length] for i in range(self.kernel_width)]
        return self._gate(x, torch.cat(inputs, dim=-1))

    def start(self, rows: int, like: Tensor) -> InputWindow:
        return InputWindow.empty(rows, self.reach, self.dim, like)

    def step(
        self, x: Float[Tensor, "N 1 D"], window: InputWindow, position: int
    ) -> tuple[Float[Tensor, "N 1 D"], InputWindow]:
        """Advance a causal block by one position; `position` counts from 0."""
        kept = self._drop(x)
        inputs = torch.cat([*window.every(self.dilation, position), kept], dim=-1)  # N 1 kD
        return self._gate(x, inputs), window.put(kept, position)

    def _drop(self, x: Float[Tensor, "N T D"]) -> Float[Tensor, "N T D"]:
        return dropout(x, self.dropout, self.training)

    def _gate(self, x: Float[Tensor, "N T D"], inputs: Float[Tensor, "N T kD"]) -> Float[Tensor, "N T D"]:
        return (x + F.glu(self.gates(inputs), dim=-1)) * HALVE_VARIANCE


class ConvEncoder(nn.Module):
    def __init__(self, config: ConvS2SConfig, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = LearnedPositions(config.max_positions, config.model_dim)
        width = config.conv_dim or config.model_dim
        self.into = config.linear(config.model_dim, width, gain=1 - config.dropout)
        layers = nn.ModuleList(
            ConvolutionBlock(
                width, config.kernel_width, dilation, dropout=config.dropout, linear=config.linear
            )
            for dilation in config.dilations(config.num_layers)
        )
        self.layers = cast(Sequence[ConvolutionBlock], layers)
        self.out = config.linear(width, config.model_dim)
        self.dropout = config.dropout

    def forward(self, src_ids: Int[Tensor, "B S"], src_mask: Bool[Tensor, "B S"]) -> Memory:
        embedded = dropout(self.positions(self.embedding(src_ids)), self.dropout, self.training)
        x = self.into(embedded)
        padded = ~src_mask[:, :, None]
        for layer in self.layers:
            x = layer(x.masked_fill(padded, 0.0))
        hidden = self.out(x)
        return Memory(hidden, src_mask, values=hidden + embedded)


class ConvDecoderLayer(nn.Module):
    """A causal convolution, then attention: h + c."""

    def __init__(self, config: ConvS2SConfig, dilation: int, memory_dim: int) -> None:
        super().__init__()
        dim, width = config.model_dim, config.conv_dim or config.model_dim
        kernel_width = config.decoder_kernel_width or config.kernel_width
        self.convolution = ConvolutionBlock(
            width, kernel_width, dilation, True, config.dropout, config.linear
        )
        self.query = config.linear(width, dim)
        self.attention = ScoredAttention(
            make_score(config.attention, dim, memory_dim, config.attention_dim or dim, config.max_positions)
        )
        self.context = nn.Identity() if memory_dim == width else config.linear(memory_dim, width)

    def forward(
        self, x: Float[Tensor, "B T C"], embedded: Float[Tensor, "B T D"], memory: PreparedMemory
    ) -> Float[Tensor, "B T C"]:
        return self._look(self.convolution(x), embedded, memory)

    def step(
        self,
        x: Float[Tensor, "N 1 C"],
        embedded: Float[Tensor, "N 1 D"],
        memory: PreparedMemory,
        window: InputWindow,
        position: int,
    ) -> tuple[Float[Tensor, "N 1 C"], InputWindow]:
        h, window = self.convolution.step(x, window, position)
        return self._look(h, embedded, memory), window

    def _look(
        self, h: Float[Tensor, "N T C"], embedded: Float[Tensor, "N T D"], memory: PreparedMemory
    ) -> Float[Tensor, "N T C"]:
        # The beams of a sentence are queries to its one memory: B K·T D, not N T D.
        query = (self.query(h) + embedded).reshape(len(memory.visible), -1, embedded.size(-1))
        return h + self.context(self.attention(query, memory)).reshape(h.shape)


class ConvDecoder(nn.Module):
    def __init__(self, config: ConvS2SConfig, embedding: TokenEmbedding, memory_dim: int) -> None:
        super().__init__()
        self.embedding = embedding
        self.positions = LearnedPositions(config.max_positions, config.model_dim)
        width = config.conv_dim or config.model_dim
        self.into = config.linear(config.model_dim, width, gain=1 - config.dropout)
        layers = nn.ModuleList(
            ConvDecoderLayer(config, dilation, memory_dim)
            for dilation in config.dilations(config.num_decoder_layers or config.num_layers)
        )
        self.layers = cast(Sequence[ConvDecoderLayer], layers)
        self.out = config.linear(width, config.model_dim)
        self.dropout = config.dropout

    def forward(self, tgt_in: Int[Tensor, "B T"], memory: Memory) -> Float[Tensor, "B T D"]:
        embedded = self._embed(tgt_in)
        x = self.into(embedded)
        for layer, prepared in zip(self.layers, self._prepare(memory), strict=True):
            x = layer(x, embedded, prepared)
        return dropout(self.out(x), self.dropout, self.training)

    def start(self, memory: Memory) -> "ConvState":
        rows = len(memory.hidden)
        windows = tuple(layer.convolution.start(rows, like=memory.hidden) for layer in self.layers)
        return ConvState(windows, self._prepare(memory), beams=1, position=0)

    def step(
        self, last_ids: Int[Tensor, "N"], state: "ConvState"
    ) -> tuple[Float[Tensor, "N D"], "ConvState"]:
        embedded = self._embed(last_ids[:, None], state.position)  # N 1 D
        x = self.into(embedded)
        windows = []
        for layer, memory, window in zip(self.layers, state.memory, state.windows, strict=True):
            x, window = layer.step(x, embedded, memory, window, state.position)
            windows.append(window)
        hidden = dropout(self.out(x), self.dropout, self.training)[:, 0]
        return hidden, replace(state, windows=tuple(windows), position=state.position + 1)

    def _embed(self, ids: Int[Tensor, "N T"], start: int = 0) -> Float[Tensor, "N T D"]:
        return dropout(self.positions(self.embedding(ids), start), self.dropout, self.training)

    def _prepare(self, memory: Memory) -> tuple[PreparedMemory, ...]:
        """Keys and values for the attention of every layer. The values are shared, and already scaled by
        √m."""
        hidden = memory.hidden
        keys, values = hidden, hidden if memory.values is None else memory.values
        if self.training:
            # Zero, except for its gradient, which leaves the encoder 1/L of what L attentions send back.
            fewer = (1 / len(self.layers) - 1) * (hidden - hidden.detach())
            keys, values = keys + fewer, values + fewer
        values = values * lengths(memory.mask).to(values.dtype).sqrt()[:, None, None]
        return tuple(layer.attention.prepare(keys, memory.mask, values) for layer in self.layers)


@dataclass(frozen=True)
class ConvState:
    """The memory has one row per sentence, shared by its beams; the windows have one row per beam."""

    windows: tuple[InputWindow, ...]  # one a layer
    memory: tuple[PreparedMemory, ...]  # one a layer
    beams: int
    position: int

    def expand(self, k: int) -> Self:
        inputs = self.windows[0].inputs
        rows = torch.arange(len(inputs), device=inputs.device)
        return replace(self._rows(rows.repeat_interleave(k)), beams=self.beams * k)

    def select(self, order: Int[Tensor, "N"]) -> Self:
        return self._rows(order)

    def keep(self, sentences: Int[Tensor, "A"]) -> Self:
        memory = tuple(layer.keep(sentences) for layer in self.memory)
        return replace(self._rows(rows_of(sentences, self.beams)), memory=memory)

    def _rows(self, rows: Int[Tensor, "R"]) -> Self:
        return replace(self, windows=tuple(window.rows(rows) for window in self.windows))

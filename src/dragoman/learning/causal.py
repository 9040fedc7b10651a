"""Causal language models: predict every token of a text from those before it.

GPT (Radford et al. 2018), and ULMFiT (Howard & Ruder 2018) as Merity et al. 2018 train their AWD-LSTM: with
penalties on the output of its last layer, and with a state that is carried from block to block.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from dragoman.data.batch import PairBatch, collate, pad
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import PairStore, Prepared
from dragoman.errors import UserError
from dragoman.learning.base import TRACKS
from dragoman.learning.cross_entropy import Penalised, decoder_objective
from dragoman.learning.loss import Loss, Objective
from dragoman.learning.text import FromText
from dragoman.learning.validation import DecoderValidator
from dragoman.models import Network
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder
from dragoman.models.task_heads import TaskNetwork
from dragoman.nn.recurrent import RecurrentState
from dragoman.runs.config import Purpose, RunConfig
from dragoman.shapes import Float, Tensor
from dragoman.text.tokenizer import BOS_ID, PAD_ID, Tokenizer

_NO_SOURCE = np.zeros(0, dtype=np.int64)


class Causal(FromText):
    name = "causal"
    purpose: Purpose = "generate"
    next_step = "generate text with:  dragoman generate {run}"
    reads_source = False
    counts = True

    def preset(self, gpu: bool) -> str:
        return "gpt-small" if gpu else "gpt-tiny"

    def check(self, config: RunConfig, abilities: Abilities) -> None:
        super().check(config, abilities)
        if config.data.text and config.objective.carry:
            _check_carry(config, abilities)

    def text_examples(
        self,
        config: RunConfig,
        store: PairStore,
        tokenizer: Tokenizer,  # noqa: ARG002
    ) -> "Stream | TextLines":
        if config.counted:
            return TextLines(store)
        return Stream(self.blocks(config, store), config.objective.carry)

    def objective(self, config: RunConfig, model: EncoderDecoder, processes: int) -> Objective:
        settings = config.objective
        penalties = settings.activation_penalty, settings.temporal_penalty, settings.label_smoothing
        if settings.carry and processes > 1:
            raise UserError(
                "objective.carry: the batches of a text that is read in order cannot be dealt to several "
                "processes; start one, or set it to false"
            )
        return CarriedCausal(*penalties) if settings.carry else decoder_objective(settings, model)

    def validator(
        self, config: RunConfig, prepared: Prepared, device: torch.device, tracks: int = TRACKS
    ) -> DecoderValidator:
        carried = CarriedState if config.objective.carry else None
        return DecoderValidator(self, config, prepared, device, carried=carried, tracks=tracks, sized=True)

    def one_shape(self, config: RunConfig, model: Network | TaskNetwork) -> bool:
        plain = not (config.objective.penalised or config.objective.r_drop)
        return plain and model.abilities.graph_capture


def _check_carry(config: RunConfig, abilities: Abilities) -> None:
    if not abilities.carries_state:
        raise UserError(
            "objective.carry: only model.kind ulmfit has a state that can go on, found "
            f"{config.model['kind']}; set it to false"
        )
    corpora = config.data.train
    if len(corpora) > 1 or any(corpus.weight != 1 for corpus in corpora):
        raise UserError(
            f"objective.carry: one text of weight 1 is read in its order, and data.train has {len(corpora)} "
            "corpora; write them into one file, or set it to false"
        )
    if config.train.batch_tokens < config.objective.block:
        raise UserError(
            f"train.batch_tokens: a batch of {config.train.batch_tokens} has no room for one block of "
            f"objective.block, which is {config.objective.block}; raise it"
        )


class Stream:
    """Blocks of text for a causal language model: the source is the one token before a block.

    `carried`: batches come from `data/sampler.py`; the state is reset if they contain the first block.
    """

    def __init__(self, blocks: Blocks, carried: bool = False) -> None:
        self.carried = carried
        self.blocks, self.corpora, self.origin = blocks, blocks.corpora, blocks.origin
        self.src_lengths = np.zeros(len(blocks), dtype=np.int32)  # its one token counts as the </s>
        self.tgt_lengths = blocks.lengths - 1  # as for a pair, without its </s>

    def __len__(self) -> int:
        return len(self.blocks)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:  # noqa: ARG002
        ids, mask = pad([self.blocks[number] for number in numbers.tolist()])
        tgt_out = ids[:, 2:]
        asked = mask[:, 2:] & (tgt_out != BOS_ID)  # <s> always follows </s>
        return PairBatch(
            src_ids=ids[:, :1].contiguous(),
            src_mask=torch.ones(len(ids), 1, dtype=torch.bool),
            tgt_in=ids[:, 1:-1].contiguous(),
            tgt_out=tgt_out.masked_fill(~asked, PAD_ID),
            tgt_mask=asked,
            num_tokens=int(asked.sum()),
            goes_on=self.carried and int(numbers[0]) > 0,
        )


class TextLines:
    """Lines of a text for a model that counts, each by itself: what it has seen begins with the line, as in
    generation. The source is empty."""

    def __init__(self, store: PairStore) -> None:
        self.store, self.corpora, self.origin = store, store.corpora, store.origin
        self.src_lengths = np.zeros(len(store), dtype=np.int32)
        self.tgt_lengths = store.tgt_lengths

    def __len__(self) -> int:
        return len(self.store)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:  # noqa: ARG002
        return collate([(_NO_SOURCE, self.store.tgt(number)) for number in numbers.tolist()])


class CarriedState:
    """The recurrent state at the end of the last batch. Text is read batch by batch, in order; gradients stop
    at the border (truncated back-propagation through time)."""

    def __init__(self) -> None:
        self.pasts: tuple[RecurrentState, ...] | None = None

    def read(
        self, model: EncoderDecoder, batch: PairBatch
    ) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """The output of the last layer, before and after dropout. The source of a continued block is the last
        token that was read, so it is skipped."""
        decoder: Any = model.decoder
        memory = model.encode(batch.src_ids, batch.src_mask)
        whole, left, pasts = decoder.carry(batch.tgt_in, memory, self.pasts if batch.goes_on else None)
        self.pasts = tuple(past.cut() for past in pasts)
        return whole, left

    def tensors(self) -> dict[str, Tensor]:
        """The state by name, for a checkpoint; empty before the first batch."""
        return {
            f"{number}.{name}": tensor
            for number, past in enumerate(self.pasts or ())
            for name, tensor in (("hidden", past.hidden), ("cell", past.cell))
            if tensor is not None
        }

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        hidden = [name.partition(".")[0] for name in tensors if name.endswith(".hidden")]
        self.pasts = tuple(
            RecurrentState(tensors[f"{number}.hidden"], tensors.get(f"{number}.cell"))
            for number in sorted(hidden, key=int)
        )


class CarriedCausal(Objective):
    """The causal objective with a state that is carried from block to block (Merity et al. 2018, section
    4.1)."""

    def __init__(self, activation: float, temporal: float, label_smoothing: float = 0.0) -> None:
        self.carried = self.state = CarriedState()
        self.causal = Penalised(activation, temporal, label_smoothing)

    def __call__(self, model: EncoderDecoder, batch: PairBatch, update: int = 0) -> Loss:  # noqa: ARG002
        return self.causal.penalised(model, *self.state.read(model, batch), batch)

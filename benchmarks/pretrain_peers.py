"""Hugging Face's language models as peers in pre-training: their losses, on the same questions."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common import mean_stepper
from dragoman.data.batch import PairBatch, TextBatch
from dragoman.text.tokenizer import PAD_ID
from on_gpu import DEVICE, HALF

NOT_ASKED = -100  # a label that these losses leave out


@dataclass(frozen=True)
class Labelled:
    """A batch as Hugging Face takes it."""

    ids: Tensor
    labels: Tensor

    @classmethod
    def of(cls, batch: PairBatch | TextBatch) -> "Labelled":
        """The same questions as those of a batch of ours."""
        if isinstance(batch, PairBatch):
            ids = torch.cat([batch.src_ids, batch.tgt_in], dim=1)
            # What a place is asked for stands one to the right of it there; the last of ours would be lost.
            asked = batch.tgt_out.masked_fill(batch.tgt_out == PAD_ID, NOT_ASKED)
            return cls(ids, F.pad(asked[:, :-1], (2, 0), value=NOT_ASKED))
        labels = torch.full_like(batch.ids, NOT_ASKED).flatten()
        return cls(batch.ids, labels.index_put((batch.asked,), batch.targets).view_as(batch.ids))

    @classmethod
    def random(cls, shape: tuple[int, int], vocab_size: int, share: float) -> "Labelled":
        generator = torch.Generator().manual_seed(1)
        ids = torch.randint(5, vocab_size, shape, generator=generator)
        asked = torch.rand(ids.shape, generator=generator) < share
        return cls(ids.to(DEVICE), ids.masked_fill(~asked, NOT_ASKED).to(DEVICE))


def published_loss(model: nn.Module, kind: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The mean loss that Hugging Face has for ids and labels."""

    def loss(ids: Tensor, labels: Tensor) -> Tensor:
        if kind == "gpt":
            return model(input_ids=ids, labels=labels, use_cache=False).loss
        logits = model(input_ids=ids).prediction_logits
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=NOT_ASKED)

    return loss


class Peer:
    """A model of Hugging Face that learns from one batch."""

    def __init__(self, model: nn.Module, kind: str, batch: Labelled, compiled: bool) -> None:
        loss = published_loss(model, kind)
        called = torch.compile(loss, dynamic=False) if compiled else loss

        def mean_loss(batch: Labelled) -> Tensor:
            with torch.autocast(DEVICE.type, dtype=HALF):
                return called(batch.ids, batch.labels)

        self.batch = batch
        self.step = mean_stepper(model.train(), mean_loss)

    def __call__(self) -> int:
        torch.backends.cuda.enable_cudnn_sdp(True)  # as torch has it
        self.step(self.batch)
        return self.batch.ids.numel()

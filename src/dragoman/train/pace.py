"""Which runs can go the fast way on a GPU: without padding, and recorded (`train/record.py`)."""

import torch

from dragoman.errors import UserError
from dragoman.models import Network
from dragoman.models.base import EncoderDecoder
from dragoman.models.bert import Bert
from dragoman.models.gpt import GptDecoder
from dragoman.models.heads import TaskNetwork
from dragoman.train.config import RunConfig
from dragoman.train.transfer import TransferConfig


def packs(config: RunConfig, model: Network | TaskNetwork, device: torch.device) -> bool:
    """Whether batches are packed: on a GPU, where model and objective know how."""
    asked = config.train.pack
    able = _is_plain(config) and (_translates(config, model) or isinstance(model, Bert))
    if asked and not able:
        raise UserError(
            "train.pack: this model or objective needs padded batches; leave it out, or choose a transformer "
            "with sinusoidal, learned or no positions and cross-entropy, with R-Drop or without, or bert"
        )
    return able and (device.type == "cuda" if asked is None else asked)


def is_steady(config: RunConfig, model: Network | TaskNetwork) -> bool:
    """Whether nearly all batches have one form, or one of a few: GPT's blocks of text as they are, and BERT's
    texts when they are packed."""
    reads_blocks = isinstance(model, EncoderDecoder) and isinstance(model.decoder, GptDecoder)
    plain = config.objective.name == "causal" and not config.objective.penalised
    causal = reads_blocks and plain and not config.objective.r_drop
    return (causal or isinstance(model, Bert)) and _is_plain(config) and config.train.pack is not False


def _is_plain(config: RunConfig) -> bool:
    """Whether an update is a matter of weights and batch alone."""
    objective = config.objective
    other = objective.forcing().samples or objective.guided_alignment.weight
    return not other and config.transfer == TransferConfig()


def _translates(config: RunConfig, model: Network | TaskNetwork) -> bool:
    packing = isinstance(model, EncoderDecoder) and model.packs
    return packing and config.objective.name not in ("causal", "prefix")

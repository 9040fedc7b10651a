"""Learning to translate from pairs, source and target."""

from dataclasses import replace

import numpy as np
import torch

from dragoman.data.alignment.spread import LinkSpread
from dragoman.data.batch import PairBatch, collate
from dragoman.data.corpus import PairStore, Prepared
from dragoman.data.pairs import load_pairs, load_pairs_dropout
from dragoman.errors import UserError
from dragoman.learning.base import TRACKS, Learning
from dragoman.learning.cross_entropy import decoder_objective
from dragoman.learning.loss import Objective
from dragoman.learning.text import other_model
from dragoman.learning.validation import DecoderValidator
from dragoman.models import Network
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder
from dragoman.models.task_heads import TaskNetwork
from dragoman.runs.config import Purpose, RunConfig
from dragoman.text.tokenizer import Tokenizer


class Translate(Learning):
    name = "translate"
    learns_from = "pairs"
    purpose: Purpose = "translate"
    next_step = "translate with:  dragoman translate"
    label_smoothing = 0.1

    def run_name(self, config: RunConfig) -> str:
        return f"{config.data.src_lang}-{config.data.tgt_lang}"

    def check(self, config: RunConfig, abilities: Abilities) -> None:
        if not abilities.writes:
            raise other_model(config)
        if config.data.text:
            raise UserError(
                "objective.name: translate learns from pairs, and data.train is text; choose another one, "
                "such as causal or masked, or give pairs"
            )
        guided = config.objective.guided_alignment.weight and not abilities.counts
        if guided and not any(source.alignment for source in config.data.train):
            raise UserError(
                "objective.guided_alignment.weight: no corpus of data.train has an alignment; make one with  "
                "dragoman align-corpus SRC TGT --output FILE  and name it under data.train[].alignment"
            )

    def examples(self, config: RunConfig, prepared: Prepared) -> "Pairs":
        return Pairs(
            prepared.train,
            (prepared.src_tokenizer, prepared.tgt_tokenizer),
            dropout=config.tokenizer.dropout,
            seed=config.seed,
            max_length=config.data.clean.max_length,
            linked=bool(config.objective.guided_alignment.weight),
        )

    def plain_examples(self, config: RunConfig, prepared: Prepared, store: PairStore) -> "Pairs":  # noqa: ARG002
        return Pairs(store, (prepared.src_tokenizer, prepared.tgt_tokenizer))

    def objective(self, config: RunConfig, model: EncoderDecoder, processes: int) -> Objective:  # noqa: ARG002
        return decoder_objective(config.objective, model)

    def validator(
        self,
        config: RunConfig,
        prepared: Prepared,
        device: torch.device,
        tracks: int = TRACKS,  # noqa: ARG002
    ) -> DecoderValidator:
        return DecoderValidator(self, config, prepared, device, translates=True)

    def packs(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        return model.abilities.packs

    def plan_rows(self, config: RunConfig) -> list[tuple[str, str]]:
        return [("languages", f"{config.data.src_lang} → {config.data.tgt_lang}")]


class Pairs:
    """The pairs of a store. `dropout` is that of BPE; `max_length` then bounds what it makes of a side."""

    def __init__(
        self,
        store: PairStore,
        tokenizers: tuple[Tokenizer, Tokenizer],
        *,
        dropout: float = 0.0,
        seed: int = 0,
        max_length: int | None = None,
        linked: bool = False,
    ) -> None:
        self.store, self.tokenizers, self.dropout = store, tokenizers, dropout
        self.seed, self.max_length = seed, max_length
        self.src_lengths, self.tgt_lengths, self.corpora = store.src_lengths, store.tgt_lengths, store.corpora
        self.origin = store.origin
        self._spread = LinkSpread(store, *tokenizers) if linked else None

    def __len__(self) -> int:
        return len(self.store)

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:
        if self.dropout:
            settings = {"rate": self.dropout, "seed": self.seed, "epoch": epoch}
            ids = load_pairs_dropout(
                self.store, numbers, *self.tokenizers, **settings, max_length=self.max_length
            )
        else:
            ids = load_pairs(self.store, numbers)
        batch = collate(ids)
        return batch if self._spread is None else replace(batch, links=self._spread(numbers, ids))

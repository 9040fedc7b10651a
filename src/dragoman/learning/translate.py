"""Learning to translate from pairs, source and target."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from dragoman.data.alignment.piece_links import LinkSpread
from dragoman.data.batch import PairBatch, collate
from dragoman.data.contexts import Contexts
from dragoman.data.corpus import PairStore, Prepared
from dragoman.data.directions import Languages, direction_name
from dragoman.data.invented_pairs import Inventor
from dragoman.data.scan import direction_numbers
from dragoman.data.similar_translations import SimilarSources
from dragoman.data.store import IdPair, load_pairs, load_pairs_dropout
from dragoman.data.term_examples import TermSources
from dragoman.data.typing_noise import SloppySources
from dragoman.errors import UserError
from dragoman.evaluate.metrics import FURTHER, make_scorers
from dragoman.learning.base import TRACKS, Examples, Learning
from dragoman.learning.cross_entropy import decoder_objective
from dragoman.learning.loss import Objective
from dragoman.learning.text import other_model
from dragoman.learning.validation import DecoderValidator
from dragoman.models import Network
from dragoman.models.abilities import Abilities
from dragoman.models.base import EncoderDecoder
from dragoman.models.task_heads import TaskNetwork
from dragoman.runs.config import Purpose, RunConfig
from dragoman.text.context import SEPARATOR, ContextConfig
from dragoman.text.source_additions import MEMORY_PIECES, TERM_PIECES
from dragoman.text.tokenizer import Tokenizer

_BARS = "▁▂▃▄▅▆▇█"


class Translate(Learning):
    name = "translate"
    learns_from = "pairs"
    purpose: Purpose = "translate"
    next_step = "translate with:  dragoman translate {run}"
    label_smoothing = 0.1
    several_languages = True

    def run_name(self, config: RunConfig) -> str:
        return config.data.languages_name

    def specials(self, config: RunConfig) -> tuple[str, ...]:
        directions = config.data.directions
        pieces = () if directions is None else directions.control_pieces
        terms = TERM_PIECES if config.objective.terms else ()
        separators = () if config.data.context is None else (SEPARATOR,)
        return (*pieces, *terms, *(MEMORY_PIECES if config.objective.fuzzy else ()), *separators)

    def mixed(self, config: RunConfig) -> Sequence[int] | None:
        return None if config.data.directions is None else direction_numbers(config.data)

    def check(self, config: RunConfig, abilities: Abilities) -> None:
        if not abilities.writes:
            raise other_model(config)
        if config.data.text:
            raise UserError(
                "objective.name: translate learns from pairs, and data.train is text; choose another one, "
                "such as causal or masked, or give pairs"
            )
        if config.train.metric in FURTHER:
            make_scorers(further=[config.train.metric])  # a missing package is told before the training
        _check_invented(config)
        _check_source_noise(config)
        _check_beside(config)
        if config.data.context is not None:
            _check_context(config, abilities)
        guided = config.objective.guided_alignment.weight and not abilities.counts
        if guided and not any(source.alignment for source in config.data.train):
            raise UserError(
                "objective.guided_alignment.weight: no corpus of data.train has an alignment; make one with  "
                "dragoman align-corpus SRC TGT --output FILE  and name it under data.train[].alignment"
            )

    def notes(self, examples: Examples) -> list[str]:
        """How many pairs are made up, and what stands beside sources."""
        if not isinstance(examples, Pairs):
            return []
        notes = []
        if examples.terms is not None:
            known = len(examples.terms.lexicon.targets)
            notes.append(f"{known:,} terms of the corpus are added to sources")
        if (more := len(examples) - examples.real) or examples.similar is not None:
            how = "invented ones" if examples.similar is None else "of them again with a similar pair"
            notes.append(f"an epoch has {examples.real:,} pairs and {more:,} {how}")
        return notes

    def examples(self, config: RunConfig, prepared: Prepared) -> "Pairs":
        return Pairs(
            prepared.train,
            (prepared.src_tokenizer, prepared.tgt_tokenizer),
            dropout=config.tokenizer.dropout,
            seed=config.seed,
            max_length=config.data.clean.max_length,
            linked=bool(config.objective.guided_alignment.weight),
            every=config.objective.every,
            invented=config.objective.invented,
            source_noise=config.objective.source_noise,
            terms=config.objective.terms,
            fuzzy=config.objective.fuzzy,
            context=prepared.context,
        )

    def plain_examples(self, config: RunConfig, prepared: Prepared, store: PairStore) -> "Pairs":  # noqa: ARG002
        return Pairs(store, (prepared.src_tokenizer, prepared.tgt_tokenizer), context=prepared.context)

    def objective(self, config: RunConfig, model: EncoderDecoder, processes: int) -> Objective:  # noqa: ARG002
        return decoder_objective(config.objective, model)

    def validator(
        self,
        config: RunConfig,
        prepared: Prepared,
        device: torch.device,
        tracks: int = TRACKS,  # noqa: ARG002
    ) -> DecoderValidator:
        data, parts = config.data, None
        if data.directions is not None:
            corpora = zip(data.valid or data.train, prepared.valid.corpora, strict=True)
            parts = [
                (direction_name(data.languages_of(source)), own.start, own.end) for source, own in corpora
            ]
        return DecoderValidator(self, config, prepared, device, translates=True, parts=parts)

    def report(self, config: RunConfig, record: Mapping[str, Any]) -> list[str]:
        """The metrics of every direction as heat-maps: a row for each source language, a column for each
        target language."""
        directions = config.data.directions
        if directions is None:
            return []
        lines = ["## By direction", ""]
        for metric in (name for name in ("bleu", "chrf", "loss") if name in record):
            lines += [f"{metric} on the validation set, from ↓ to →", ""]
            lines += [f"| | {' | '.join(directions.targets)} |", f"|---|{'---|' * len(directions.targets)}"]
            values = {pair: record.get(f"{metric}.{direction_name(pair)}") for pair in directions.trained}
            for src in directions.sources:
                cells = (_shaded(values, (src, tgt)) for tgt in directions.targets)
                lines.append(f"| {src} | {' | '.join(cells)} |")
            lines.append("")
        return lines

    def packs(self, config: RunConfig, model: Network | TaskNetwork) -> bool:  # noqa: ARG002
        return model.abilities.packs

    def plan_rows(self, config: RunConfig) -> list[tuple[str, str]]:
        return [*self._language_rows(config), *_context_rows(config.data.context)]

    def _language_rows(self, config: RunConfig) -> list[tuple[str, str]]:
        directions = config.data.directions
        if directions is not None:
            told = f"{', '.join(directions.languages)}, in {len(directions.trained)} directions"
            return [("languages", told), ("directions", str(directions))]
        src, tgt = config.data.src_lang, config.data.tgt_lang
        return [("languages", f"{src} → {tgt}")] if (src, tgt) != ("src", "tgt") else []


def _context_rows(context: ContextConfig | None) -> list[tuple[str, str]]:
    if context is None:
        return []
    before = "the sentence before" if context.source == 1 else f"up to {context.source} sentences before"
    return [("context", f"{before}{', translated again' if context.target else ''}")]


def _shaded(values: Mapping[Languages, float | None], pair: Languages) -> str:
    """A number, with a bar that is the taller the greater it is among all of them."""
    known = [value for value in values.values() if value is not None]
    own = values.get(pair)
    if own is None:
        return ""
    share = (own - min(known)) / ((max(known) - min(known)) or 1.0)
    return f"{_BARS[round(share * (len(_BARS) - 1))]} {own:.2f}"


def _check_invented(config: RunConfig) -> None:
    if not config.objective.invented:
        return
    if config.data.directions is not None:
        raise UserError("objective.invented: it is for a run of one direction; set it to 0")
    if not config.tokenizer.joint:
        raise UserError("objective.invented: both sides need one vocabulary; set tokenizer.joint to true")
    if config.tokenizer.dropout or config.objective.guided_alignment.weight:
        raise UserError(
            "objective.invented: it goes neither with tokenizer.dropout nor guided_alignment; set it to 0"
        )


def _check_context(config: RunConfig, abilities: Abilities) -> None:
    if abilities.counts:
        raise UserError("data.context: a model that counts knows single sentences alone; leave it out")
    if config.objective.guided_alignment.weight or config.objective.invented:
        raise UserError(
            "data.context: it goes neither with guided_alignment nor invented pairs; leave one out"
        )


def _check_source_noise(config: RunConfig) -> None:
    if not config.objective.source_noise:
        return
    if config.tokenizer.dropout or config.objective.guided_alignment.weight or config.objective.invented:
        raise UserError(
            "objective.source_noise: it does not go with tokenizer.dropout, guided_alignment or invented; "
            "set it to 0"
        )


def _check_beside(config: RunConfig) -> None:
    """Terms and similar translations are written in pieces of the target vocabulary."""
    objective = config.objective
    for name in ("terms", "fuzzy"):
        if not getattr(objective, name):
            continue
        if config.data.directions is not None:
            raise UserError(f"objective.{name}: it is for a run of one direction; set it to 0")
        if config.data.context is not None:
            raise UserError(f"objective.{name}: it does not go with data.context; set it to 0")
        if not config.tokenizer.joint:
            raise UserError(f"objective.{name}: both sides need one vocabulary; set tokenizer.joint to true")
        if config.tokenizer.dropout or objective.guided_alignment.weight or objective.invented:
            raise UserError(
                f"objective.{name}: it does not go with tokenizer.dropout, guided_alignment or invented; set "
                "it to 0"
            )


class Pairs:
    """The pairs of a store, or every n-th of them. `dropout` is that of BPE; `max_length` then bounds what it
    makes of a side, as with `source_noise`, `terms` and `fuzzy`. `invented` pairs for each real one, or the
    copies that `fuzzy` makes, come after all of them. With a `context` each has the pairs before it in front
    of it."""

    def __init__(
        self,
        store: PairStore,
        tokenizers: tuple[Tokenizer, Tokenizer],
        *,
        dropout: float = 0.0,
        seed: int = 0,
        max_length: int | None = None,
        linked: bool = False,
        every: int = 1,
        invented: int = 0,
        source_noise: float = 0.0,
        terms: float = 0.0,
        fuzzy: float = 0.0,
        context: ContextConfig | None = None,
    ) -> None:
        self.store, self.tokenizers, self.dropout = store, tokenizers, dropout
        self.seed, self.max_length = seed, max_length
        self.src_lengths, self.tgt_lengths, self.corpora = store.src_lengths, store.tgt_lengths, store.corpora
        self._every = every
        self._contexts = None
        if context is not None:
            self._contexts = Contexts(store, context, tokenizers)
            self.src_lengths, self.tgt_lengths = self._contexts.src_lengths, self._contexts.tgt_lengths
        if every > 1:
            self.src_lengths, self.tgt_lengths = self.src_lengths[::every], self.tgt_lengths[::every]
            self.corpora = tuple(
                replace(corpus, start=-(-corpus.start // every), end=-(-corpus.end // every))
                for corpus in self.corpora
            )
        self.real = len(self.src_lengths)
        self._spread = LinkSpread(store, *tokenizers) if linked else None
        self._sloppy = SloppySources(tokenizers[0], source_noise, seed, max_length) if source_noise else None
        self.terms = TermSources(store, tokenizers[0], terms, seed, max_length) if terms else None
        self.similar = None
        if fuzzy:
            numbers = np.arange(0, len(store), every)
            self.similar = SimilarSources(store, tokenizers[0], numbers, fuzzy, max_length)
            self.src_lengths = self.similar.src_lengths(self.src_lengths)
            self.tgt_lengths = self.similar.tgt_lengths(self.tgt_lengths)
            self.corpora = self.similar.corpora(self.corpora, self.real)
        self._inventor = None
        if invented:
            self._inventor = inventor = Inventor(store, np.arange(0, len(store), every), invented, seed)
            self.src_lengths = inventor.repeated(self.src_lengths)
            self.tgt_lengths = inventor.repeated(self.tgt_lengths)
            self.corpora = inventor.repeated_corpora(self.corpora)

    def __len__(self) -> int:
        return len(self.src_lengths)

    def origin(self, index: int) -> str:
        return self.store.origin(int(self._real_ones(np.array([index]))[0]) * self._every)

    def _real_ones(self, numbers: np.ndarray) -> np.ndarray:
        """The pairs that invented ones and copies are made of."""
        if self.similar is None:
            return numbers % self.real
        result = np.array(numbers)
        result[numbers >= self.real] = self.similar.copied[numbers[numbers >= self.real] - self.real]
        return result

    def batch(self, numbers: np.ndarray, epoch: int) -> PairBatch:
        if self._inventor is not None:
            return collate(self._inventor.pairs(numbers, epoch))
        copies = numbers - self.real
        numbers = self._real_ones(numbers) * self._every
        load = partial(self._load, epoch=epoch)
        ids = load(numbers) if self._contexts is None else self._contexts.join(numbers, load)
        if self.terms is not None:
            ids = self.terms(ids, numbers, epoch)
        if self.similar is not None:
            ids = [
                pair if copy < 0 else self.similar(pair, copy)
                for pair, copy in zip(ids, copies.tolist(), strict=True)
            ]
        batch = collate(ids)
        return batch if self._spread is None else replace(batch, links=self._spread(numbers, ids))

    def _load(self, numbers: np.ndarray, epoch: int) -> list[IdPair]:
        """Sentences as this epoch reads them."""
        if self.dropout:
            settings = {"rate": self.dropout, "seed": self.seed, "epoch": epoch}
            return load_pairs_dropout(
                self.store, numbers, *self.tokenizers, **settings, max_length=self.max_length
            )
        ids = load_pairs(self.store, numbers)
        return ids if self._sloppy is None else self._sloppy(ids, numbers, epoch)

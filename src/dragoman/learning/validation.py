"""Validation of a model: its loss, and its translations.

    loss          of every pair, or of every block of text, with teacher forcing
    forced_loss   the same for the first positions of the sentences that are also translated
    free_loss     of those positions, with the decoder fed with its own output

A decoder that has only seen reference tokens may not recover from its own errors: exposure bias (Ranzato et
al. 2016). free_loss − forced_loss is an upper bound of it: one extra word in a good translation shifts all
later words, and they count as errors.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, cast

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batch import PairBatch
from dragoman.data.contexts import sources_in_context
from dragoman.data.corpus import Prepared
from dragoman.data.packed import Batch
from dragoman.data.sampler import TrackSampler
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import by_length
from dragoman.decode.translator.translator import DEFAULT_BATCH_TOKENS, Translator
from dragoman.evaluate.metrics import FURTHER, SCORES
from dragoman.learning.base import Learning, Validator
from dragoman.learning.cross_entropy import (
    FREE_POSITIONS,
    at_target_tokens,
    forced_and_free_loss,
    loss_and_correct,
    per_token,
)
from dragoman.learning.frequencies import frequency_loss
from dragoman.models.base import EncoderDecoder
from dragoman.nn.loss import widest
from dragoman.runs.config import RunConfig
from dragoman.runs.records import Sample
from dragoman.text.context import sentence_of

_LEARNT = 0.3
"""A model has learned something if its loss is this many nats below that of token frequencies."""
_FEW_MORE = 5
_TIMED_BATCHES, _TIMED_SENTENCES = 3, 50
"""Batches and sentences for estimating the time of a validation."""
_FIRST_PORTION = 16
"""Most sentences that are translated at once before a time limit is looked at."""
_ON_A_GPU = 1 << 16
"""Tokens of a batch that is decoded step by step: a step takes as long for many sentences as for few."""


@dataclass(frozen=True)
class Validation:
    metrics: dict[str, float]
    samples: list[Sample]


@dataclass(frozen=True)
class TextSize:
    """Sizes of a text, for losses that do not depend on the tokenizer."""

    words: int
    """Words, including line ends, as for the Penn Treebank."""
    bytes: int
    """Bytes in UTF-8, including line ends."""

    def rates(self, nll: float) -> dict[str, float]:
        per_word = nll / self.words
        bits = nll / self.bytes / math.log(2)
        return {"word_perplexity": math.exp(min(per_word, 700.0)), "bits_per_byte": bits}


def text_size(prepared: Prepared) -> TextSize | None:
    """Size of the validation set; None if there is none."""
    store, tokenizer = prepared.valid, prepared.tgt_tokenizer
    words = size = 0
    for number in range(len(store)):
        text = tokenizer.decode(store.tgt(number).tolist())
        words += len(text.split()) + 1
        size += len(text.encode("utf-8")) + 1
    return TextSize(words, size) if words else None


class CarriedReader(Protocol):
    """A state that is carried from batch to batch."""

    def read(self, model: EncoderDecoder, batch: PairBatch) -> tuple[Tensor, Tensor]: ...


class SequenceValidator(Validator):
    """The validation set of a run on pairs or text, in batches of similar lengths."""

    def __init__(
        self, learning: Learning, config: RunConfig, prepared: Prepared, device: torch.device
    ) -> None:
        self.learning, self.run_config, self.prepared, self.device = learning, config, prepared, device
        self.config = config.train
        self.examples = learning.plain_examples(config, prepared, prepared.valid)
        self.lengths = np.maximum(self.examples.src_lengths, self.examples.tgt_lengths) + 1
        self._batches = list(by_length(self.lengths.tolist(), config.train.batch_tokens))
        self._frequency_loss: float | None = None

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def frequency_loss(self) -> float:
        """Computed when it is first needed."""
        if self._frequency_loss is None:
            trained_on = self.learning.plain_examples(self.run_config, self.prepared, self.prepared.train)
            vocab_size = self.prepared.tgt_tokenizer.size
            self._frequency_loss = frequency_loss(trained_on, self.examples, vocab_size)
        return self._frequency_loss

    def _some_batches(self) -> tuple[list[list[int]], float]:
        """A few batches from all over, and the ratio of all examples to theirs."""
        step = -(-len(self._batches) // _TIMED_BATCHES)
        some = [list(batch) for batch in self._batches[step // 2 :: step]]
        return some, len(self) / sum(map(len, some))

    def _load(self, batches: Sequence[Sequence[int]]) -> Iterator[Batch]:
        for numbers in batches:
            yield self.examples.batch(np.array(numbers), epoch=0).to(self.device)


class DecoderValidator(SequenceValidator):
    """For a model with a decoder: its loss under teacher forcing and, if it `translates`, its translations.

    `carried` makes a state that is carried from block to block, with the text in that many `tracks`; `sized`:
    the loss is also given per word and byte of the text. `parts` are (name, first, end) of parts of the set:
    then every metric is the mean of theirs, and each part has its own beside it, as `bleu.NAME`.
    """

    def __init__(
        self,
        learning: Learning,
        config: RunConfig,
        prepared: Prepared,
        device: torch.device,
        *,
        translates: bool = False,
        carried: Callable[[], CarriedReader] | None = None,
        tracks: int = 1,
        sized: bool = False,
        parts: Sequence[tuple[str, int, int]] | None = None,
    ) -> None:
        super().__init__(learning, config, prepared, device)
        self._carried = carried
        self._part_of: list[str] = []
        for name, first, end in parts or ():
            self._part_of += [name] * (end - first)
        if parts is not None:
            self._batches = self._batches_of_parts()
        if carried is not None and len(self):
            self._batches = [numbers.tolist() for numbers in TrackSampler(len(self), tracks).batches(0)]
        self._size = text_size(prepared) if sized else None
        count = min(len(prepared.valid), config.train.validate_sentences) if translates else 0
        self._choose(
            [int(i) for i in np.linspace(0, len(prepared.valid) - 1, count).round()] if count else []
        )
        if self.references and self.config.metric in FURTHER:
            SCORES[self.config.metric](self.references, self.references)  # what it refuses is told now
        # An untrained model is often stuck in loops: show that, and do not spend time on the loop guard.
        self._most_seconds: float | None = None
        limits = {
            name: getattr(config.search, name)
            for name in ("max_ratio", "max_extra", "max_length", "brackets")
        }
        self._search = BeamSearch(beam=self.config.validate_beam, loop_guard=False, **limits)

    def limit(self, seconds: float, now: Callable[[], float]) -> None:
        """Translate only as many sentences as the time allows. The loss with the model's own output is that
        of the first of them."""
        self._most_seconds, self._now = seconds, now
        self._free_batches = self._batches_of([self._chosen[place] for place in self._portions()[0]])

    def _portions(self) -> list[range]:
        """The places of the chosen sentences. With a time limit: a few from all over, then those in the
        middle between them, and so on; each portion is as large as all before it."""
        count = len(self._chosen)
        step = 1
        while self._most_seconds is not None and -(-count // step) > _FIRST_PORTION:
            step *= 2
        portions = [range(0, count, step)]
        while step > 1:
            portions.append(range(step // 2, count, step))
            step //= 2
        return portions

    def _batches_of(self, numbers: Sequence[int]) -> list[list[int]]:
        at_once = max(self.config.batch_tokens, _ON_A_GPU if self.device.type == "cuda" else 0)
        places = by_length([self._read_freely(i) for i in numbers], at_once)
        return [[numbers[place] for place in batch] for batch in places]

    def _choose(self, chosen: list[int]) -> None:
        """The sentences to translate."""
        prepared, self._chosen = self.prepared, chosen
        store, src, tgt = prepared.valid, prepared.src_tokenizer, prepared.tgt_tokenizer
        self._free_batches = self._batches_of(chosen)
        self.sources = sources_in_context(prepared, chosen)
        self.openings = [src.opening_of(store.src(i)) for i in chosen]
        self.references = [tgt.decode(store.tgt(i).tolist()) for i in chosen]

    def _read_freely(self, number: int) -> int:
        """The length that a pair has where the model reads its own output."""
        source, target = self.examples.src_lengths[number], self.examples.tgt_lengths[number]
        return max(int(source), min(int(target), FREE_POSITIONS)) + 1

    def _batches_of_parts(self) -> list[Sequence[int]]:
        """Batches of one part each."""
        batches: list[Sequence[int]] = []
        for name in dict.fromkeys(self._part_of):
            own = [number for number, part in enumerate(self._part_of) if part == name]
            places = by_length([int(self.lengths[number]) for number in own], self.config.batch_tokens)
            batches += [[own[place] for place in batch] for batch in places]
        return batches

    def run(self, model: EncoderDecoder, autocast: torch.autocast) -> Validation:
        """Validate; the model stays in training mode."""
        model.eval()
        with autocast:
            metrics = self._teacher_forced(model) | self._free_running(model)
        outputs = self._translated(model, metrics["loss"]) if self.sources else {}
        model.train()
        if outputs:
            metrics |= self._scores(outputs)
        if self._most_seconds is not None and outputs:
            metrics["translated"] = len(outputs)
        samples = [
            Sample(sentence_of(self.sources[place]), self.references[place], output)
            for place, output in list(outputs.items())[: self.config.samples]
        ]
        return Validation(metrics, samples)

    def _translated(self, model: EncoderDecoder, loss: float) -> dict[int, str]:
        """Outputs by place. With a time limit, no further portion is begun that would exceed it."""
        outputs: dict[int, str] = {}
        began = 0.0 if self._most_seconds is None else self._now()
        for places in self._portions():
            outputs |= zip(places, self._translate(model, loss, places), strict=True)
            if self._most_seconds is not None and 2 * (self._now() - began) > self._most_seconds:
                break
        return outputs

    def estimated_seconds(
        self, model: EncoderDecoder, autocast: torch.autocast, now: Callable[[], float]
    ) -> float | None:
        if self._carried is not None or not len(self):
            return None
        part = copy.copy(self)
        part._batches, more = self._some_batches()
        on_gpu = self.device.type == "cuda"  # if all sentences take as long as a few
        step = 1 if on_gpu else max(1, -(-len(self._chosen) // _TIMED_SENTENCES))
        part._choose(self._chosen[::step])
        if part.sources:
            part._search = replace(self._search, max_ratio=self._usual_ratio(), max_extra=1)
        model.eval()
        seconds = 0.0
        for _ in range(2):  # the first time, kernels are loaded too
            began = now()
            with autocast:
                part._teacher_forced(model)
                forced = now()
                part._free_running(model)
            if part.sources:
                part._translate(model, 0.0, range(len(part.sources)))
            seconds = (forced - began) * more + (now() - forced) * step
        model.train()
        return seconds

    def _scores(self, outputs: Mapping[int, str]) -> dict[str, float]:
        """BLEU, chrF and exact matches of the outputs, by place, and the metric that chooses."""
        names = ["bleu", "chrf", "exact"]
        if self.config.metric in FURTHER:
            names.append(self.config.metric)

        def scored(places: Sequence[int]) -> dict[str, float]:
            own, references = [outputs[p] for p in places], [self.references[p] for p in places]
            return {name: SCORES[name](own, references) for name in names}

        places = sorted(outputs)
        if not self._part_of:
            return scored(places)
        parts = {place: self._part_of[self._chosen[place]] for place in places}
        by_part = {name: [p for p in places if parts[p] == name] for name in dict.fromkeys(parts.values())}
        return _mean({name: scored(places) for name, places in by_part.items()})

    def _usual_ratio(self) -> float:
        """Target tokens per source token: an untrained model does not know where to end."""
        return float(self.examples.tgt_lengths.sum() / max(1, self.examples.src_lengths.sum()))

    def _teacher_forced(self, model: EncoderDecoder) -> dict[str, float]:
        """Negative log-likelihood per token (no smoothing), perplexity, and accuracy."""
        if not self._part_of:
            return self._forced(model, self._batches)
        batches: dict[str, list[Sequence[int]]] = {}
        for numbers in self._batches:
            batches.setdefault(self._part_of[numbers[0]], []).append(numbers)
        mean = _mean({name: self._forced(model, own) for name, own in batches.items()})
        return mean | {"perplexity": math.exp(min(mean["loss"], 700.0))}

    @torch.inference_mode()
    def _forced(self, model: EncoderDecoder, batches: Sequence[Sequence[int]]) -> dict[str, float]:
        sums = torch.zeros(2, dtype=widest(self.device), device=self.device)
        tokens, carried = 0, None if self._carried is None else self._carried()
        for batch in self._load(batches):
            assert isinstance(batch, PairBatch)
            if carried is None:
                hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)
            else:
                hidden = carried.read(model, batch)[1]
            sums += loss_and_correct(model, *at_target_tokens(hidden, batch))
            tokens += batch.num_tokens
        return per_token(sums, tokens) | (self._size.rates(float(sums[0])) if self._size else {})

    @torch.inference_mode()
    def _free_running(self, model: EncoderDecoder) -> dict[str, float]:
        """The loss of the chosen sentences, with teacher forcing and with the model's own output."""
        batches = cast(Iterator[PairBatch], self._load(self._free_batches))
        return forced_and_free_loss(model, batches, self.device) if self._free_batches else {}

    def _translate(self, model: EncoderDecoder, loss: float, places: Sequence[int]) -> list[str]:
        """A model that only knows token frequencies does not know where to end. It gets 1.5 times the usual
        length, so that early validations take no longer than later ones."""
        prepared, search = self.prepared, self._search
        if loss > self.frequency_loss - _LEARNT:
            search = replace(search, max_ratio=1.5 * self._usual_ratio(), max_extra=_FEW_MORE)
        tokenizers = prepared.src_tokenizer, prepared.tgt_tokenizer
        translator = Translator(model, *tokenizers, search, self.device)
        translator.context = prepared.context
        batch_tokens = max(DEFAULT_BATCH_TOKENS, self.config.batch_tokens)
        ask = partial(Translator.translate, batch_tokens=batch_tokens)
        sources = [self.sources[place] for place in places]
        return translator.by_opening(sources, [self.openings[place] for place in places], ask)


def _mean(parts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """The mean of every metric over the parts, and then the parts' own."""
    names = list(next(iter(parts.values())))
    means = {name: sum(own[name] for own in parts.values()) / len(parts) for name in names}
    return means | {f"{name}.{part}": own[name] for part, own in parts.items() for name in names}

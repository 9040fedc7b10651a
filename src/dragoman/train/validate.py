"""What a model is worth on the validation set: by its loss, and by what it really translates.

loss          of every pair, or of every block of text, the decoder fed with the data
forced_loss   the same for the sentences that are translated too
free_loss     of those sentences again, the decoder fed with its own words

A decoder that has only ever seen right words may not know how to go on after a wrong one: exposure bias
(Ranzato et al. 2016). Free running less forced is a measure of it, and one from above: a good translation
with one word more has all later words at other positions than the data, and they count as wrong.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batch import PairBatch, TextBatch, by_length
from dragoman.data.corpus import Prepared
from dragoman.data.packed import Batch
from dragoman.data.tracks import TrackSampler
from dragoman.decode.config import SearchConfig
from dragoman.decode.translate import DEFAULT_BATCH_TOKENS, Translator
from dragoman.evaluate.metrics import bleu, chrf, exact_match
from dragoman.models import Network
from dragoman.models.base import EncoderDecoder
from dragoman.objectives import ANSWERS, Answers, CarriedState, decode_own_words
from dragoman.train.config import RunConfig
from dragoman.train.examples import plain_examples
from dragoman.train.frequencies import frequency_loss

_LOGITS_AT_ONCE = 1 << 24
_TRACKS = 10
"""In which a text is read at once where the state goes on; each begins without one."""


@dataclass(frozen=True)
class Sample:
    src: str
    tgt: str
    """What the data say."""
    out: str
    """What the model says."""


@dataclass(frozen=True)
class Validation:
    metrics: dict[str, float]
    samples: list[Sample]


@dataclass(frozen=True)
class TextSize:
    """Of a text that a language model has been through: what its loss can be divided by, whatever its pieces
    are."""

    words: int
    """Its ends of lines counted, as for the Penn Treebank."""
    bytes: int
    """In UTF-8, its ends of lines counted."""

    def rates(self, nll: float) -> dict[str, float]:
        per_word = nll / self.words
        bits = nll / self.bytes / math.log(2)
        return {"word_perplexity": math.exp(min(per_word, 700.0)), "bits_per_byte": bits}


def text_size(prepared: Prepared) -> TextSize | None:
    """Of the validation set; None where there is none."""
    store, tokenizer = prepared.valid, prepared.tgt_tokenizer
    words = size = 0
    for number in range(len(store)):
        text = tokenizer.decode(store.tgt(number).tolist())
        words += len(text.split()) + 1
        size += len(text.encode("utf-8")) + 1
    return TextSize(words, size) if words else None


class Validator:
    """The validation set of a run, chosen and ordered once."""

    def __init__(
        self, run: RunConfig, prepared: Prepared, device: torch.device, tracks: int = _TRACKS
    ) -> None:
        self.run_config, self.prepared, self.device = run, prepared, device
        self.config = config = run.train
        store = prepared.valid
        self.examples = plain_examples(run, prepared, store)
        lengths = np.maximum(self.examples.src_lengths, self.examples.tgt_lengths) + 1
        self._batches = list(by_length(lengths.tolist(), config.batch_tokens))
        self._carries = run.objective.carry
        if self._carries and len(self.examples):
            self._batches = [n.tolist() for n in TrackSampler(len(self.examples), tracks).batches(0)]
        count = 0 if run.data.text else min(len(store), config.validate_sentences)
        chosen = [int(i) for i in np.linspace(0, len(store) - 1, count).round()] if count else []
        of_chosen = by_length([int(lengths[i]) for i in chosen], config.batch_tokens)
        self._chosen_batches = [[chosen[place] for place in places] for places in of_chosen]
        src, tgt = prepared.src_tokenizer, prepared.tgt_tokenizer
        self._size = text_size(prepared) if run.objective.name == "causal" else None
        self._answers = ANSWERS.get(run.objective.name)
        self.sources = [src.decode(store.src(i).tolist()) for i in chosen]
        self.references = [tgt.decode(store.tgt(i).tolist()) for i in chosen]

    def __len__(self) -> int:
        return len(self.examples)

    @cached_property
    def frequency_loss(self) -> float:
        """The loss of a model that knows how frequent pieces are, and nothing else."""
        learnt_from = plain_examples(self.run_config, self.prepared, self.prepared.train)
        return frequency_loss(learnt_from, self.examples, self.prepared.tgt_tokenizer.size)

    def run(self, model: Any, autocast: torch.autocast) -> Validation:
        """Leaves the model in training mode, as it was."""
        model.eval()
        with autocast:
            if self._answers is not None:
                metrics = self._guesses(model, self._answers)
            else:
                assert isinstance(model, EncoderDecoder), "all objectives but those of ANSWERS are about them"
                metrics = self._teacher_forced(model) | self._free_running(model)
        outputs = self._translate(model) if self.sources and isinstance(model, EncoderDecoder) else []
        model.train()
        if outputs:
            for name, score in (("bleu", bleu), ("chrf", chrf), ("exact", exact_match)):
                metrics[name] = score(outputs, self.references)
        shown = zip(self.sources, self.references, outputs, strict=True) if outputs else ()
        return Validation(metrics, [Sample(*texts) for texts in list(shown)[: self.config.samples]])

    @torch.inference_mode()
    def _teacher_forced(self, model: EncoderDecoder) -> dict[str, float]:
        """Negative log-likelihood a token (no smoothing), its exponential, and the share of right guesses."""
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        tokens, carried = 0, CarriedState() if self._carries else None
        for batch in self._load(self._batches):
            assert isinstance(batch, PairBatch)
            if carried is None:
                hidden = model(batch.src_ids, batch.src_mask, batch.tgt_in)
            else:
                hidden = carried.read(model, batch)[1]
            sums += _measure(model, *_said(hidden, batch))
            tokens += batch.num_tokens
        return _per_token(sums, tokens) | (self._size.rates(float(sums[0])) if self._size else {})

    @torch.inference_mode()
    def _guesses(self, model: Network, answers: Callable[[Any, TextBatch], Answers]) -> dict[str, float]:
        """The same for the pieces that are asked for; and how often it is right that a text follows."""
        sums = torch.zeros(2, dtype=torch.float64, device=self.device)
        tokens = rows = right = 0
        for batch in self._load(self._batches):
            assert isinstance(batch, TextBatch)
            found = answers(model, batch)
            sums += _measure(model, found.hidden, found.targets)
            tokens += batch.num_tokens
            if batch.follows is not None and found.follows is not None:
                said = found.follows.argmax(dim=-1) == 0
                right += int((said == batch.follows).sum())
                rows += len(said)
        return _per_token(sums, tokens) | ({"next_sentence": right / rows} if rows else {})

    @torch.inference_mode()
    def _free_running(self, model: EncoderDecoder) -> dict[str, float]:
        """The loss of the chosen sentences, the decoder fed with the data and with its own words."""
        if not self._chosen_batches:
            return {}
        forced, free = torch.zeros(2, 2, dtype=torch.float64, device=self.device)
        tokens = 0
        for batch in self._load(self._chosen_batches):
            assert isinstance(batch, PairBatch)
            forced += _measure(model, *_said(model(batch.src_ids, batch.src_mask, batch.tgt_in), batch))
            own = decode_own_words(model, batch, given=torch.zeros_like(batch.tgt_mask))
            free += _measure(model, *_said(own, batch))
            tokens += batch.num_tokens
        return {"forced_loss": forced[0].item() / tokens, "free_loss": free[0].item() / tokens}

    def _load(self, batches: Sequence[Sequence[int]]) -> Iterator[Batch]:
        for numbers in batches:
            yield self.examples.batch(np.array(numbers), epoch=0).to(self.device)

    def _translate(self, model: EncoderDecoder) -> list[str]:
        prepared = self.prepared
        # An untrained model goes in circles all the time: that is to be seen, not to be mended at some cost.
        search = SearchConfig(beam=self.config.validate_beam, loop_guard=False)
        translator = Translator(model, prepared.src_tokenizer, prepared.tgt_tokenizer, search, self.device)
        batch_tokens = max(DEFAULT_BATCH_TOKENS, self.config.batch_tokens)
        return translator.translate(self.sources, batch_tokens=batch_tokens)


def _said(hidden: Tensor, batch: PairBatch) -> tuple[Tensor, Tensor]:
    """Of the target tokens: what the decoder gave, and what they are."""
    return hidden[batch.tgt_mask], batch.tgt_out[batch.tgt_mask]


def _per_token(sums: Tensor, tokens: int) -> dict[str, float]:
    loss, accuracy = (sums / tokens).tolist()
    return {"loss": loss, "perplexity": float(np.exp(min(loss, 700.0))), "accuracy": accuracy}


def _measure(model: Network, hidden: Tensor, targets: Tensor) -> Tensor:
    """Two sums over tokens: the negative log-likelihood, and how many guesses are right."""
    sums = torch.zeros(2, dtype=torch.float64, device=hidden.device)
    for rows, target in _chunks(hidden, targets, model):
        logits = model.project(rows).float()
        sums[0] += torch.nn.functional.cross_entropy(logits, target, reduction="sum")
        sums[1] += (logits.argmax(dim=-1) == target).sum()
    return sums


def _chunks(hidden: Tensor, target: Tensor, model: Network) -> Iterator[tuple[Tensor, Tensor]]:
    """The logits of all positions at once would be the largest tensor of all."""
    rows = max(1, _LOGITS_AT_ONCE // model.vocab.tgt_size)
    yield from zip(hidden.split(rows), target.split(rows), strict=True)

"""Validation with the data's words and with the model's own, for models whose numbers are known by hand."""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pytest
import sacrebleu
import torch
from torch import Tensor, nn

from dragoman.checkpoint.model import vocab_of
from dragoman.data.corpus import Prepared
from dragoman.errors import UserError
from dragoman.learning import learning_of, validation
from dragoman.learning.validation import DecoderValidator
from dragoman.models.base import EncoderDecoder, Memory, Vocab
from dragoman.nn.linear import Projection
from dragoman.runs.config import RunConfig
from dragoman.training.state import Training

MakeConfig = Callable[..., RunConfig]
CPU = torch.device("cpu")
NO_AUTOCAST = torch.autocast("cpu", enabled=False)


@dataclass(frozen=True)
class Place:
    """The source of every row, and how many positions it has seen."""

    src: Tensor
    position: int = 0

    def expand(self, k: int) -> Self:
        return replace(self, src=self.src.repeat_interleave(k, 0))

    def select(self, order: Tensor) -> Self:
        return replace(self, src=self.src[order])

    def keep(self, sentences: Tensor) -> Self:
        return replace(self, src=self.src[sentences])


class Reader(nn.Module):
    """The memory is the source itself."""

    def forward(self, src_ids: Tensor, src_mask: Tensor) -> Memory:
        return Memory(src_ids[:, :, None].float(), src_mask)


class Known(nn.Module):
    """What is said next is looked up: `next_word(source, position, last word)` is a row of the projection."""

    def __init__(self, next_row: Callable[[tuple[int, ...], int, int], int], rows: int) -> None:
        super().__init__()
        self.next_row, self.rows = next_row, rows

    def forward(self, tgt_in: Tensor, memory: Memory) -> Tensor:
        state, hidden = self.start(memory), []
        for t in range(tgt_in.size(1)):
            out, state = self.step(tgt_in[:, t], state)
            hidden.append(out)
        return torch.stack(hidden, 1)

    def start(self, memory: Memory) -> Place:
        return Place(memory.hidden[:, :, 0].long())

    def step(self, last_ids: Tensor, state: Place) -> tuple[Tensor, Place]:
        sources = [tuple(i for i in row if i) for row in state.src.tolist()]
        rows = [
            self.next_row(source, state.position, last)
            for source, last in zip(sources, last_ids.tolist(), strict=True)
        ]
        return torch.eye(self.rows)[rows], replace(state, position=state.position + 1)


def _validator(config: RunConfig, prepared: Prepared, device: torch.device) -> DecoderValidator:
    found = learning_of(config).validator(config, prepared, device)
    assert isinstance(found, DecoderValidator)
    return found


def known_model(
    next_row: Callable[[tuple[int, ...], int, int], int], logits: Tensor, vocab: Vocab
) -> EncoderDecoder:
    """Row r of `logits` is what the model says where `next_row` is r."""
    projection = Projection(nn.Parameter(logits.T.contiguous()))
    return EncoderDecoder(vocab, Reader(), Known(next_row, len(logits)), projection)


def chosen_pairs(validator: DecoderValidator, prepared: Prepared) -> list[tuple[tuple[int, ...], list[int]]]:
    store, eos = prepared.valid, 2
    numbers = sorted(n for batch in validator._free_batches for n in batch)
    return [((*store.src(n).tolist(), eos), [*store.tgt(n).tolist(), eos]) for n in numbers]


def test_both_losses_of_a_bigram_model_by_hand(make_config: MakeConfig, prepared: Prepared) -> None:
    """It knows nothing but the last word, so its own chain of words can be followed in a table."""
    vocab = vocab_of(prepared.src_tokenizer, prepared.tgt_tokenizer)
    torch.manual_seed(0)
    table = torch.randn(vocab.tgt_size, vocab.tgt_size) * 3
    model = known_model(lambda _source, _position, last: last, table, vocab)
    validator = _validator(make_config("train.validate_sentences=6"), prepared, CPU)
    found = validator.run(model, NO_AUTOCAST).metrics

    logits = table.double().numpy()
    nll = np.log(np.exp(logits).sum(1, keepdims=True)) - logits
    allowed = logits.copy()
    allowed[:, [vocab.pad_id, vocab.bos_id]] = -np.inf
    sums = {"forced_loss": 0.0, "free_loss": 0.0}
    tokens = 0
    for _, target in chosen_pairs(validator, prepared):
        own = vocab.bos_id
        for before, word in zip([vocab.bos_id, *target[:-1]], target, strict=True):
            sums["forced_loss"] += nll[before, word]
            sums["free_loss"] += nll[own, word]
            own = int(allowed[own].argmax())
        tokens += len(target)
    for name, total in sums.items():
        assert found[name] == pytest.approx(total / tokens, rel=1e-6)
    assert found["free_loss"] != pytest.approx(found["forced_loss"], rel=1e-3)


@pytest.mark.parametrize("stumbles", [False, True], ids=["perfect", "stumbling"])
def test_a_model_that_needs_right_words(make_config: MakeConfig, prepared: Prepared, stumbles: bool) -> None:
    """It knows every answer, but after a wrong word it knows nothing. As long as it says nothing wrong, both
    losses are one; if its first word is wrong, all others are lost, and teacher forcing does not show it."""
    vocab = vocab_of(prepared.src_tokenizer, prepared.tgt_tokenizer)
    size, sharp = vocab.tgt_size, 30.0
    validator = _validator(make_config("train.validate_sentences=6"), prepared, CPU)
    store = prepared.valid
    answers = {(*store.src(i).tolist(), 2): [*store.tgt(i).tolist(), 2] for i in range(len(store))}
    lost, wrong = size, size - 1
    assert all(target[0] != wrong for target in answers.values())

    def next_row(source: tuple[int, ...], position: int, last: int) -> int:
        words = [vocab.bos_id, *answers[source]]
        if position >= len(words) - 1 or last != words[position]:
            return lost
        return wrong if stumbles and position == 0 else words[position + 1]

    logits = torch.cat([torch.eye(size) * sharp, torch.zeros(1, size)])
    found = validator.run(known_model(next_row, logits, vocab), NO_AUTOCAST).metrics
    pairs = chosen_pairs(validator, prepared)
    right = np.log(np.exp(sharp) + size - 1) - sharp
    if not stumbles:
        assert found["free_loss"] == found["forced_loss"] == pytest.approx(right, abs=1e-6)
        assert found["exact"] == 100
        return
    tokens = sum(len(target) for _, target in pairs)
    first, later = len(pairs) * (sharp + right), tokens - len(pairs)
    assert found["forced_loss"] == pytest.approx((first + later * right) / tokens, abs=1e-5)
    assert found["free_loss"] == pytest.approx((first + later * np.log(size)) / tokens, abs=1e-5)


@pytest.mark.parametrize(
    "model", ["{kind: rnn, model_dim: 12}", "{num_layers: 1, model_dim: 16, num_heads: 2}"]
)
def test_every_model_has_both_losses(make_config: MakeConfig, prepared: Prepared, model: str) -> None:
    config = make_config(f"model={model}", "train.validate_sentences=16")
    training = Training(config, prepared, CPU)
    validator = _validator(config, prepared, CPU)
    found = validator.run(training.model, training.autocast()).metrics
    assert training.model.training
    assert found["forced_loss"] == pytest.approx(found["loss"], rel=1e-6)  # all 16 sentences are chosen
    assert found["free_loss"] > 0
    none = _validator(make_config("train.validate_sentences=0"), prepared, CPU)
    assert none.run(training.model, training.autocast()).metrics.keys() == {"loss", "perplexity", "accuracy"}


def test_a_decoder_without_differentiable_steps_is_refused(
    make_config: MakeConfig, prepared: Prepared
) -> None:
    transformer = "{kind: transformer, num_layers: 1, model_dim: 16, num_heads: 2, ff_dim: 16}"
    recurrent = "{kind: rnn, model_dim: 12}"
    half = "objective.teacher_forcing=0.5"
    for refused in (transformer, f"{{kind: mixed, encoder: {recurrent}, decoder: {transformer}}}"):
        with pytest.raises(UserError, match=r"^objective\.teacher_forcing: this model's decoder cannot"):
            Training(make_config(f"model={refused}", half), prepared, CPU)
    for taken in (recurrent, f"{{kind: mixed, encoder: {transformer}, decoder: {recurrent}}}"):
        Training(make_config(f"model={taken}", half), prepared, CPU)


def test_the_loss_of_frequencies_by_hand(make_config: MakeConfig, prepared: Prepared) -> None:
    eos, size = 2, prepared.tgt_tokenizer.size
    counts = Counter(range(size))  # as if each had been there once
    for number in range(len(prepared.train)):
        counts.update([*prepared.train.tgt(number).tolist(), eos])
    asked = [piece for n in range(len(prepared.valid)) for piece in [*prepared.valid.tgt(n).tolist(), eos]]
    expected = -sum(math.log(counts[piece] / counts.total()) for piece in asked) / len(asked)
    assert _validator(make_config(), prepared, CPU).frequency_loss == pytest.approx(expected, abs=1e-12)


def test_validation_keeps_to_the_lengths_that_the_run_allows(
    make_config: MakeConfig, prepared: Prepared
) -> None:
    """Else no output that is many times as long as its source could ever be right."""
    limits = ("search.max_ratio=12", "search.max_extra=30", "search.max_length=500")
    search = _validator(make_config(*limits), prepared, CPU)._search
    assert (search.max_ratio, search.max_extra, search.max_length) == (12, 30, 500)
    assert search.longest(10) == 150


def test_a_model_that_is_stuck_is_shown_as_it_is(make_config: MakeConfig, prepared: Prepared) -> None:
    """As most untrained ones are: no time is spent on a way out of the loop."""
    tokenizer = prepared.tgt_tokenizer
    piece = tokenizer.encode("a")[-1]
    logits = torch.zeros(1, tokenizer.size).index_fill(1, torch.tensor([piece]), 20.0)
    model = known_model(lambda *_: 0, logits, vocab_of(prepared.src_tokenizer, tokenizer))
    validator = _validator(make_config("train.validate_sentences=3"), prepared, CPU)
    found = validator._translated(model, 0.0)
    assert len(found) == 3
    for place, said in found.items():
        source = prepared.src_tokenizer.encode(validator.sources[place])
        limit = validator._search.longest(len(source) + 1)
        assert limit > 10 and said == tokenizer.decode([piece] * (limit - 1))


def limited(config: RunConfig, prepared: Prepared, most: float, seconds: list[float]) -> DecoderValidator:
    """A validator whose clock shows `seconds`, one after the other."""
    validator, times = _validator(config, prepared, CPU), iter(seconds)
    validator.limit(most, lambda: next(times))
    return validator


def test_with_a_time_limit_a_part_is_translated_from_all_over(
    make_config: MakeConfig, prepared: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each portion is as large as all before it, and none is begun that would exceed the limit."""
    vocab = vocab_of(prepared.src_tokenizer, prepared.tgt_tokenizer)
    torch.manual_seed(0)
    table = torch.randn(vocab.tgt_size, vocab.tgt_size)
    model = known_model(lambda _source, _position, last: last, table, vocab)
    monkeypatch.setattr(validation, "_FIRST_PORTION", 3)
    config = make_config("train.validate_sentences=11", "train.samples=2")
    whole = _validator(config, prepared, CPU)
    expected = whole._translated(model, 0.0)
    assert list(expected) == list(range(11))
    in_time = limited(config, prepared, most=100.0, seconds=[0.0, 1.0, 2.0, 3.0])
    found = in_time._translated(model, 0.0)
    assert list(found) == [0, 4, 8, 2, 6, 10, 1, 3, 5, 7, 9]
    assert found == expected
    late = limited(config, prepared, most=10.0, seconds=[7.0, 8.0, 12.5])
    part = late.run(model, NO_AUTOCAST)
    assert [sample.src for sample in part.samples] == [whole.sources[0], whole.sources[4]]
    outputs = {place: expected[place] for place in (0, 4, 8, 2, 6, 10)}
    assert part.metrics["translated"] == 6
    assert part.metrics["bleu"] == whole._scores(outputs)["bleu"]
    references = [whole.references[place] for place in sorted(outputs)]
    hypotheses = [outputs[place] for place in sorted(outputs)]
    assert part.metrics["bleu"] == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [references]).score)
    assert len(chosen_pairs(late, prepared)) == 3  # of the loss with the model's own output

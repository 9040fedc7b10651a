"""Texts without padding and blocks that are recorded: the same losses, gradients and updates as before."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dragoman.data.batch import PairBatch, TextBatch
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.packed import NO_TEXT, PackedText
from dragoman.learning import learning_of
from dragoman.learning.base import captures
from dragoman.learning.masked import MaskedLanguageModel
from dragoman.learning.resolve import resolve_config
from dragoman.models import build_network
from dragoman.models.base import Vocab
from dragoman.models.bert import Bert, BertConfig
from dragoman.runs.config import RunConfig
from dragoman.training.batches import Batches
from dragoman.training.state import Training
from dragoman.training.update import learn
from toy import toy_pairs

CPU = torch.device("cpu")
SIZES = {"num_layers": 1, "model_dim": 8, "num_heads": 2, "ff_dim": 12, "max_positions": 64}


def batch_of(lengths: tuple[int, ...], follows: torch.Tensor | None) -> TextBatch:
    generator = torch.Generator().manual_seed(1)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    ids = torch.randint(3, 23, mask.shape, generator=generator).masked_fill(~mask, 0)
    segments = (torch.arange(max(lengths)) > 2).long().expand_as(ids).masked_fill(~mask, 0)
    asked = mask.flatten().nonzero()[1::3, 0]
    return TextBatch(ids, mask, segments, asked, (asked % 20) + 3, follows, len(asked))


@pytest.mark.parametrize("multiple", [0, 8, 300])
@pytest.mark.parametrize("lengths", [(5, 2, 7), (4, 4, 4)], ids=["several lengths", "one length"])
@pytest.mark.parametrize("follows", [None, torch.tensor([True, False, True])], ids=["one", "two"])
def test_packed_texts_give_the_loss_and_gradients_of_padded_ones(
    multiple: int, lengths: tuple[int, ...], follows: torch.Tensor | None
) -> None:
    torch.manual_seed(1)
    config = BertConfig(dropout=0.0, attention_dropout=0.0, **SIZES)  # type: ignore[arg-type]
    model = build_network("bert", config, Vocab(23, 23, shared=True)).double()
    batch, objective = batch_of(lengths, follows), MaskedLanguageModel()
    assert isinstance(model, Bert)
    expected, found = objective(model, batch), objective(model, PackedText.of(batch, multiple))
    assert found.count == expected.count
    parameters = list(model.parameters())
    sums = (found.total, found.nll), (expected.total, expected.nll)
    torch.testing.assert_close(*sums, atol=1e-12, rtol=1e-12)
    gradients, others = (torch.autograd.grad(loss.total, parameters) for loss in (found, expected))
    torch.testing.assert_close(gradients, others, atol=1e-12, rtol=1e-12)


def test_texts_lie_one_after_another_and_padding_is_of_its_own() -> None:
    batch = batch_of((3, 1), torch.tensor([True, False]))
    packed = PackedText.of(batch)
    assert packed.ids[0].tolist() == [*batch.ids[0].tolist(), batch.ids[1, 0].item()]
    assert packed.packing.starts.tolist() == [0, 3, 4]
    assert packed.firsts.tolist() == [0, 3]
    filled = PackedText.of(batch, 8)
    assert filled.ids[0].tolist() == [*packed.ids[0].tolist(), 0, 0, 0, 0]
    assert filled.packing.starts.tolist() == [0, 3, 4, 8]
    assert filled.other is not None
    assert filled.other.tolist() == [0, 1, NO_TEXT]
    assert len(filled.asked) == len(filled.targets) == 8
    assert filled.num_tokens == packed.num_tokens == batch.num_tokens
    assert filled.shape == (2, 128)


def test_texts_of_one_length_are_rows_of_it_and_others_come_in_few_forms() -> None:
    even = PackedText.of(batch_of((4, 4), None), 8).packing
    assert (even.even, even.longest) == (True, 4)
    forms = {PackedText.of(batch_of((40, 40 - less), None), 64).form for less in range(1, 10)}
    assert len(forms) <= 2


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{source}\n" for source, _ in toy_pairs(120)), "utf-8")
    return path


def config_of(text: Path, kind: str, **train: Any) -> RunConfig:
    plain = {
        "data": {"train": [{"files": [str(text)], "format": "text"}], "valid_size": 5},
        "tokenizer": {"vocab_size": 300},
        "model": {"kind": kind, "dropout": 0.0, "attention_dropout": 0.0, **SIZES},
        "objective": {"name": "causal" if kind == "gpt" else "masked", "block": 24},
        "train": {"max_updates": 9, "batch_tokens": 200, "device": "cpu", **train},
    }
    return resolve_config(plain)


def prepared_for(config: RunConfig, text: Path) -> Prepared:
    return prepare(config.data, config.tokenizer, seed=1, cache=text.parent / "cache")


def test_an_update_of_packed_texts_is_that_of_padded_ones(text: Path) -> None:
    found = []
    for pack in (True, False):
        config = config_of(text, "bert", pack=pack)
        prepared = prepared_for(config, text)
        training = Training(config, prepared, CPU)
        updates = Batches(config, prepared, CPU, packed=training.packed).updates(0, 0)
        for data in itertools.islice(updates, 3):
            training.progress.update += 1
            learnt = learn(training, data)
            assert isinstance(data.micro_batches[0].batch, PackedText if pack else TextBatch)
        found.append((learnt.loss, learnt.norm))
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_blocks_of_text_are_of_one_form(text: Path) -> None:
    config = config_of(text, "gpt")
    prepared = prepared_for(config, text)
    assert captures(learning_of(config), config, Training(config, prepared, CPU).model)
    updates = itertools.islice(Batches(config, prepared, CPU).updates(0, 0), 9)
    batches = [update.micro_batches[0].batch for update in updates]
    forms = {batch.form for batch in batches if isinstance(batch, PairBatch)}
    assert 1 <= len(forms) <= 3  # the last block of the text is shorter, and the last batch has fewer
    other = config_of(text, "gpt", pack=False)
    assert not captures(learning_of(other), other, Training(other, prepared, CPU).model)

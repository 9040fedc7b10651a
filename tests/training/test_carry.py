"""A state that goes on from block to block, the mean of NT-ASGD, and the perplexity of further text."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from dragoman.checkpoint.model import load_model
from dragoman.cli.main import app
from dragoman.data.blocks import Blocks
from dragoman.data.corpus import Prepared, prepare
from dragoman.errors import UserError
from dragoman.learning import learning_of
from dragoman.learning.causal import CarriedCausal, Stream
from dragoman.learning.cross_entropy import CrossEntropy, Penalised
from dragoman.learning.resolve import resolve_config
from dragoman.models.base import EncoderDecoder
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training.display import NoDisplay
from dragoman.training.optim import MovingAverage
from dragoman.training.session import train_run
from dragoman.training.state import Training
from killing import assert_same_checkpoint, train_until_killed
from toy import toy_pairs

PLAIN = dict.fromkeys(
    ("input_dropout", "dropout", "output_dropout", "embedding_dropout", "weight_dropout"), 0.0
)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(f"{source}\n" for source, _ in toy_pairs(60)), "utf-8")
    return str(path)


def config_of(text: str, *overrides: str) -> RunConfig:
    plain: dict[str, Any] = {
        "data": {"train": [{"files": [text], "format": "text"}], "valid_size": 10},
        "tokenizer": {"vocab_size": 300},
        "model": {"kind": "ulmfit", "model_dim": 8, "hidden_dim": 12, "num_layers": 2},
        "objective": {"name": "causal", "block": 12, "carry": True, "temporal_penalty": 1.0},
        "optim": {"name": "sgd", "rate": 1.0, "momentum": 0.0},
        "schedule": {"name": "constant", "warmup": 0},
        "train": {
            **{"max_updates": 8, "batch_tokens": 60, "device": "cpu", "asgd": 1},
            **{"log_every": 4, "validate_every": 2, "save_every": 2},
        },
    }
    return resolve_config(plain, overrides)


def prepared_for(config: RunConfig, tmp_path: Path) -> Prepared:
    return prepare(config.data, config.tokenizer, seed=config.seed, cache=tmp_path / "cache")


def test_block_by_block_it_is_one_long_text(text: str, tmp_path: Path) -> None:
    """And nothing goes back into the blocks before; rows that end early are the last ones."""
    config = config_of(text, "objective.temporal_penalty=0", *(f"model.{k}={v}" for k, v in PLAIN.items()))
    prepared = prepared_for(config, tmp_path)
    model = Training(config, prepared, torch.device("cpu")).model.double()
    assert isinstance(model, EncoderDecoder)
    whole = Stream(Blocks(prepared.valid, 10_000)).batch(np.array([0]), 0)
    blocks = Stream(Blocks(prepared.valid, 12), carried=True)
    carried, total = CarriedCausal(0.0, 0.0), 0.0
    for number in range(len(blocks)):
        batch = blocks.batch(np.array([number]), 0)
        assert batch.goes_on == (number > 0)
        model.zero_grad()
        loss = carried(model, batch)
        loss.total.backward()
        total += loss.nll.item()
        assert carried.state.pasts is not None
        assert not carried.state.pasts[0].hidden.requires_grad
    assert total == pytest.approx(CrossEntropy()(model, whole).nll.item(), rel=1e-12)
    assert len(blocks) == 3
    validator = learning_of(config).validator(config, prepared, torch.device("cpu"), tracks=1)
    autocast = torch.autocast("cpu", enabled=False)
    validated = validator.run(model, autocast).metrics["loss"]  # from logits in float32
    assert validated == pytest.approx(total / whole.num_tokens, rel=1e-7)
    assert validator.estimated_seconds(model, autocast, lambda: 0.0) is None  # there are no few blocks of it
    fresh = Penalised(0.0, 0.0)
    apart = sum(fresh(model, blocks.batch(np.array([n]), 0)).nll.item() for n in range(len(blocks)))
    assert apart != pytest.approx(total, rel=1e-6)
    one_row = blocks.batch(np.array([2]), 0)
    carried.state.pasts = tuple(past.rows(torch.tensor([0, 0, 0])) for past in carried.state.pasts or ())
    carried(model, one_row)
    assert carried.state.pasts[0].hidden.shape[1] == 1


def test_a_state_that_is_not_finite_begins_anew(text: str, tmp_path: Path) -> None:
    config = config_of(text)
    prepared = prepared_for(config, tmp_path)
    training = Training(config, prepared, torch.device("cpu"))
    carried = CarriedCausal(0.0, 0.0)
    with torch.no_grad():
        training.model.projection.weight.fill_(math.inf)
    carried(training.model, Stream(Blocks(prepared.train, 12), carried=True).batch(np.array([0]), 0))
    assert all(past.hidden.isfinite().all() for past in carried.state.pasts or ())


def test_killed_and_resumed_it_is_bit_identical(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text is gone through more than once; the mean begins before the kill."""
    config = config_of(text)
    prepared = prepared_for(config, tmp_path)
    whole, killed = (Run.create(tmp_path / name, config, prepared) for name in ("whole", "killed"))
    is_better = "dragoman.training.state.TrainingProgress.is_better"
    with monkeypatch.context() as patch:
        patch.setattr(is_better, lambda self, _metric, _found: self.update == 2)
        train_run(whole, NoDisplay())
        train_until_killed(killed, 7, patch)
        train_run(Run.open(killed.directory), NoDisplay())
    parts = ("model.safetensors", "ema.safetensors", "carried.safetensors", "state.json")
    assert_same_checkpoint(whole, killed, "0000008", parts)
    assert '"average_since": 5' in (whole.checkpoints / "0000008" / "state.json").read_text()
    assert "from update 5 on the mean of the weights is used" in (whole.directory / "log.txt").read_text()
    _further_text(whole, text)


def _further_text(run: Run, text: str) -> None:
    """By the command, and by one long pass over the same text."""
    done = CliRunner().invoke(app, ["evaluate", str(run.directory), text, "--device", "cpu"])
    assert done.exit_code == 0, done.output
    found = {name: float(value) for name, value in (line.split("\t") for line in done.output.splitlines())}
    lines = Path(text).read_text("utf-8").splitlines()
    loaded = load_model(run.directory)
    ids = [2, *(piece for line in lines for piece in (1, *loaded.tgt_tokenizer.encode(line), 2))]
    model, row = loaded.model, torch.tensor([ids])
    with torch.no_grad():
        hidden = model(row[:, :1], torch.ones(1, 1, dtype=torch.bool), row[:, 1:-1])
        scores = model.project(hidden).log_softmax(-1)[0].gather(1, row[0, 2:, None])[:, 0]
    nll = -scores[row[0, 2:] != 1].double().sum().item()
    words = sum(len(line.split()) + 1 for line in lines)
    assert found["word_perplexity"] == pytest.approx(math.exp(nll / words), rel=1e-4)
    done = CliRunner().invoke(app, ["evaluate", str(run.directory)])
    assert "give the files of text after the run" in str(done.exception)


def test_the_mean_is_that_of_all_weights_since_an_update() -> None:
    model = torch.nn.Linear(2, 1).double()
    average, seen = MovingAverage(model, 0.0), []
    for update in range(1, 7):
        with torch.no_grad():
            model.weight.add_(update)
        finite = None if update % 2 else torch.tensor(True)
        average.update(update, finite, since=4 if update >= 4 else None)
        seen.append(model.weight.detach().clone())
        expected = seen[-1] if update < 4 else torch.stack(seen[3:]).mean(dim=0)
        torch.testing.assert_close(average.tensors["weight"], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("model={kind: gpt, max_positions: 64}", "only model.kind ulmfit has a state that can go on"),
        ("objective.name=prefix", "a state goes on in plain causal language models alone"),
        ("train.batch_tokens=8", "has no room for one block"),
        ("data.train.0.weight=2", "one text of weight 1 is read in its order"),
        ("train.ema=0.9", "there is one average"),
        ("train.asgd=-1", "asgd: expected a whole number of at least 0"),
    ],
)
def test_what_does_not_go_with_it_is_refused(text: str, override: str, message: str) -> None:
    if override.startswith("data.train"):
        plain = {"train": [{"files": [text], "format": "text", "weight": 2}]}
        override = f"data={plain}"
    with pytest.raises(UserError, match=message):
        config_of(text, override)

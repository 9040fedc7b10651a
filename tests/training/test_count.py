"""A run that is fitted by counting is a run like any other: made, killed, resumed, read and used."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.config import apply_overrides
from dragoman.data.batch import PairBatch
from dragoman.data.corpus import Prepared, prepare
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.models.markov import Markov
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.runs.opening import load
from dragoman.training import checkpoints as policy
from dragoman.training import plan
from dragoman.training.api import resume, train
from dragoman.training.display import NoDisplay, Plain
from dragoman.training.report import write_reasons
from dragoman.training.session import train_run
from toy import PARTS_OF_A_RUN

MakeConfig = Callable[..., RunConfig]


@pytest.fixture(scope="module")
def counted(plain: dict[str, Any]) -> dict[str, Any]:
    """The toy configuration with a counting model, and nothing that says when to stop."""
    kept = {key: value for key, value in plain.items() if key not in ("optim", "schedule")}
    train = {"validate_sentences": 4, "device": "cpu", "batch_tokens": 200}
    return {**kept, "model": {"preset": "markov-skips"}, "train": train}


@pytest.fixture
def new_run(tmp_path: Path, counted: dict[str, Any], prepared: Prepared) -> Callable[..., Run]:
    def make(*overrides: str, name: str = "run") -> Run:
        return Run.create(tmp_path / name, resolve_config(apply_overrides(counted, overrides)), prepared)

    return make


def same_files(a: Run, b: Run) -> None:
    files = [f"checkpoints/0000001/{name}" for name in ("model.safetensors", "state.json", "manifest.json")]
    for file in (*files, "metrics.jsonl", "best.json", "config.yaml"):
        assert (a.directory / file).read_bytes() == (b.directory / file).read_bytes(), file


def test_the_run_directory_is_like_any_other(new_run: Callable[..., Run], prepared: Prepared) -> None:
    run = new_run()
    outcome = train_run(run, NoDisplay())
    assert (outcome.reason, outcome.update, outcome.exit_status) == ("every pair has been counted", 1, 0)
    assert {p.name for p in run.directory.iterdir() if not p.name.startswith(".")} == PARTS_OF_A_RUN
    assert [p.name for p in run.checkpoints.iterdir()] == ["0000001"]
    (record,) = run.metrics
    assert record["kind"] == "valid"
    assert record.keys() >= {"loss", "perplexity", "accuracy", "bleu", "chrf", "exact"}
    assert run.best == {"name": "0000001", "metric": "loss", "value": record["loss"]}
    state = json.loads((run.checkpoints / "0000001" / "state.json").read_bytes())
    store = prepared.train
    assert state["progress"]["tokens"] == int(store.tgt_lengths.sum()) + len(store)
    log = (run.directory / "log.txt").read_text("utf-8")
    assert "valid at 1" in log
    assert "finished at update 1" in log
    assert f"dragoman translate {shlex.quote(str(run.directory))}" in log
    assert Run.open(run.directory).config == run.config


def test_the_plan_is_in_the_log(new_run: Callable[..., Run]) -> None:
    run = new_run()
    write_reasons(run.directory, [("cleaning", "nothing is left out")])
    train_run(run, NoDisplay())
    assert "plan: cleaning: nothing is left out" in (run.directory / "log.txt").read_text("utf-8")


def test_a_finished_run_says_so(new_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run()
    train_run(run, NoDisplay())
    before = {p: p.read_bytes() for p in run.checkpoints.rglob("*") if p.is_file()}
    monkeypatch.setattr(Markov, "count", lambda *_: pytest.fail("counted again"))
    again = resume(run, quiet=True)
    assert again.outcome is not None
    assert again.outcome.reason == "every pair has been counted"
    assert {p: p.read_bytes() for p in run.checkpoints.rglob("*") if p.is_file()} == before
    assert len(run.metrics) == 1


class Crash(BaseException):
    pass


@pytest.mark.parametrize("moment", ["table", "save", "best"])
def test_a_run_that_died_starts_again_and_ends_with_the_same_bytes(
    new_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    whole, killed = new_run(name="whole"), new_run(name="killed")
    train_run(whole, NoDisplay())

    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch:
        if moment == "table":
            patch.setattr("dragoman.nn.skip_votes.MaskedTable.fill", crash)
        elif moment == "save":
            patch.setattr(policy.checkpoint, "save", crash)
        else:
            patch.setattr(policy, "write_best", crash)
        with pytest.raises(Crash):
            train_run(killed, NoDisplay())
    train_run(killed, NoDisplay())
    same_files(whole, killed)


def test_kill_9_in_the_middle(new_run: Callable[..., Run]) -> None:
    whole, killed = new_run(name="whole"), new_run(name="killed")
    train_run(whole, NoDisplay())
    script = (
        "import os, signal, sys\n"
        "from dragoman.nn.skip_votes import MaskedTable\n"
        "from dragoman.training.api import resume\n"
        "MaskedTable.fill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "resume(sys.argv[1], quiet=True)\n"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script, str(killed.directory)], env=environment, check=False)
    assert done.returncode == -signal.SIGKILL
    assert killed.last is None
    train_run(killed, NoDisplay())
    same_files(whole, killed)


def test_a_signal_stops_between_batches(
    new_run: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, read = new_run(), Markov.count

    def interrupted(model: Markov, batches: Any) -> None:
        def passing() -> Any:
            for number, batch in enumerate(batches):
                if number == 2:
                    os.kill(os.getpid(), signal.SIGTERM)
                yield batch

        read(model, passing())

    with monkeypatch.context() as patch:
        patch.setattr(Markov, "count", interrupted)
        outcome = train_run(run, Plain())
    assert (outcome.exit_status, outcome.update, run.last) == (143, 0, None)
    shown = capsys.readouterr().out
    assert "stopped by SIGTERM before there was anything to save" in shown
    assert f"start again with:  dragoman resume {shlex.quote(str(run.directory))}" in shown
    assert train_run(run, NoDisplay()).update == 1


def test_weights_of_corpora_count_so_often(
    tmp_path: Path, counted: dict[str, Any], corpus: tuple[str, str], cache: Path
) -> None:
    totals = []
    for weight in (1, 3):
        data = {**counted["data"], "train": [{"files": list(corpus), "weight": weight}]}
        config = resolve_config({**counted, "data": data})
        prepared = prepare(config.data, config.tokenizer, seed=config.seed, cache=cache)
        run = Run.create(tmp_path / str(weight), config, prepared)
        train_run(run, NoDisplay())
        model = run.translator(device="cpu").model
        assert isinstance(model, Markov)
        table = model.decoder.tables[0]
        totals.append(table.totals.item())  # type: ignore[union-attr]
    assert totals[1] == 3 * totals[0]


def test_every_pair_is_counted_once(new_run: Callable[..., Run], prepared: Prepared) -> None:
    run, seen = new_run(), []
    read = Markov.count

    def watched(model: Markov, batches: Any) -> None:
        for _ in range(2):
            seen.append(sorted(tuple(row.tolist()) for batch in batches for row in unpadded(batch)))
        read(model, batches)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Markov, "count", watched)
        train_run(run, NoDisplay())
    store = prepared.train
    expected = sorted((*store.tgt(i).tolist(), 2) for i in range(len(store)))
    assert seen == [expected, expected]


def unpadded(batch: PairBatch) -> list[torch.Tensor]:
    return [row[mask] for row, mask in zip(batch.tgt_out, batch.tgt_mask, strict=True)]


def test_without_validation_the_last_is_served(tmp_path: Path, counted: dict[str, Any], cache: Path) -> None:
    config = resolve_config(apply_overrides(counted, ["data.valid_size=0"]))
    prepared = prepare(config.data, config.tokenizer, seed=config.seed, cache=cache)
    run = Run.create(tmp_path / "run", config, prepared)
    assert train_run(run, NoDisplay()).exit_status == 0
    assert (run.best, run.last, run.metrics) == (None, "0000001", [])
    assert len(load(run.directory, device="cpu").translate(["ab"])) == 1


def test_nothing_is_timed_and_the_plan_says_what_is_done(
    tmp_path: Path,
    corpus: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(plan, "estimate", lambda *_: pytest.fail("updates were timed"))
    overrides = ["model.kind=markov", "model.order=3", "tokenizer.vocab_size=300", "train.device=cpu"]
    run = train(*corpus, out=tmp_path / "run", overrides=overrides)
    shown = capsys.readouterr().out
    assert "counts of n-grams (Markov), order 3" in shown
    assert "one pass over the data" in shown
    assert "counting pairs, table 4" in shown
    assert "speed" not in shown
    assert run.best is not None
    assert run.best["metric"] == "chrf"
    again = train(*corpus, out=tmp_path / "run", overrides=overrides, quiet=True)
    assert again.outcome is not None
    assert again.outcome.update == 1


def test_pure_frequencies_can_be_trained(new_run: Callable[..., Run]) -> None:
    """What was never seen has (almost) no probability, but no number is infinite."""
    run = new_run("model.smoothing=0")
    train_run(run, NoDisplay())
    (record,) = run.metrics
    assert 0 < record["loss"] < 100


def test_gradients_still_need_an_end_and_a_rate(counted: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="nothing ends this run"):
        resolve_config({**counted, "model": {"preset": "lstm"}})
    assert resolve_config(counted).train.max_epochs == 1
    assert resolve_config({**counted, "train": {"patience": 3}}).train.max_epochs is None


def test_translate_score_and_evaluate(new_run: Callable[..., Run], corpus: tuple[str, str]) -> None:
    run = new_run()
    train_run(run, NoDisplay())
    directory = str(run.directory)
    for arguments in (
        ["translate", directory, "ab cd", "--beam", "3"],
        ["score", directory, *corpus],
        ["evaluate", directory, *corpus],
    ):
        done = CliRunner().invoke(app, [*arguments, "--device", "cpu"])
        assert done.exit_code == 0, done.output
        assert done.output.strip()

"""A run of the real Transformer from beginning to end, and the same one interrupted."""

import math
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman import checkpoint
from dragoman.data.corpus import Prepared
from dragoman.runs.config import RunConfig
from dragoman.runs.directory import Run
from dragoman.training import loop
from dragoman.training.batches import UpdateBatch
from dragoman.training.display import NoDisplay
from dragoman.training.loop import learn
from dragoman.training.session import train_run
from dragoman.training.state import Training
from killing import assert_same_checkpoint, train_until_killed

MakeConfig = Callable[..., RunConfig]
MakeRun = Callable[..., Run]
CtrlC = Callable[[bool], object]


@pytest.fixture
def ctrl_c() -> Iterator[CtrlC]:
    """Decides what Ctrl-C does before a run begins, whatever started the tests: ends it, or is ignored."""
    before = signal.getsignal(signal.SIGINT)

    def decide(ignored: bool) -> object:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)
        return signal.getsignal(signal.SIGINT)

    yield decide
    signal.signal(signal.SIGINT, before)


def same_files(a: Run, b: Run, checkpoint_name: str) -> None:
    assert_same_checkpoint(a, b, checkpoint_name)
    for file in ("metrics.jsonl", "best.json"):
        assert (a.directory / file).read_bytes() == (b.directory / file).read_bytes(), file


# --- a run -------------------------------------------------------------------------------------------


def test_a_run_learns_and_leaves_everything_in_place(make_run: MakeRun) -> None:
    run = make_run("train.max_updates=60", "train.validate_every=20", "optim.rate=1e-2")
    records = run.metrics
    train = [r for r in records if r["kind"] == "train"]
    valid = [r for r in records if r["kind"] == "valid"]
    assert [r["update"] for r in train] == list(range(4, 61, 4))
    assert [r["update"] for r in valid] == [20, 40, 60]
    assert train[-1]["loss"] < train[0]["loss"]  # by about a third
    assert valid[-1]["perplexity"] == pytest.approx(math.exp(valid[-1]["loss"]))
    assert {"bleu", "chrf", "accuracy", "forced_loss", "free_loss"} <= valid[0].keys()
    assert run.best is not None
    assert run.best["value"] == min(r["loss"] for r in valid)
    assert run.last == "0000060"
    assert run.outcome is not None
    assert run.outcome.exit_status == 0
    assert len(run.translator().translate(["ab c", "e"])) == 2
    log = (run.directory / "log.txt").read_text()
    assert "update 60/60" in log
    assert "dragoman translate" in log


def test_the_same_run_twice_is_the_same_bit_for_bit(make_run: MakeRun) -> None:
    runs = [make_run(name=name) for name in ("one", "two")]
    same_files(runs[0], runs[1], "0000020")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, make_config: MakeConfig, prepared: Prepared) -> Run:
    """A run with everything switched on that was never stopped."""
    options = ("train.ema=0.9", "train.accumulate=2", "train.average=2", "schedule.name=plateau")
    run = Run.create(tmp_path_factory.mktemp("whole") / "run", make_config(*options), prepared)
    train_run(run, NoDisplay())
    return run


def test_steps_relative_to_the_weights_go_on_too(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    relative = ("optim.name=adamw", "optim.relative=true", "optim.rate=2e-2", "train.max_updates=8")
    killed = make_run(*relative, name="killed", train=False)
    train_until_killed(killed, 7, monkeypatch)
    train_run(killed, NoDisplay())
    same_files(make_run(*relative), killed, "0000008")


@pytest.mark.parametrize("stop_at", [1, 7, 10, 19])
@pytest.mark.parametrize("ignored", [False, True], ids=["terminal", "background"])
def test_stopping_by_a_signal_and_going_on_changes_nothing(
    whole: Run,
    tmp_path: Path,
    prepared: Prepared,
    monkeypatch: pytest.MonkeyPatch,
    ctrl_c: CtrlC,
    stop_at: int,
    ignored: bool,
) -> None:
    """In the background a shell starts programs that ignore Ctrl-C; both find their own again afterwards."""
    before = ctrl_c(ignored)
    stopped = Run.create(tmp_path / "stopped", whole.config, prepared)
    number = signal.SIGINT if stop_at % 2 else signal.SIGTERM
    monkeypatch.setattr(loop, "learn", raise_signal_at(stop_at, number))
    outcome = train_run(stopped, NoDisplay())
    assert (outcome.update, outcome.exit_status) == (stop_at, 128 + number)
    assert stopped.last == checkpoint.checkpoint_name(stop_at)
    assert "dragoman resume" in (stopped.directory / "log.txt").read_text()
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is before
    outcome = train_run(Run.open(stopped.directory), NoDisplay())
    assert outcome.exit_status == 0
    same_files(whole, stopped, "0000020")
    ema = [run.checkpoints / "0000020" / "ema.safetensors" for run in (whole, stopped)]
    assert ema[0].read_bytes() == ema[1].read_bytes()


def raise_signal_at(update: int, number: int, times: int = 1) -> Callable[..., loop.Learnt]:
    def learn_with_signal(training: Training, data: UpdateBatch) -> loop.Learnt:
        learnt = learn(training, data)
        if training.progress.update == update:
            for _ in range(times):
                os.kill(os.getpid(), number)
        return learnt

    return learn_with_signal


def test_stopping_under_scheduled_sampling_changes_nothing(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The share falls with the number of the update, and the coins are seeded by it."""
    options = ("model={kind: rnn, model_dim: 12, weight_dropout: 0.2, variational_dropout: true}",)
    options += ("objective.teacher_forcing_schedule=inverse_sigmoid", "objective.teacher_forcing_end=0.2")
    options += ("objective.teacher_forcing_updates=15",)
    whole = make_run(*options, name="whole")
    stopped = make_run(*options, name="stopped", train=False)
    monkeypatch.setattr(loop, "learn", raise_signal_at(7, signal.SIGTERM))
    assert train_run(stopped, NoDisplay()).update == 7
    monkeypatch.undo()
    train_run(Run.open(stopped.directory), NoDisplay())
    same_files(whole, stopped, "0000020")
    taught = make_run(options[0], name="taught")
    assert taught.metrics[0]["loss"] != whole.metrics[0]["loss"]


def test_a_second_ctrl_c_leaves_at_once(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, ctrl_c: CtrlC
) -> None:
    ctrl_c(False)
    run = make_run(train=False)
    monkeypatch.setattr(loop, "learn", raise_signal_at(7, signal.SIGINT, times=2))
    with pytest.raises(KeyboardInterrupt):
        train_run(run, NoDisplay())
    assert run.last == "0000005"
    monkeypatch.undo()
    assert train_run(run, NoDisplay()).update == 20


def test_a_damaged_checkpoint_costs_only_itself(make_run: MakeRun) -> None:
    whole = make_run("train.max_updates=30", name="whole")
    damaged = make_run("train.max_updates=20", name="damaged")
    path = damaged.checkpoints / "0000020" / "optim.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x55")
    from dragoman.training.api import resume

    resume(damaged.directory, ["train.max_updates=30"], quiet=True)
    assert "0000020/optim.safetensors" in (damaged.directory / "log.txt").read_text()
    assert (damaged.checkpoints / "0000020.damaged").is_dir()
    for file in ("model.safetensors", "optim.safetensors", "state.json"):
        left, right = (run.checkpoints / "0000030" / file for run in (whole, damaged))
        assert left.read_bytes() == right.read_bytes()


def test_the_metrics_are_cut_back_to_the_checkpoint(make_run: MakeRun) -> None:
    run = make_run()
    path = run.directory / "metrics.jsonl"
    before = path.read_bytes()
    path.write_bytes(before + b'{"kind": "train", "update": 99}\n{"half a li')
    train_run(run, NoDisplay())
    assert path.read_bytes() == before
    path.write_bytes(before[:-10])
    train_run(run, NoDisplay())
    assert "10 bytes are missing" in (run.directory / "log.txt").read_text()


def test_checkpoints_that_could_not_be_removed_are_removed_by_the_next_command(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("train.save_every=5", "train.validate_every=5", "train.keep=2")
    whole = make_run(*options, name="whole")
    monkeypatch.setattr(checkpoint, "prune", lambda *_: None)
    run = make_run(*options, name="cut short")
    assert len(checkpoint.names(run.checkpoints)) == 4
    monkeypatch.undo()
    train_run(run, NoDisplay())
    assert checkpoint.names(run.checkpoints) == checkpoint.names(whole.checkpoints)
    same_files(whole, run, "0000020")
    (run.checkpoints / "0000015").rename(run.checkpoints / ".0000015.01234567.unfinished")  # being removed
    train_run(run, NoDisplay())
    assert [path.name for path in run.checkpoints.iterdir()] == ["0000020"]

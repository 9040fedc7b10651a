"""Runs of several processes for `test_distributed.py`, forked from one process that has torch already.

    python crew_runs.py DIRECTORY CONFIG.json

Each ends as a run directory DIRECTORY/NAME; what else there is to tell goes into DIRECTORY/told.json.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # torch.optim imports it at its first use
import torch.distributed as dist
import torch.distributed.fsdp
import torch.distributed.tensor

from dragoman.cli.main import app
from dragoman.config import apply_overrides
from dragoman.data.corpus import prepare
from dragoman.errors import UserError
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from dragoman.training.api import resume
from dragoman.training.budget import Clock

DOUBLE = torch.float64
KILLS = 2


def open_store() -> Any:
    """As torchrun has it, on a port that was free."""
    return dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)  # pyright: ignore


def start(size: int, work: Callable[[], object], say: Path, store: Any = None) -> tuple[list[int], Any]:
    """As torchrun starts workers: the parent keeps the store, and whatever is in it."""
    store = store or open_store()
    children = []
    for rank in range(size):
        child = os.fork()
        if not child:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port)}
            os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "True"
            with say.open("a") as file, redirect_stdout(file), redirect_stderr(file):
                status = _status_of(work)
            os._exit(status)
        children.append(child)
    return children, store


def _status_of(work: Callable[[], object]) -> int:
    try:
        work()
    except UserError as error:
        print(f"dragoman: {error}")
        return 2
    except SystemExit as error:
        return int(error.code or 0)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def ended(children: list[int]) -> list[int]:
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


class Runs:
    def __init__(self, directory: Path, plain: dict[str, Any]) -> None:
        self.directory, self.plain = directory, plain
        self.told: dict[str, Any] = {}

    def make(self, name: str, *overrides: str, dtype: torch.dtype = torch.float32, size: int = 1) -> Path:
        """A run that is trained by so many processes from the beginning to its end."""
        out = self.create(name, *overrides)
        self.train(name, size, dtype)
        return out

    def create(self, name: str, *overrides: str) -> Path:
        config = resolve_config(apply_overrides(self.plain, overrides))
        prepared = prepare(config.data, config.tokenizer, seed=config.seed, cache=self.directory / "prepared")
        return Run.create(self.directory / name, config, prepared).directory

    def begin(
        self, name: str, size: int, dtype: torch.dtype, *overrides: str, store: Any = None
    ) -> tuple[list[int], Any]:
        def work() -> None:
            torch.set_default_dtype(dtype)
            outcome = resume(self.directory / name, overrides, quiet=True).outcome
            raise SystemExit(outcome.exit_status if outcome else 1)

        return start(size, work, self.directory / f"{name}.out", store)

    def train(self, name: str, size: int, dtype: torch.dtype, *overrides: str) -> None:
        children, _store = self.begin(name, size, dtype, *overrides)
        self.told.setdefault(name, []).append(ended(children))


def equal_runs(runs: Runs) -> None:
    """One process, two, three, in parts; a change of the number on the way."""
    runs.make("alone", dtype=DOUBLE)
    runs.make("two", dtype=DOUBLE, size=2)
    runs.make("three", "train.shard=true", dtype=DOUBLE, size=3)  # in the second turn two of them only wait
    runs.make("changed", "train.shard=true", "train.max_updates=7", dtype=DOUBLE, size=2)
    runs.train("changed", 1, DOUBLE, "train.max_updates=14")
    runs.train("changed", 2, DOUBLE, "train.max_updates=20")
    for name, size, shard in (("alone32", 1, "false"), ("two32", 2, "false"), ("parts32", 2, "true")):
        runs.make(name, f"train.shard={shard}", size=size)
    runs.make("rnn", *RECURRENT, dtype=DOUBLE)
    runs.make("rnn-parts", "train.shard=true", *RECURRENT, dtype=DOUBLE, size=2)


class ReadingClock(Clock):
    """A fiftieth of a second passes whenever it is read. Those of other processes than the first are an hour
    ahead: nobody may go by them."""

    def __init__(self) -> None:
        self.now = 3600.0 * int(os.environ.get("RANK", "0"))

    def seconds(self) -> float:
        self.now += 0.02
        return self.now


def budgeted_runs(runs: Runs) -> None:
    """The clock of the first process brings the learning rate down and ends the run."""
    for name, size in (("alone-timed", 1), ("two-timed", 2)):
        out = runs.create(name, "train.max_updates=null", "train.max_minutes=0.1", *TIMED)

        def work(out: Path = out) -> None:
            torch.set_default_dtype(DOUBLE)
            outcome = resume(out, quiet=True, clock=ReadingClock()).outcome
            raise SystemExit(outcome.exit_status if outcome else 1)

        children, _store = start(size, work, runs.directory / f"{name}.out")
        runs.told[name] = [ended(children), Run.open(out).last]


TIMED = ("schedule.name=linear", "schedule.by=minutes", "train.validations=4", "train.log_every=1")
RECURRENT = ("model={kind: rnn, model_dim: 16}", "objective.teacher_forcing=0.5", "train.max_updates=5")


def wait_for_updates(out: Path) -> None:
    while not (out / "timing.jsonl").exists() or not (out / "timing.jsonl").read_text():
        time.sleep(0.01)


def stopped_run(runs: Runs) -> None:
    """SIGTERM to one of two processes, then on to the end."""
    out = runs.create("stopped")
    children, _store = runs.begin("stopped", 2, DOUBLE)
    wait_for_updates(out)
    os.kill(children[1], signal.SIGTERM)
    runs.told["stopped"] = [ended(children), Run.open(out).last]
    runs.train("stopped", 2, DOUBLE)


def killed_run(runs: Runs) -> None:
    """One process after the other is killed, each a little later than the one before. As torchrun does it,
    the other one is told to stop, and both are started again with the same store."""
    runs.create("killed")
    store, statuses = open_store(), []
    for kill in range(KILLS):
        children, _ = runs.begin("killed", 2, DOUBLE, store=store)
        time.sleep(0.1 * kill)
        os.kill(children[kill % 2], signal.SIGKILL)
        os.kill(children[1 - kill % 2], signal.SIGTERM)
        statuses.append(ended(children))
    children, _ = runs.begin("killed", 2, DOUBLE, store=store)
    runs.told["killed"] = [statuses, ended(children)]


def orphaned_run(runs: Runs) -> None:
    """The store goes, and with it whoever has started the processes."""
    out = runs.create("orphaned", "train.max_updates=1000000", "train.validate_every=1000000")
    children, store = runs.begin("orphaned", 2, DOUBLE, "train.save_every=1000000")
    wait_for_updates(out)
    del store
    runs.told["orphaned"] = [ended(children)]


def refused_runs(runs: Runs) -> None:
    """Mistakes: each is told once, whoever meets it."""
    runs.create("few", "train.accumulate=1")
    runs.train("few", 2, DOUBLE)
    locked = runs.create("locked")
    with Run.open(locked).locked():
        runs.train("locked", 2, DOUBLE)
    out = runs.directory / "recipe.out"
    missing = str(runs.directory / "no.yaml")
    children, _store = start(2, lambda: app(["train", missing], standalone_mode=False), out)
    runs.told["recipe"] = [ended(children)]


def main() -> None:
    directory, config = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    torch.set_num_threads(1)
    runs = Runs(directory, config)
    for each in (equal_runs, budgeted_runs, stopped_run, killed_run, orphaned_run, refused_runs):
        each(runs)
    (directory / "told.json").write_text(json.dumps(runs.told))


if __name__ == "__main__":
    main()

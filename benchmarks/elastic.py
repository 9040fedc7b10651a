"""Does a training whose machines come and go at random moments end where one process does?

    python benchmarks/elastic.py --changes 10

Machines are torchrun agents of this computer with one process each (gloo), started as
deploy/ray_torchrun.py starts them: `--nnodes 1:3`, and the store in a process of its own. At random moments
one of them is killed with its process, or a further one is started. In the end losses, weights and updates
are compared with those of one process that was left alone; they may differ by the order of summation.
"""

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.distributed import TCPStore

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "elastic.md"
MOST = 3
WORDS = ("red", "blue", "old", "new", "cat", "dog", "fish", "hill")
SETTINGS = (
    *("tokenizer.vocab_size=300", "model.num_layers=1", "model.model_dim=32", "model.bias=false"),
    *("train.accumulate=6", "train.save_every=10", "train.validate_every=100000", "train.batch_tokens=200"),
)


class Agents:
    """The machines that there are."""

    def __init__(self, directory: Path, *resumed: str) -> None:
        self._directory, self._resumed, self._started = directory, resumed, 0
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.alive: list[subprocess.Popen[bytes]] = []

    def add(self) -> None:
        self._started += 1
        conf = "is_host=0,join_timeout=600,last_call_timeout=2,keep_alive_interval=1"
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes", f"1:{MOST}"]
        command += ["--nproc-per-node", "1", "--max-restarts", "20", "--rdzv-backend", "c10d"]
        command += ["--rdzv-endpoint", f"127.0.0.1:{self._store.port}", "--rdzv-id", "x", "--rdzv-conf", conf]
        command += ["-m", "dragoman", "resume", *self._resumed, "-q"]
        with (self._directory / f"agent-{self._started}.log").open("wb") as log:
            self.alive.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))

    def kill(self, chance: random.Random) -> None:
        """An agent and all its processes, as when a machine is switched off."""
        agent = self.alive.pop(chance.randrange(len(self.alive)))
        for pid in (agent.pid, *children_of(agent.pid)):
            os.kill(pid, signal.SIGKILL)
        agent.wait()

    def ended(self) -> bool:
        return any(agent.poll() is not None for agent in self.alive)

    def end(self) -> list[int]:
        return [agent.wait(timeout=120) for agent in self.alive]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def dragoman(*arguments: object) -> None:
    subprocess.run([sys.executable, "-m", "dragoman", *map(str, arguments)], check=True)


def updates(run: Path) -> int:
    """Of the newest checkpoint."""
    return max((int(path.name) for path in (run / "checkpoints").glob("[0-9]*")), default=0)


def changed(run: Path, length: str, changes: int, chance: random.Random) -> Iterator[str]:
    """A row for each machine that came or went while the run was trained."""
    agents = Agents(run.parent, str(run), length)
    agents.add()
    began = time.monotonic()
    for number in range(1, changes + 1):
        reached = updates(run)
        while updates(run) == reached and not agents.ended():  # every crew gets some updates done
            time.sleep(0.2)
        time.sleep(chance.uniform(0, 3))
        if agents.ended():
            yield f"| {number} | the training had ended | | |"
            break
        comes = len(agents.alive) == 1 or (len(agents.alive) < MOST and chance.random() < 0.5)
        agents.add() if comes else agents.kill(chance)
        what = "comes" if comes else "killed"
        yield f"| {number} | {what} | {len(agents.alive)} | {updates(run)} | {time.monotonic() - began:.0f} |"
    status = agents.end()
    if any(status):
        for log in sorted(run.parent.glob("agent-*.log")):
            print(log.name, log.read_text("utf-8", errors="replace")[-3000:], file=sys.stderr)
    yield f"\nExit statuses of the machines that were there at the end: {status}."


def furthest(one: Path, other: Path) -> float:
    """The largest difference of a weight, relative to the largest weight of its tensor."""
    mine, theirs = (load_file(next(path.glob("*.safetensors"))) for path in (one, other))
    assert mine.keys() == theirs.keys()
    return max(
        float(
            (mine[name].double() - theirs[name].double()).abs().max()
            / theirs[name].abs().max().clamp_min(1e-9)
        )
        for name in mine
        if mine[name].is_floating_point()
    )


def losses(run: Path) -> dict[int, float]:
    """The loss of each update, as it was computed last."""
    rows = map(json.loads, (run / "metrics.jsonl").read_text("utf-8").splitlines())
    return {row["update"]: row["loss"] for row in rows if "loss" in row}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=10)
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.environ |= {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="dragoman-elastic-") as name:
        place = Path(name)
        lines = [" ".join(chance.choices(WORDS, k=chance.randint(2, 8))) for _ in range(2000)]
        table = place / "pairs.tsv"
        table.write_text("".join(f"{line}\t{line.upper()}\n" for line in lines), encoding="utf-8")
        runs = [place / "alone", place / "changed"]
        for run in runs:
            dragoman("train", table, "--out", run, *SETTINGS, "train.max_updates=1", "-q")
        length = f"train.max_updates={options.updates}"
        dragoman("resume", runs[0], length, "-q")
        rows = [
            "# Training while machines come and go\n",
            f"`python {' '.join(sys.argv)}`, {time.strftime('%Y-%m-%d')}, Python "
            f"{platform.python_version()}, torch {torch.__version__}, {os.cpu_count()} cores. "
            f"{options.updates} updates of 6 batches.\n",
            "| change | machine | machines then | updates saved then | after s |",
            "|---:|---|---:|---:|---:|",
        ]
        for row in changed(runs[1], length, options.changes, chance):
            print(row, flush=True)
            rows.append(row)
        last = [run / "checkpoints" / f"{updates(run):07d}" for run in runs]
        mine, theirs = map(losses, runs)
        assert mine.keys() == theirs.keys()
        off = max(abs(theirs[number] / loss - 1) for number, loss in mine.items())
        rows.append(
            f"Updates at the end: {updates(runs[0])} alone, {updates(runs[1])} with changes. "
            f"Largest relative difference of an update's loss: {off:.1e}, of a weight: {furthest(*last):.1e}."
        )
        print(rows[-1])
        RESULT.write_text("\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Does a run of several processes, one of which is killed at any moment, end as if nothing had happened?

    python benchmarks/kill_distributed.py 50

A tiny Transformer is trained by two processes (gloo) under torchrun's own agent, with dropout, accumulation,
a moving average, validation by decoding and averaging of checkpoints. One run is left alone; in the others a
process gets SIGKILL at a random moment, ten times a run; the agent starts all of them again, and they go on
from the newest checkpoint. In the end weights, optimizer state, moving average, state, metrics and the choice
of the best checkpoint are compared byte by byte, and no process may be left.

torch is imported once; every worker is a fork of this process, which itself computes nothing.
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
import torch._dynamo  # torch.optim imports it at its first use; the forks are to spend their time on training
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from dragoman.data.corpus import prepare
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from dragoman.training.api import resume
from kill_resume import contents, plain_config

RESULTS = Path(__file__).parent / "results" / "kill_distributed.md"
PROCESSES = 2
KILLS_A_RUN = 10
LONGEST_WAIT = 60.0
"""Seconds between a kill and the next attempt; more count as hanging."""


def worker(out: str, kills: int, seed: int, length: float) -> None:
    """One process of an attempt. In the first `kills` attempts one of them dies, of its own clock, unless it
    is done before: torch's agent for functions, which is not that of the command, waits for ever for one that
    dies while it waits for the others to end (a comment in its source says so)."""
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as the command's processes have it
    attempt, rank = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["RANK"])
    notes = Path(out).with_suffix(".notes")
    chance = random.Random(f"{seed}-{attempt}")
    victim, delay = chance.randrange(PROCESSES), chance.random() * length
    note(notes, f"start {attempt} {rank} {os.getpid()} {time.time()}")

    def die() -> None:
        note(notes, f"kill {attempt} {rank} {os.getpid()} {time.time()}")
        os.kill(os.getpid(), signal.SIGKILL)

    timer = threading.Timer(delay, die)
    timer.daemon = True
    if attempt < kills and rank == victim:
        timer.start()
    resume(out, quiet=True)
    timer.cancel()
    if f"kill {attempt} " in notes.read_text():
        sys.exit(1)  # done in spite of the other's death: the agent for functions would wait here for 30 s


def note(path: Path, line: str) -> None:
    """One write, so that lines of two processes do not mix."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def launch(out: Path, kills: int, seed: int, length: float) -> float:
    """Train a run to its end; the seconds it took."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=PROCESSES,
        run_id=out.name,
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=kills,
        monitor_interval=0.1,
        start_method="fork",
    )
    began = time.perf_counter()
    elastic_launch(config, worker)(str(out), kills, seed, length)
    return time.perf_counter() - began


def read_notes(out: Path) -> tuple[int, float, list[int]]:
    """Kills that happened, the longest time from one to the next start, and processes that still live."""
    lines = [line.split() for line in out.with_suffix(".notes").read_text().splitlines()]
    kills = {int(attempt): float(moment) for kind, attempt, _, _, moment in lines if kind == "kill"}
    starts: dict[int, float] = {}
    for kind, attempt, _, _, moment in lines:
        if kind == "start":
            starts[int(attempt)] = max(starts.get(int(attempt), 0.0), float(moment))
    waits = [starts[attempt + 1] - moment for attempt, moment in kills.items() if attempt + 1 in starts]
    pids = [int(pid) for kind, _, _, pid, _ in lines if kind == "start"]
    return len(kills), max(waits, default=0.0), [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def run_trials(directory: Path, kills: int, seed: int) -> tuple[list[str], int, float, float]:
    """What went wrong, kills, the longest wait for a restart, and the seconds of a run left alone."""
    config = resolve_config(plain_config(directory))
    prepared = prepare(config.data, config.tokenizer, seed=config.seed, cache=directory / "prepared")
    whole = Run.create(directory / "whole", config, prepared).directory
    length = launch(whole, 0, seed, 0.0)
    expected = contents(whole)
    assert json.loads(expected["checkpoints/0000048/state.json"])["environment"]["processes"] == PROCESSES
    wrong: list[str] = []
    done, longest, trial = 0, 0.0, 0
    while done < kills:
        out = Run.create(directory / f"trial-{trial}", config, prepared).directory
        launch(out, min(KILLS_A_RUN, kills - done), seed + trial, length)
        found = contents(out)
        different = [name for name in expected | found if expected.get(name) != found.get(name)]
        killed, wait, alive = read_notes(out)
        if different or alive or wait > LONGEST_WAIT:
            wrong.append(f"trial {trial}: differs in {different}, left alive {alive}, waited {wait:.1f} s")
        done, longest, trial = done + killed, max(longest, wait), trial + 1
    return wrong, done, longest, length


def report(
    arguments: str, wrong: list[str], kills: int, longest: float, length: float, seconds: float
) -> str:
    lines = [
        "# A killed process among several",
        "",
        f"`python benchmarks/kill_distributed.py {arguments}`: runs of 48 updates (tiny Transformer, torch "
        f"{torch.__version__}, {PROCESSES} processes on a CPU, gloo; {length:.1f} s undisturbed) under "
        f"torchrun's agent, a process killed with SIGKILL at a random moment, {KILLS_A_RUN} times a run. "
        f"{seconds:.0f} s in all, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores. Workers are "
        "forks: importing torch, some seconds, is not in the wait.",
        "",
        "| kills | runs that differ in a byte or leave a process | longest wait for a restart |",
        "|---:|---:|---:|",
        f"| {kills} | {len(wrong)} | {longest:.1f} s |",
        "",
    ]
    return "\n".join(lines + [f"- {text}" for text in wrong])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kills", type=int, nargs="?", default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-write", action="store_true", help=f"do not write {RESULTS.name}")
    options = parser.parse_args()
    torch.set_num_threads(1)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        wrong, kills, longest, length = run_trials(Path(directory), options.kills, options.seed)
    text = report(str(options.kills), wrong, kills, longest, length, time.perf_counter() - began)
    print(text)
    if not options.no_write:
        RESULTS.write_text(text, encoding="utf-8")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()

"""Several runs of the lab at once, each in a process of its own.

    runs ─▶ runs that begin with them ─▶ measurements ─▶ pages

What experiments share is trained once. A run that fails takes the experiments that need it with it, and no
others.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from dragoman.errors import UserError
from dragoman.lab.bench import Bench, Interrupted, open_bench
from dragoman.lab.book import Lab
from dragoman.lab.catalogue import experiment_named
from dragoman.lab.experiment import Experiment

TellLine = Callable[[str], None]


@dataclass
class PoolStep:
    """A run to train, or, without a label, an experiment to measure."""

    experiment: str
    label: str | None = None
    seed: int = 0
    needs: set[str] = field(default_factory=set)
    cost: float = 0.0
    """Cost of the experiment's longest chain; long ones start first."""


def run_at_once(
    place: Lab, experiments: Sequence[Experiment], jobs: int, threads: int, tell: TellLine
) -> dict[str, str]:
    """Run experiments in `jobs` processes. Returns what failed, by the name of the experiment."""
    steps = steps_of(place, experiments)
    failed: dict[str, str] = {}
    done, count = 0, len(steps)
    context = multiprocessing.get_context("spawn")
    with (
        _stopped_by_signals(),
        ProcessPoolExecutor(min(jobs, count), context, initializer=_begin, initargs=(threads,)) as pool,
    ):
        waiting: dict[Future[str], str] = {}
        finished: set[str] = set()
        while steps or waiting:
            for key in ready(steps, finished)[: jobs - len(waiting)]:
                step = steps.pop(key)
                waiting[pool.submit(work, place, step.experiment, step.label, step.seed)] = key
            ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in ended:
                key, done = waiting.pop(future), done + 1
                error = future.exception()
                if isinstance(error, BrokenProcessPool):
                    raise UserError("lab: a process was killed, perhaps for want of memory; try fewer --jobs")
                if isinstance(error, Interrupted):
                    raise error
                finished.add(key)
                if error is None:
                    tell(f"{done} of {count}: {future.result()}")
                    continue
                lost = dependants(steps, key)
                told = str(error) if isinstance(error, UserError) else repr(error)
                failed |= {each.name: told for each in experiments if each.name in lost}
                tell(f"{done} of {count}: {Path(key).name} failed: {told}")
                steps = {key: step for key, step in steps.items() if key not in lost}
    return failed


def steps_of(place: Lab, experiments: Sequence[Experiment]) -> dict[str, PoolStep]:
    """Every run once, and every experiment."""
    steps: dict[str, PoolStep] = {}
    for experiment in experiments:
        bench = bench_of(place, experiment)
        cost, needed = 0.0, set[str]()
        for label, setting in bench.settings.items():
            for seed in bench.seeds:
                key = str(bench.directory(setting, seed))
                needed.add(key)
                starts = setting.start and str(bench.directory(bench.settings[setting.start], seed))
                steps.setdefault(key, PoolStep(experiment.name, label, seed, {starts} if starts else set()))
                cost = max(cost, float(bench.size.updates * bench.size.width))
        steps[experiment.name] = PoolStep(experiment.name, needs=needed)
        for key in (*needed, experiment.name):
            steps[key].cost = max(steps[key].cost, cost)
    return steps


def ready(steps: dict[str, PoolStep], finished: set[str]) -> list[str]:
    """Steps that can start: measurements first, which finish an experiment, then the longest."""
    free = [key for key, step in steps.items() if step.needs <= finished]
    return sorted(free, key=lambda key: (steps[key].label is not None, -steps[key].cost))


def dependants(steps: dict[str, PoolStep], key: str) -> set[str]:
    """A key, and the keys of what needs it, directly or not."""
    found = {key}
    while more := {k for k, step in steps.items() if step.needs & found} - found:
        found |= more
    return found


def bench_of(place: Lab, experiment: Experiment) -> Bench:
    size = experiment.size(place.quick)
    return open_bench(experiment, size, place.folder, place.changes, place.data, place.device)


def work(place: Lab, name: str, label: str | None, seed: int) -> str:
    """Job of a worker process: train a run, or measure an experiment and write its page."""
    from dragoman.training.display import NoDisplay

    began = time.monotonic()
    experiment = experiment_named(name)
    if label is None:
        report = place.run(experiment, lambda *_: NoDisplay())
        said = str(report.verdict)
    else:
        bench = bench_of(place, experiment)
        bench.train_one(bench.settings[label], seed, NoDisplay())
        said = f"{label}, seed {seed}"
    return f"{name}: {said} ({time.monotonic() - began:.0f} s)"


def _begin(threads: int) -> None:
    """Ctrl-C reaches every process: a run saves and stops by itself, and what only waits stays silent."""
    import torch

    torch.set_num_threads(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM stop the runs too, which save and end."""

    def handle(number: int, _frame: FrameType | None) -> None:
        for process in multiprocessing.active_children():
            process.terminate()
        raise Interrupted(128 + number)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Updates a second of a small model with rotary positions on a GPU; a part of `rotary_gpu.py`."""

import argparse
import cProfile
import io
import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np

from common import RESULTS, environment
from dragoman.data.corpus import Prepared, prepare
from dragoman.learning.resolve import resolve_config
from dragoman.runs.config import RunConfig
from dragoman.training.batches import Batches
from dragoman.training.optim import load_compiler
from dragoman.training.state import Training
from dragoman.training.update import Late, Learnt, learn
from made_up import spelt
from on_gpu import DEVICE, wait

WORDS = 4000
SHAPES = [(5, 15, 4_000), (5, 15, 16_000), (10, 40, 4_000), (10, 40, 16_000)]
"""Shortest and longest source, and `train.batch_tokens`."""
CONTENDERS = [
    ("rotary, recorded", (), 1),
    ("sinusoidal, recorded", ("model.positions=sinusoidal",), 1),
    ("rotary, recorded, R-Drop", ("objective.r_drop=5.0",), 2),
    ("rotary, padded", ("train.pack=false",), 4),
]
"""Name, settings, and what part of the updates is enough. The first pays for compiling the kernels."""


class Report:
    """Lines for the table at the end, each saved as it comes."""

    def __init__(self) -> None:
        self.directory = Path(os.environ.get("OUT", RESULTS))
        self.directory.mkdir(parents=True, exist_ok=True)
        self.rows: list[tuple[str, str, str]] = []
        (self.directory / "rotary_gpu.jsonl").write_text("", encoding="utf-8")

    def add(self, part: str, what: str, found: str) -> None:
        self.rows.append((part, what, found))
        print(f"{part:8} {what:52} {found}", flush=True)
        with (self.directory / "rotary_gpu.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"part": part, "what": what, "found": found}) + "\n")

    def finish(self) -> None:
        lines = ["| part | case | found |", "|---|---|---|"]
        lines += [f"| {part} | {what} | {found} |" for part, what, found in self.rows]
        text = "\n".join(["# Rotary positions on a GPU", "", *lines, "", environment(), ""])
        (self.directory / "rotary_gpu.md").write_text(text, encoding="utf-8")
        print("\n" + text, flush=True)


@contextmanager
def corpus(shortest: int, longest: int, pairs: int) -> Iterator[tuple[list[str], Path]]:
    """Sources of all these lengths, targets some words longer or shorter."""
    dice = np.random.default_rng(1)
    lengths = dice.integers(shortest, longest + 1, pairs)
    others = (lengths * np.exp(dice.normal(0, 0.15, pairs))).round().astype(int).clip(2)
    shares = 1 / (np.arange(WORDS) + 10.0)
    with tempfile.TemporaryDirectory() as name:
        files = [Path(name) / "corpus.src", Path(name) / "corpus.tgt"]
        for side, file in enumerate(files):
            ends = np.cumsum((lengths, others)[side])
            words = dice.choice(WORDS, size=ends[-1], p=shares / shares.sum())
            rows = [words[start:end] for start, end in pairwise([0, *ends.tolist()])]
            lines = (" ".join(spelt(word, "ab"[side]) for word in row.tolist()) for row in rows)
            file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        yield [str(file) for file in files], Path(name) / "cache"


def run_config(files: list[str], tokens: int, *overrides: str, tiny: bool = False) -> RunConfig:
    sizes = {"num_layers": 4, "model_dim": 256, "num_heads": 4, "ff_dim": 1024}
    if tiny:
        sizes = {"num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 16}
    plain = {
        "data": {"train": [{"files": files}], "valid_size": 10},
        "tokenizer": {"kind": "word", "vocab_size": 2 * WORDS, "joint": True},
        "model": {"kind": "transformer", **sizes, "dropout": 0.2, "norm": "pre", "positions": "rotary"},
        "objective": {"label_smoothing": 0.1},
        "optim": {"name": "adamw", "rate": 5e-4},
        "schedule": {"warmup": 100},
        "train": {"max_updates": 100_000, "batch_tokens": tokens, "ema": 0.999},
    }
    return resolve_config(plain, overrides)


class Timed:
    """The training loop, with the time that the host takes for it."""

    def __init__(self, config: RunConfig, prepared: Prepared) -> None:
        self.began = time.perf_counter()
        self.training = Training(config, prepared, DEVICE)
        self.data = Batches(config, prepared, DEVICE, packed=self.training.packed).updates(0, 0)
        self.before: Learnt | Late | None = None
        self.fetching = self.launching = 0.0

    def step(self) -> int:
        start = time.perf_counter()
        self.training.progress.update += 1
        data = next(self.data)
        fetched = time.perf_counter()
        learnt = learn(self.training, data)
        self.fetching += fetched - start
        self.launching += time.perf_counter() - fetched
        assert self.before is None or self.before.finite
        self.before = learnt
        return learnt.tokens

    @property
    def recordings(self) -> int:
        return len(self.training.recorder._recordings) if self.training.recorder else 0

    def close(self) -> None:
        self.data.close()  # type: ignore[attr-defined]


def time_run(config: RunConfig, prepared: Prepared, warm: int, updates: int, profiled: Path | None) -> dict:
    """Numbers of a run whose forms have nearly all been met."""
    run = Timed(config, prepared)
    run.step()
    wait()
    first = time.perf_counter() - run.began
    for _ in range(warm - 1):
        run.step()
    wait()
    warmed = time.perf_counter() - run.began
    run.fetching = run.launching = 0.0
    began = time.perf_counter()
    tokens = sum(run.step() for _ in range(updates))
    wait()
    seconds = time.perf_counter() - began
    found = {
        "updates_a_second": updates / seconds,
        "tokens_a_second": tokens / seconds,
        "host_ms": 1e3 * run.launching / updates,
        "fetch_ms": 1e3 * run.fetching / updates,
        "first_s": first,
        "warm_s": warmed,
        "recordings": run.recordings,
        "loss": run.before.nll / run.before.tokens if run.before else 0.0,
    }
    if profiled is not None:
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(updates):
            run.step()
        profile.disable()
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(25)
        profiled.write_text(f"{updates} updates\n{text.getvalue()}", encoding="utf-8")
    run.close()
    return found


def show(report: Report, what: str, found: dict, warm: int) -> None:
    report.add(
        "speed",
        what,
        f"{found['updates_a_second']:.1f} updates/s, {found['tokens_a_second'] / 1e3:.0f} k tokens/s, host "
        f"{found['host_ms']:.2f} + {found['fetch_ms']:.2f} ms, first update {found['first_s']:.1f} s, "
        f"{warm} in {found['warm_s']:.1f} s, {found['recordings']} recorded, loss {found['loss']:.3f}",
    )


def measure(report: Report, options: argparse.Namespace) -> None:
    shapes = [(3, 6, 100)] if options.dry else SHAPES
    warm, updates = (8, 8) if options.dry else (80, 160)
    began = time.perf_counter()
    load_compiler()
    report.add("start", "import of torch's compiler", f"{time.perf_counter() - began:.1f} s")
    for bounds in dict.fromkeys(shape[:2] for shape in shapes):
        with corpus(*bounds, 300 if options.dry else 20_000) as (files, cache):
            first = run_config(files, 100, tiny=options.dry)
            prepared = prepare(first.data, first.tokenizer, seed=1, cache=cache)
            for tokens in (shape[2] for shape in shapes if shape[:2] == bounds):
                for name, overrides, share in CONTENDERS:
                    config = run_config(files, tokens, *overrides, tiny=options.dry)
                    kept = None if overrides else report.directory / f"host_{bounds[1]}_{tokens}.txt"
                    counts = warm // share, updates // share
                    found = time_run(config, prepared, *counts, kept)
                    what = f"{bounds[0]}-{bounds[1]} words, {tokens:,} tokens: {name}"
                    show(report, what, found, counts[0])


def measure_together(report: Report, options: argparse.Namespace) -> None:
    """So many processes at once, each with a run of its own."""
    program = Path(__file__).with_name("rotary_gpu.py")
    command = [sys.executable, str(program), "--one-of-many", *(["--dry"] if options.dry else [])]
    started = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        for _ in range(options.together)
    ]
    found = [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]
    for name in found[0]:
        rates = [each[name]["updates_a_second"] for each in found]
        hosts = [each[name]["host_ms"] for each in found]
        report.add(
            "together",
            f"{options.together} processes: {name}",
            f"{sum(rates):.0f} updates/s in all, {min(rates):.1f} to {max(rates):.1f} each, host "
            f"{min(hosts):.2f} to {max(hosts):.2f} ms",
        )


def one_of_many(options: argparse.Namespace) -> None:
    shortest, longest, tokens = (3, 6, 100) if options.dry else SHAPES[0]
    warm, updates = (4, 4) if options.dry else (60, 400)
    found = {}
    with corpus(shortest, longest, 300 if options.dry else 20_000) as (files, cache):
        first = run_config(files, tokens, tiny=options.dry)
        prepared = prepare(first.data, first.tokenizer, seed=1, cache=cache)
        for name, overrides in (("rotary, recorded", ()), ("rotary, padded", ("train.pack=false",))):
            config = run_config(files, tokens, *overrides, tiny=options.dry)
            found[name] = time_run(config, prepared, warm, updates if not overrides else updates // 4, None)
    print(json.dumps(found))

"""What `benchmarks/cluster.py` works with: a model, texts, commands that are watched, machines, and work in
place of a translator's."""

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from watched import Watch

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
STORE = 100 << 20
WORDS = ("red", "blue", "old", "new", "cat", "dog", "fish", "hill")
GREEDY = ("--beam", "1", "--device", "cpu")


@dataclass(frozen=True)
class Place:
    """Where the parts work, and what they were asked."""

    directory: Path
    options: argparse.Namespace

    @property
    def run(self) -> Path:
        """The trained run."""
        return self.directory / "run"

    @property
    def export(self) -> Path:
        return self.directory / "export"

    def text(self, lines: int) -> Path:
        path = self.directory / f"{lines}.en"
        return path if path.exists() else write_text(path, lines)

    def translate(self, model: Path, source: Path, out: str, *further: object) -> "Timed":
        (self.directory / out).unlink(missing_ok=True)
        return Timed("translate", model, "--input", source, "--out", self.directory / out, *further)


def make_run(directory: Path) -> Path:
    import dragoman
    from cli.conftest import GIVEN, SETTINGS
    from drafted import make_config
    from dragoman.training.display import NoDisplay
    from given import begin

    texts = [f"the {a} {b} and a {c}" for a in WORDS[:4] for b in WORDS[4:] for c in WORDS[4:]]
    pairs = [(text, text.upper()) for text in texts]
    table = directory / "pairs.tsv"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    overrides = SETTINGS | GIVEN
    config = make_config([str(table)], overrides=overrides, valid=[], display=NoDisplay())
    overrides["start"] = str(begin(directory / "given", config, pairs))
    return dragoman.train(table, out=directory / "run", overrides=overrides, quiet=True).directory


def write_text(path: Path, lines: int) -> Path:
    """No two lines are equal."""
    chance = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            words = " and a ".join(chance.choices(WORDS, k=chance.randint(1, 4)))
            file.write(f"the {words} {number}\n")
    return path


class Timed:
    """A command, with its seconds, the CPU seconds and the memory of its processes."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the object
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=self._said, stderr=subprocess.STDOUT
        )
        self.watch = Watch(self.process.pid)

    def end(self) -> "Timed":
        code = self.process.wait()
        self.seconds = time.monotonic() - self.began
        self.watch.end()
        if code not in (0, -signal.SIGKILL):
            self._said.seek(0)
            raise SystemExit(f"a command failed with {code}:\n{self._said.read().decode()}")
        return self


@contextmanager
def raylets(count: int) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    for _ in range(count):
        cluster.add_node(num_cpus=1, object_store_memory=STORE)
    try:
        yield cluster
    finally:
        cluster.shutdown()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def whole(path: Path, wanted: Path) -> str:
    """Whether a file is the other one, and how many of its lines, which all differ, are there twice or not at
    all."""
    lines, right = path.read_bytes().splitlines(), wanted.read_bytes().splitlines()
    twice, lost = len(lines) - len(set(lines)), len(set(right) - set(lines))
    return f"{digest(path) == digest(wanted)} | {twice} | {lost}"


def lines_in(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@dataclass(frozen=True)
class Poisoned:
    """Work that ends its process at one line and raises at another."""

    work: Any

    def open(self) -> Callable[[Sequence[Any]], Any]:
        do = self.work.open()

        def found(lines: Sequence[Any]) -> Any:
            texts = [line.text for line in lines if line]
            if any(text.endswith(" 777") for text in texts):
                os._exit(7)
            if any(text.endswith((" 5000", " 5001")) for text in texts):
                raise LookupError("a line that nobody has thought of")
            return do(lines)

        return found


@dataclass(frozen=True)
class Waiting:
    """Work that takes the time that a translator of so many sentences a second takes, and no core."""

    work: Any
    rate: float

    def open(self) -> Callable[[Sequence[Any]], Any]:
        from dragoman.cli.output import WrittenLines

        self.work.open()

        def found(lines: Sequence[Any]) -> Any:
            time.sleep(len(lines) / self.rate)
            return WrittenLines([line.text.upper() for line in lines], len(lines))

        return found


def here(place: Place, text: Path, cluster: Any, instead: Callable[[Any], Any]) -> str:
    """`translate --cluster` in this process, with other work in place of the translator's; what it says."""
    import ray
    from typer.testing import CliRunner

    from dragoman.cli import clustered, translate_clustered
    from dragoman.cli.main import app

    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

    def parts_on(
        cluster: Any, _device: str, work: Any, opened: Any, chunks: Any, begun: int = 0
    ) -> Iterator[Any]:
        work = replace(work, asked=clustered.resolved(work.asked))
        remote = clustered.RemoteWork(work, "cpu", clustered.identity_of(opened, work.asked))
        return cluster.map(instead(remote), chunks, "cpu", begun)

    translate_clustered.parts_on = parts_on
    for left in place.directory.glob("out.progress.*"):
        left.unlink()
    command = ["translate", str(place.export), "-i", str(text), "--out", str(place.directory / "out")]
    result = CliRunner().invoke(app, [*command, *GREEDY, "--cluster", str(cluster.address)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output.strip()

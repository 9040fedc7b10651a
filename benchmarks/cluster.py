"""Does a cluster write what one machine writes, whatever dies, and what does it cost?

    python benchmarks/cluster.py              all of it, some twenty minutes on two cores
    python benchmarks/cluster.py --kills 2 --driver-kills 1 --lines 20000

Machines are raylets of Ray's own test cluster on this computer, one core each; a machine is killed by SIGKILL
to its raylet, which takes its workers with it. The model is a small Transformer with given weights
(tests/given.py).
"""

import argparse
import hashlib
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]
RESULT = ROOT / "benchmarks" / "results" / "cluster.md"
STORE = 100 << 20
WORDS = ("red", "blue", "old", "new", "cat", "dog", "fish", "hill")


def make_run(directory: Path) -> Path:
    import dragoman
    from cli.conftest import GIVEN, SETTINGS
    from drafted import make_config
    from dragoman.training.display import Quiet
    from given import begin

    texts = [f"the {a} {b} and a {c}" for a in WORDS[:4] for b in WORDS[4:] for c in WORDS[4:]]
    pairs = [(text, text.upper()) for text in texts]
    table = directory / "pairs.tsv"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    overrides = SETTINGS | GIVEN
    config = make_config([str(table)], overrides=overrides, valid=[], display=Quiet())
    overrides["start"] = str(begin(directory / "given", config, pairs))
    return dragoman.train(table, out=directory / "run", overrides=overrides, quiet=True).directory


def write_text(path: Path, lines: int) -> Path:
    chance = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for number in range(lines):
            words = " and a ".join(chance.choices(WORDS, k=chance.randint(1, 4)))
            file.write(f"the {words} {number}\n")
    return path


class Timed:
    """A command, its seconds and the most memory that it took."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "dragoman", *map(str, arguments)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def end(self) -> "Timed":
        assert self.process.stdout is not None
        said = self.process.stdout.read().decode()
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, self.memory = time.monotonic() - self.began, usage.ru_maxrss / 1024
        if self.process.returncode not in (0, -signal.SIGKILL):
            raise SystemExit(f"a command failed with {self.process.returncode}:\n{said}")
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


@contextmanager
def memory_of_workers() -> Iterator[list[float]]:
    """The most that one worker has at a time, in MiB."""
    most, ended = [0.0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            for entry in Path("/proc").iterdir():
                try:
                    if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(
                        b"ray::RayWorker"
                    ):
                        status = (entry / "status").read_text()
                        most[0] = max(most[0], int(status.split("VmRSS:")[1].split()[0]) / 1024)
                except (OSError, IndexError):
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=25_000, help="where machines are killed")
    parser.add_argument("--sentences", type=int, default=100_000, help="where turns are timed")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--driver-kills", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    from dragoman.cluster.on_ray import QUIET

    os.environ.update(QUIET)
    with tempfile.TemporaryDirectory(prefix="dragoman-cluster-") as name:
        rows = measured(Path(name), options)
    save(rows)
    print(RESULT.read_text("utf-8"))


def save(rows: list[str]) -> None:
    """After each section, so that what was measured is there if the rest is not."""
    text = "\n".join(("# Several machines: the same bytes, and what they cost", "", *rows, ""))
    RESULT.write_text(text, encoding="utf-8")


def measured(place: Path, options: argparse.Namespace) -> list[str]:
    chance = random.Random(options.seed)
    run = make_run(place)
    text = write_text(place / "mono.en", options.lines)
    greedy = ("--beam", "1", "--device", "cpu")
    rows = [f"Written by `python {' '.join(sys.argv)}`; {os.cpu_count()} cores, seed {options.seed}.", ""]

    def translate(source: Path, out: str, *further: object) -> Timed:
        return Timed("translate", run, "--input", source, "--out", place / out, *greedy, *further)

    def synthesise(out: str, *further: object) -> Timed:
        return Timed("back-translate", run, text, "--out", place / out, *greedy, *further)

    translate(text, "wanted").end()
    synthesise("wanted.bt").end()
    wanted = {name: digest(place / name) for name in ("wanted", "wanted.bt")}

    rows += [f"## {options.lines:,} sentences on 1, 2 and 4 machines", ""]
    rows += ["| machines | seconds | same bytes as one process |", "|---:|---:|---|"]
    for count in (1, 2, 4):
        with raylets(count) as cluster:
            done = translate(text, f"on-{count}", "--cluster", cluster.address).end()
        same = digest(place / f"on-{count}") == wanted["wanted"]
        rows.append(f"| {count} | {done.seconds:.1f} | {same} |")
        print(rows[-1], flush=True)

    save(rows)
    rows += ["", *commands(run, text, place), "", "## Machines killed at random moments", ""]
    rows += ["| kill | after s | same bytes | lines |", "|---:|---:|---|---:|"]
    with raylets(2) as cluster:
        for number in range(options.kills):
            begun, after = synthesise(f"kill-{number}", "--cluster", cluster.address), chance.uniform(6, 24)
            time.sleep(after)
            cluster.remove_node(chance.choice(list(cluster.worker_nodes)), allow_graceful=False)
            in_time = begun.process.poll() is None
            cluster.add_node(num_cpus=1, object_store_memory=STORE)
            begun.end()
            out = place / f"kill-{number}"
            lines = sum(1 for _ in out.open("rb"))
            late = "" if in_time else " (after the end)"
            rows.append(
                f"| {number + 1} | {after:.1f}{late} | {digest(out) == wanted['wanted.bt']} | {lines:,} |"
            )
            print(rows[-1], flush=True)

        save(rows)
        rows += ["", "## The command itself killed at random moments, and given again", ""]
        rows += ["| kill | after s | lines done then | same bytes | lines |", "|---:|---:|---:|---|---:|"]
        for number in range(options.driver_kills):
            begun, after = synthesise(f"driver-{number}", "--cluster", cluster.address), chance.uniform(8, 20)
            time.sleep(after)
            begun.process.send_signal(signal.SIGKILL)
            begun.end()
            out = place / f"driver-{number}"
            part = out.with_name(f"{out.name}.part")
            kept = sum(1 for _ in part.open("rb")) if part.exists() else 0
            synthesise(f"driver-{number}", "--cluster", cluster.address).end()
            lines = sum(1 for _ in out.open("rb"))
            same = digest(out) == wanted["wanted.bt"]
            rows.append(f"| {number + 1} | {after:.1f} | {kept:,} | {same} | {lines:,} |")
            print(rows[-1], flush=True)

    save(rows)
    few = write_text(place / "few.en", options.sentences // 5)
    many = write_text(place / "many.en", options.sentences)
    rows += ["", *overhead(translate, few, many, options)]
    return rows


def commands(run: Path, text: Path, place: Path) -> list[str]:
    """Every command on two machines."""
    few = place / "pairs.en"
    few.write_text("".join(text.read_text("utf-8").splitlines(keepends=True)[:2000]), encoding="utf-8")
    target = place / "pairs.de"
    target.write_text(few.read_text("utf-8").upper(), encoding="utf-8")
    terms = place / "terms.tsv"
    terms.write_text("cat\tFISH\n", encoding="utf-8")
    given = {
        "translate --json --glossary": ("translate", run, "-i", few, "--json", "--glossary", terms),
        "translate --n-best 2 --forbid": ("translate", run, "-i", few, "--n-best", 2, "--forbid", "CAT"),
        "score": ("score", run, few, target),
        "back-translate": ("back-translate", run, few),
        "filter --run": ("filter", few, target, "--run", run),
    }
    rows = [
        "## 2,000 sentences through the commands, on 2 machines",
        "",
        "| command | same bytes |",
        "|---|---|",
    ]
    with raylets(2) as cluster:
        for name, command in given.items():
            found = []
            for how, further in (("alone", ()), ("together", ("--cluster", cluster.address))):
                out = place / f"{command[0]}-{how}"
                out.mkdir(exist_ok=True)
                Timed(*command, "--device", "cpu", "--out", out / "out", *further).end()
                paths = [path for path in sorted(out.iterdir()) if path.suffix != ".json"]
                found.append([(path.name, digest(path)) for path in paths])
            rows.append(f"| {name} | {found[0] == found[1]} |")
            print(rows[-1], flush=True)
        kept = run / "evaluation" / "pairs"
        found = []
        for further in ((), ("--cluster", cluster.address)):
            test = ("evaluate", run, few, target, "--name", "pairs", "--device", "cpu")
            Timed(*test, *further).end()
            found.append([digest(kept / name) for name in ("hypotheses.txt", "report.json")])
        rows.append(f"| evaluate | {found[0] == found[1]} |")
        print(rows[-1], flush=True)
    return rows


def overhead(translate: Any, few: Path, many: Path, options: argparse.Namespace) -> list[str]:
    """Turns of the plain command and of `--cluster local`, on a fifth of the text and on all of it."""
    seconds: dict[tuple[str, str], list[float]] = {}
    memory: dict[tuple[str, str], float] = {}
    for _ in range(options.rounds):
        for source in (few, many):
            for how, further in (("plain", ()), ("local", ("--cluster", "local"))):
                with memory_of_workers() as most:
                    done = translate(source, "turn", *further).end()
                key = (how, source.name)
                seconds.setdefault(key, []).append(done.seconds)
                memory[key] = max(memory.get(key, 0), done.memory)
                memory["worker", source.name] = max(memory.get(("worker", source.name), 0), most[0])
                print(key, f"{done.seconds:.1f}", flush=True)
    least = {key: statistics.median(found) for key, found in seconds.items()}
    further = options.sentences - options.sentences // 5
    rate = {how: (least[how, many.name] - least[how, few.name]) / further for how in ("plain", "local")}
    start = {how: least[how, few.name] - rate[how] * (options.sentences // 5) for how in ("plain", "local")}
    rows = ["## What `--cluster local` costs against the plain command, in turns", ""]
    rows += [
        f"| | {options.sentences // 5:,} s | {options.sentences:,} s | start s | µs a sentence |",
        "|---|---:|---:|---:|---:|",
    ]
    for how in ("plain", "local"):
        own = f"{least[how, few.name]:.1f} | {least[how, many.name]:.1f}"
        rows.append(f"| {how} | {own} | {start[how]:.1f} | {1e6 * rate[how]:.0f} |")
    rows += [
        "",
        f"A sentence costs {rate['local'] / rate['plain'] - 1:+.1%}; medians of {options.rounds} turns.",
    ]
    rows += [
        "",
        "| memory, MiB | " + f"{options.sentences // 5:,} | {options.sentences:,} |",
        "|---|---:|---:|",
    ]
    for how, title in (("plain", "plain command"), ("local", "command with --cluster"), ("worker", "worker")):
        rows.append(f"| {title} | {memory[how, few.name]:.0f} | {memory[how, many.name]:.0f} |")
    return rows


if __name__ == "__main__":
    main()

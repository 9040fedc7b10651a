"""Do several replicas on a Ray cluster answer as one server does, also while they come and go?

    python benchmarks/replicas.py EXPORT TEXT        needs ray[serve]

Machines are two raylets of Ray's own test cluster. Eight clients send requests all the time, while the number
of replicas goes from 2 to 3 to 1 and back to 2, and while the process of one is killed. Every answer is
compared with that of `dragoman translate`.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "deploy")]
RESULT = ROOT / "benchmarks" / "results" / "replicas.md"
URL, KEY = "http://127.0.0.1:8000", "a-key-of-this-benchmark"
CLIENTS = 8


def ask(path: str, body: dict[str, Any] | None = None, key: str = KEY) -> tuple[int, bytes]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers), timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return 0, b""


class Clients:
    """Send one request after another until they are told to end."""

    def __init__(self, texts: list[str], right: list[str], languages: tuple[str, str]) -> None:
        self._texts, self._right, self._languages = texts, right, languages
        self.told: Counter[str] = Counter()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._send, args=(first,)) for first in range(CLIENTS)]

    def __enter__(self) -> "Clients":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def taken(self) -> str:
        """What was told since it was asked for last."""
        told, self.told = self.told, Counter()
        return ", ".join(f"{count:,} {name}" for name, count in sorted(told.items()))

    def _send(self, number: int) -> None:
        source, target = self._languages
        while not self._ended.is_set():
            text = self._texts[number % len(self._texts)]
            status, body = ask("/translate", {"q": text, "source": source, "target": target})
            right = self._right[number % len(self._texts)]
            if status == 200:
                same = json.loads(body)["translatedText"] == right
                self.told["right" if same else "WRONG"] += 1
            else:
                self.told[f"status {status}"] += 1
            number += CLIENTS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("export", type=Path)
    parser.add_argument("text", type=Path)
    options = parser.parse_args()
    from dragoman.cluster.on_ray import QUIET

    os.environ |= QUIET
    import ray
    from ray.cluster_utils import Cluster

    texts = options.text.read_text("utf-8").splitlines()[:200]
    command = [sys.executable, "-m", "dragoman", "translate", options.export, "--device", "cpu"]
    given = "".join(f"{text}\n" for text in texts)
    right = subprocess.run(
        command, input=given, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    rows = [
        "# Replicas of `dragoman serve` on a Ray cluster\n",
        f"`python {' '.join(sys.argv)}`, {time.strftime('%Y-%m-%d')}, Ray {ray.__version__}, "
        f"{os.cpu_count()} cores, {CLIENTS} clients that send one request after another.\n",
        "| what happens | s | answers meanwhile |",
        "|---|---:|---|",
    ]
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=2)
    with tempfile.TemporaryDirectory() as directory:
        keys = Path(directory, "keys.txt")
        keys.write_text(f"{KEY}\n", encoding="utf-8")
        keys.chmod(0o600)
        ray.init(address=cluster.address, log_to_driver=False)
        for row in measured(options.export.resolve(), keys, texts, right):
            print(row, flush=True)
            rows.append(row)
        ray.shutdown()
    cluster.shutdown()
    RESULT.write_text("\n".join(rows) + "\n", encoding="utf-8")


def measured(export: Path, keys: Path, texts: list[str], right: list[str]) -> Iterator[str]:
    from ray import serve
    from ray_serve import app

    def deploy(replicas: int) -> None:
        given = {"replicas": str(replicas), "serve": f"{export} --key-file {keys}"}
        serve.run(app(given), name="dragoman", route_prefix="/")

    began = time.monotonic()
    deploy(2)
    yield f"| 2 replicas start | {time.monotonic() - began:.1f} | |"
    languages = json.loads(ask("/languages")[1])[0]
    steps: tuple[tuple[str, Callable[[], None]], ...] = (
        ("nothing", lambda: time.sleep(10)),
        ("a third replica", lambda: deploy(3)),
        ("two of them are taken away", lambda: deploy(1)),
        ("one more again", lambda: deploy(2)),
        ("the process of one is killed; 20 s", killed),
    )
    with Clients(texts, right, (languages["code"], languages["targets"][0])) as clients:
        for what, do in steps:
            began = time.monotonic()
            do()
            yield f"| {what} | {time.monotonic() - began:.1f} | {clients.taken()} |"
    found = ", ".join(f"`{path}` {ask(path)[0]}" for path in ("/-/healthz", "/api/v1/ready", "/metrics"))
    wrong = ask("/languages", key="a-wrong-key")[0]
    yield f"\nStatus of checks: {found}, `/languages` with a wrong key {wrong}."
    serve.shutdown()


def killed() -> None:
    """SIGKILL to the process of a replica."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if name.startswith(b"ray::ServeReplica"):
                os.kill(int(entry.name), signal.SIGKILL)
                break
    time.sleep(20)


if __name__ == "__main__":
    main()

"""Is any request lost? A server in every kind of trouble at once, several times over.

    dragoman export RUN --out EXPORT
    python benchmarks/serve_stress.py EXPORT --runs 5

Each run has a server of its own, and processes that do nothing but take the cores away from it and from the
clients. Three crowds come, each request with a sentence that was never asked before:

    kept      ten times what it can do, on connections that are used again
    short     the same, every request on a connection of its own
    resting   clients that ask, rest for as long as the server keeps an idle connection, give or take
              milliseconds, and ask again on the same one

For every request that got neither an answer nor 429 or 503 it is told what happened.
"""

import argparse
import asyncio
import itertools
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from clients import Asker, Load, server
from common import write_table

TIMES = 10
RESTING = 200
ROUNDS = 3
NEAR_S = 0.03
HEAD = ["run", "clients", "asked", "answered", "refused", "lost", "what happened"]
SERVER = """
import sys
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.serve.app import Options
from dragoman.serve.limits import Limits
from dragoman.serve.run import serve
from dragoman.serve.service import Served, Service
translator = CTranslate2Translator.open(sys.argv[1])
limits = Limits(idle_s=float(sys.argv[3]))
workers = translator.engine.runtime.workers
serve(Service([Served(("en", "de"), translator, workers=workers)], limits=limits), Options(), "127.0.0.1",
      int(sys.argv[2]), lambda address: None)
"""


async def resting(port: int, texts: Iterator[str], idle_s: float, chance: random.Random) -> Load:
    """Who asks again just when the server would close the connection. One that is closed is not used."""
    load = Load()

    async def client() -> None:
        asker = Asker(port)
        for _ in range(ROUNDS):
            await asker.one(next(texts), load)
            await asyncio.sleep(idle_s + chance.uniform(-NEAR_S, NEAR_S))
        asker.connections.close()

    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(RESTING)))
    load.seconds = time.perf_counter() - begun
    return load


async def one_run(export: str, port: int, seconds: float, idle_s: float, number: int) -> dict[str, Load]:
    texts = (f"run {number} text {n} on the red mat" for n in itertools.count())
    async with server([sys.executable, "-c", SERVER, export, str(port), str(idle_s)], port):
        asker = Asker(port)
        await asker.closed(texts, 1)
        load = await asker.closed(texts, 2)
        rate = TIMES * load.statuses[200] / load.seconds
        found = {"kept": await asker.open(texts, rate, seconds)}
        asker.connections.close()
        found["short"] = await Asker(port, kept=False).open(texts, rate, seconds)
        found["resting"] = await resting(port, texts, idle_s, random.Random(number))
    return found


def row(number: int, name: str, load: Load) -> list[str]:
    refused = load.statuses[429] + load.statuses[503]
    numbers = [sum(load.statuses.values()), load.statuses[200], refused, len(load.lost)]
    return [str(number), name, *map(str, numbers), "; ".join(load.lost[:3])]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("export", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--idle", type=float, default=2, help="How long the server keeps idle connections.")
    parser.add_argument("--burners", type=int, default=2, help="Processes that take the cores away.")
    parser.add_argument("--port", type=int, default=5161)
    arguments = parser.parse_args()
    rows: list[list[str]] = []
    burn = [sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(burn) for _ in range(arguments.burners)]
    try:
        for number in range(1, arguments.runs + 1):
            settings = (str(arguments.export), arguments.port, arguments.seconds, arguments.idle, number)
            for name, load in asyncio.run(one_run(*settings)).items():
                rows.append(row(number, name, load))
                print(*rows[-1], flush=True)
                for told in load.lost[:20]:
                    print("   lost:", told, flush=True)
    finally:
        for burner in burners:
            burner.kill()
    write_table(
        "serve_stress",
        "Is any request lost?",
        HEAD,
        rows,
        f"{TIMES} times capacity for {arguments.seconds:g} s, {RESTING} clients that rest {ROUNDS} times for"
        f" {arguments.idle:g} s; {arguments.burners} processes take the {os.cpu_count()} cores away.",
    )


if __name__ == "__main__":
    main()

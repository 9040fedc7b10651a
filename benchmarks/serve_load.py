"""A server under load: ours beside FastAPI with CTranslate2 by hand, at up to ten times what it can do.

    dragoman export RUN --out EXPORT
    python benchmarks/serve_load.py EXPORT sentences.txt

Each server is a process of its own, on the first half of the cores; the clients are on the other half, so
that a crowd costs the server what it sends and no more. First its capacity: 32 clients that always wait for
an answer before they ask again. Then requests come at 1, 2, 5 and 10 times that rate, whether or not there
are answers. Every sentence is asked once, so nothing can be remembered, and afterwards every answer is held
against what the translator says alone. At the end, slow clients come, and a SIGTERM with 50 requests in work.
"""

import argparse
import asyncio
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from clients import CLIENTS, Asker, Load, drained, server, slow
from common import write_table
from dragoman.data.formats import read_lines
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.text.spans import DEFAULT_KINDS

SLOW, IN_WORK = 500, 50
OURS = "dragoman"
PLAIN = """
import sys
import uvicorn
from fastapi import FastAPI, Request
from dragoman.engines.ctranslate2 import CTranslate2Translator
translator, app = CTranslate2Translator.open(sys.argv[1]), FastAPI()
def work(text): return translator.translate([text])[0]
@app.post("/translate")
async def translate(request: Request):
    from starlette.concurrency import run_in_threadpool
    return {"translatedText": await run_in_threadpool(work, (await request.json())["q"])}
uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""
HEAD = ["server", "load", "answers/s", "of capacity", "refused", "lost", "wrong", "p50 ms", "p95 ms"]
HEAD += ["CPU", "MiB"]

Result = tuple[str, str, Load, float, float, float]
"""Server, load, what became of it, capacity, cores in use, growth in MiB."""


def resident(process: int) -> float:
    """MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def cpu_seconds(process: int) -> float:
    times = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


async def measure(
    name: str, command: list[str], port: int, texts: Iterator[str], seconds: float
) -> list[Result]:
    results: list[Result] = []
    async with server(command, port) as process:
        asker = Asker(port)
        await asker.closed(texts, 2)  # warm
        load = await asker.closed(texts, seconds)
        capacity, before = load.statuses[200] / load.seconds, resident(process.pid)
        results.append((name, f"{CLIENTS} clients", load, capacity, float("nan"), 0.0))
        for times in (1, 2, 5, 10):
            busy = cpu_seconds(process.pid)
            load = await asker.open(texts, times * capacity, seconds)
            busy = (cpu_seconds(process.pid) - busy) / load.seconds
            grown = resident(process.pid) - before
            results.append((name, f"{times}×", load, capacity, busy, grown))
            print(name, times, dict(load.statuses), flush=True)
            for told in load.lost[:20]:
                print("   lost:", told, flush=True)
        asker.connections.close()
    return results


async def at_the_edge(command: list[str], port: int, texts: Iterator[str]) -> str:
    async with server(command, port) as process:
        gone = await slow(port, SLOW, longest=30)
        load = await drained(process, port, texts, IN_WORK)
    return (
        f"Of {SLOW} clients that send a byte every half second the last was sent away after {max(gone):.1f}"
        f" s. Of {IN_WORK} requests in work at SIGTERM {load.statuses[200]} were answered."
    )


def row(
    translator: CTranslate2Translator,
    name: str,
    what: str,
    load: Load,
    capacity: float,
    busy: float,
    grown: float,
) -> list[str]:
    protect = DEFAULT_KINDS if name == OURS else ()  # by hand nothing is protected
    alone = translator.translate(list(load.answers), protect=protect)
    wrong = sum(found != own for found, own in zip(load.answers.values(), alone, strict=True))
    good, refused = load.statuses[200], load.statuses[429] + load.statuses[503]
    rate = good / load.seconds
    others = sum(load.statuses.values()) - good - refused
    numbers = [f"{rate:.0f}", f"{100 * rate / capacity:.0f}%", str(refused), str(others), str(wrong)]
    latencies = [f"{1000 * load.time_at(share):.0f}" for share in (0.5, 0.95)]
    return [name, what, *numbers, *latencies, "" if busy != busy else f"{busy:.2f}", f"{grown:+.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("export", type=Path)
    parser.add_argument("sentences", help="A file with many thousands of them, one a line.")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--port", type=int, default=5151)
    arguments = parser.parse_args()
    texts = list(dict.fromkeys(line for line in read_lines(arguments.sentences) if line.strip()))
    random.Random(0).shuffle(texts)
    texts = [text for text in texts if not set(text[:-1]) & set(".!?…")]
    cores = sorted(os.sched_getaffinity(0))
    half = max(1, len(cores) // 2)
    theirs = ["taskset", "-c", ",".join(map(str, cores[:half]))]
    os.sched_setaffinity(0, cores[half:] or cores)
    port, export = arguments.port, str(arguments.export)
    ours = [*theirs, sys.executable, "-m", "dragoman", "serve", export, "--port", str(port)]
    plain = [*theirs, sys.executable, "-c", PLAIN, export, str(port + 1)]
    left = iter(texts)
    results = asyncio.run(measure(OURS, ours, port, left, arguments.seconds))
    results += asyncio.run(measure("FastAPI by hand", plain, port + 1, left, arguments.seconds))
    edge = asyncio.run(at_the_edge(ours, port, left))
    os.sched_setaffinity(0, cores)
    translator = CTranslate2Translator.open(arguments.export)
    write_table(
        "serve_load",
        "A server under load",
        HEAD,
        [row(translator, *result) for result in results],
        f"{edge} {arguments.seconds:g} s each, one sentence a request, the server on {half} of {len(cores)}"
        " cores. «lost» got neither answer nor refusal within 60 s; «wrong» differs from what the translator"
        " says alone; «CPU» is the cores that the server took; «MiB» is what it grew by.",
    )


if __name__ == "__main__":
    main()

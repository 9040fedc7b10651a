"""What would a billion sentences take on 8 to 512 GPUs, and what would they cost? A calculation.

    python benchmarks/cluster_model.py              the table in docs/scaling.md
    python benchmarks/cluster_model.py --measure    what one command can hand out here

    seconds = start + the larger of   rounds · (chunk / rate + gap)     sentences / (commands · handed)

A round is one chunk on each worker; the gap is how long a worker waits between two chunks. `handed` is how
many lines a second one command can hand out: what a core does, or what the network carries, whichever is
less. There are as many commands as it takes to feed the GPUs. Workers that share cores have a part of the
rate. `benchmarks/cluster.py speed` measures start and gap, and holds the model against 1 to 4 machines;
nothing of it has been run on GPUs.
"""

import argparse
import math
import pickle
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHUNK = 4096


@dataclass(frozen=True)
class Costs:
    """What has been measured, or is assumed."""

    rate: float
    """Sentences a second of one worker."""
    start: float
    """Seconds until the workers are ready."""
    gap: float
    """Seconds that a worker waits between two chunks."""
    handed: float
    """Lines a second that all commands together hand out."""
    cores: float = math.inf
    """Of all machines together, if each worker wants one and there may be fewer."""


def seconds(sentences: float, workers: int, costs: Costs) -> float:
    """Once all workers have started, the chunks are done in rounds; the last chunk is shorter."""
    rate = costs.rate * min(1.0, costs.cores / workers)
    chunks = math.ceil(sentences / CHUNK)
    rounds, last = divmod(chunks, workers)
    short = sentences - (chunks - 1) * CHUNK
    worked = rounds * (CHUNK / rate + costs.gap)
    if last:
        worked += (short if last == 1 else CHUNK) / rate + costs.gap
    return costs.start + max(worked, sentences / costs.handed)


def fitted(
    found: Mapping[tuple[int, int], float], rate: float, handed: float, cores: float = math.inf
) -> list[str]:
    """What the costs on one machine predict for others. `found` has seconds by machines and sentences, with
    two numbers of sentences for one machine. Without a `rate`, the gap is a part of it."""
    few, many = sorted(lines for count, lines in found if count == 1)
    further = math.ceil(many / CHUNK) - math.ceil(few / CHUNK)
    took = found[1, many] - found[1, few]
    rate = rate or (many - few) / took
    gap = max(0.0, (took - (many - few) / rate) / further)
    start = found[1, few] - seconds(few, 1, Costs(rate, 0.0, gap, handed))
    costs = Costs(rate, start, gap, handed, cores)
    rows = [
        f"Costs on one machine: {rate:,.0f} sentences/s, {1000 * gap:.0f} ms between two chunks (mean of "
        f"{further}), {start:.1f} s for start and end, {handed:,.0f} lines/s handed out.\n",
        "| machines | sentences | predicted s | measured s | difference |",
        "|---:|---:|---:|---:|---:|",
    ]
    for (count, lines), measured in sorted(found.items()):
        predicted = seconds(lines, count, costs)
        off = f"{predicted / measured - 1:+.1%}" if count > 1 else "(fitted)"
        rows.append(f"| {count} | {lines:,} | {predicted:.1f} | {measured:.1f} | {off} |")
    return rows


def table(options: argparse.Namespace) -> list[str]:
    handed = min(options.lines, options.network / options.bytes)
    each = int(handed / options.rate)
    rows = ["| GPUs | commands | hours | GPU-hours | price |", "|---:|---:|---:|---:|---:|"]
    for gpus in (8, 16, 32, 64, 128, 256, 512):
        commands = -(-gpus // each)
        costs = Costs(options.rate, options.start, options.gap, commands * handed)
        hours = seconds(options.sentences, gpus, costs) / 3600
        price = hours * gpus * options.price
        rows.append(f"| {gpus} | {commands} | {hours:.2f} | {hours * gpus:.0f} | {price:,.0f} |")
    return [*rows, "", f"One command feeds {each} GPUs."]


class Nobody:
    """Workers that do nothing, at once; what they are sent and send is pickled, as Ray does it."""

    def __init__(self) -> None:
        self.started = self.bytes = 0
        self.told: list[Any] = []

    def wanted(self) -> int:
        return 8

    def start(self) -> int:
        from dragoman.cluster.schedule import Ready

        self.started += 1
        self.told.append((self.started, Ready()))
        return self.started

    def send(self, worker: int, items: Sequence[Any]) -> None:
        from dragoman.cli.output import WrittenLines
        from dragoman.cluster.schedule import Made
        from dragoman.cluster.workers import digest_of

        digest_of(items)
        sent = pickle.dumps(list(items))
        came = pickle.loads(sent)
        written = pickle.dumps(WrittenLines([line.text for line in came], len(came)))
        self.bytes += len(sent) + len(written)
        self.told.append((worker, Made(pickle.loads(written))))

    def replies(self) -> list[Any]:
        told, self.told = self.told, []
        return told

    def stop(self, worker: int) -> None: ...


def measure(count: int) -> tuple[float, float]:
    """Lines a second of one core that a command reads, hands out, receives and writes; and the bytes of a
    line that go over the network, there and back."""
    from dragoman.cli.texts import chunks
    from dragoman.cli.translate import GivenConstraints
    from dragoman.cli.translate_clustered import as_piece, numbered_lines
    from dragoman.cluster.schedule import Schedule
    from dragoman.data.formats import read_lines
    from dragoman.runs.journal import replace_by_pieces

    with tempfile.TemporaryDirectory() as name:
        source = Path(name, "in")
        line = "the old man and a red dog went to the hill behind the house again"
        source.write_text("".join(f"{line} {number}\n" for number in range(count)), encoding="utf-8")
        began = time.process_time()
        given = chunks(numbered_lines(read_lines(source), GivenConstraints(None, None, None)))
        nobody = Nobody()
        parts = Schedule(nobody, given, 0, print).results()
        replace_by_pieces(Path(name, "out"), {}, lambda _: map(as_piece, parts))
        spent = time.process_time() - began
    return count / spent, nobody.bytes / count


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=float, default=1e9)
    parser.add_argument("--rate", type=float, default=11_326.0, help="sentences/s of one GPU")
    parser.add_argument("--lines", type=float, default=250_000.0, help="lines/s that one command hands out")
    parser.add_argument("--bytes", type=float, default=200.0, help="of a line, there and back")
    parser.add_argument("--network", type=float, default=1.25e9, help="bytes/s of a command's machine")
    parser.add_argument("--gap", type=float, default=0.067, help="seconds between two chunks of a worker")
    parser.add_argument("--start", type=float, default=60.0, help="seconds until a worker is ready")
    parser.add_argument("--price", type=float, default=3.0, help="of a GPU-hour")
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.measure:
        lines, size = measure(400_000)
        print(f"{lines:,.0f} lines a second of one core, {size:.0f} bytes a line")
    else:
        print("\n".join(table(options)))


if __name__ == "__main__":
    main()

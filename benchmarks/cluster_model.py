"""What would a billion sentences take on 8 to 512 GPUs, and what would they cost? A calculation.

    python benchmarks/cluster_model.py              the table in docs/scaling.md
    python benchmarks/cluster_model.py --measure    how many lines a second one command can hand out here

    seconds = start + the larger of   rounds of chunks on the workers     sentences / (commands · lines)

A round is one chunk on each worker. The rate is that of
results/decode_gpu.md, `--lines` about what --measure printed. There are as many commands as it takes to feed
the GPUs. `benchmarks/cluster.py speed` holds the model against 1 to 4 machines; nothing of it has been run on
GPUs.
"""

import argparse
import math
import pickle
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

CHUNK = 4096


def seconds(sentences: float, workers: int, rate: float, start: float, handed: float) -> float:
    """On workers that each translate `rate` sentences a second, once all have started. The chunks are done in
    rounds; the last chunk is shorter."""
    rounds, last = divmod(math.ceil(sentences / CHUNK), workers)
    short = sentences - (math.ceil(sentences / CHUNK) - 1) * CHUNK
    worked = (rounds + bool(last)) * CHUNK / rate if last != 1 else (rounds * CHUNK + short) / rate
    return start + max(worked, sentences / handed)


def fitted(found: Mapping[tuple[int, int], float], handed: float) -> list[str]:
    """What the costs on one machine predict for others. `found` has seconds by machines and sentences, with
    two numbers of sentences for one machine."""
    few, many = sorted(lines for count, lines in found if count == 1)
    rounds = math.ceil(many / CHUNK) - math.ceil(few / CHUNK)
    rate = (many - few) / (found[1, many] - found[1, few])
    start = found[1, few] - few / rate
    rows = [
        f"Costs on one machine: {rate:,.0f} sentences/s in {rounds} further chunks, {start:.1f} s until the "
        f"worker is ready, {handed:,.0f} lines/s handed out.\n",
        "| machines | sentences | predicted s | measured s | difference |",
        "|---:|---:|---:|---:|---:|",
    ]
    for (count, lines), measured in sorted(found.items()):
        predicted = seconds(lines, count, rate, start, handed)
        off = f"{predicted / measured - 1:+.1%}" if count > 1 else "(fitted)"
        rows.append(f"| {count} | {lines:,} | {predicted:.1f} | {measured:.1f} | {off} |")
    return rows


def table(options: argparse.Namespace) -> list[str]:
    each = int(options.lines / options.rate)
    rows = ["| GPUs | commands | hours | GPU-hours | price |", "|---:|---:|---:|---:|---:|"]
    for gpus in (8, 16, 32, 64, 128, 256, 512):
        commands = -(-gpus // each)
        whole = seconds(options.sentences, gpus, options.rate, options.start, commands * options.lines)
        hours = whole / 3600
        price = hours * gpus * options.price
        rows.append(f"| {gpus} | {commands} | {hours:.2f} | {hours * gpus:.0f} | {price:,.0f} |")
    return [*rows, "", f"One command feeds {each} GPUs."]


class Nobody:
    """Workers that do nothing, at once; what they are sent and send is pickled, as Ray does it."""

    def __init__(self) -> None:
        self.hired, self.told = 0, []

    def wanted(self) -> int:
        return 8

    def hire(self) -> int:
        from dragoman.cluster.schedule import Ready

        self.hired += 1
        self.told.append((self.hired, Ready()))
        return self.hired

    def give(self, worker: int, items: Sequence[Any]) -> None:
        from dragoman.cli.output import WrittenLines
        from dragoman.cluster.on_ray import digest_of
        from dragoman.cluster.schedule import Made

        digest_of(items)
        came = pickle.loads(pickle.dumps(list(items)))
        written = WrittenLines([line.text for line in came], len(came))
        self.told.append((worker, Made(pickle.loads(pickle.dumps(written)))))

    def replies(self) -> list[Any]:
        told, self.told = self.told, []
        return told

    def dismiss(self, worker: int) -> None: ...


def measure(count: int) -> float:
    """Lines a second of one core that a command reads, hands out, receives and writes."""
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
        parts = Schedule(Nobody(), given, 0, print).results()
        replace_by_pieces(Path(name, "out"), {}, lambda _: map(as_piece, parts))
        spent = time.process_time() - began
    return count / spent


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=float, default=1e9)
    parser.add_argument("--rate", type=float, default=11_326.0, help="sentences/s of one GPU")
    parser.add_argument("--lines", type=float, default=250_000.0, help="lines/s that one command hands out")
    parser.add_argument("--start", type=float, default=60.0, help="seconds until a worker is ready")
    parser.add_argument("--price", type=float, default=3.0, help="of a GPU-hour")
    parser.add_argument("--measure", action="store_true")
    options = parser.parse_args()
    if options.measure:
        print(f"{measure(400_000):,.0f} lines a second of one core")
    else:
        print("\n".join(table(options)))


if __name__ == "__main__":
    main()

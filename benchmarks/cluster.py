"""Does a cluster write what one machine writes, whatever dies, and what does it cost?

    python benchmarks/cluster.py bytes        1, 2 and 4 machines, and every command on 2
    python benchmarks/cluster.py kills        a machine killed at random moments, on 1, 2 and 4
    python benchmarks/cluster.py drivers      the command itself killed at some, and given again
    python benchmarks/cluster.py poison       lines at which workers end or raise
    python benchmarks/cluster.py overhead     against the plain command, in turns
    python benchmarks/cluster.py memory       ten times the input
    python benchmarks/cluster.py speed        sentences a second on 1 to 4 machines, for cluster_model.py
    python benchmarks/cluster.py shared       the same on machines that share the cores of this computer

Each part replaces its section of results/cluster.md. Machines are raylets of Ray's own test cluster on this
computer, one core each; a machine is killed by SIGKILL to its raylet, which takes its workers with it. The
model is a small Transformer with given weights (tests/given.py), and an export of it for CTranslate2.
"""

import argparse
import os
import platform
import random
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cluster_model import CHUNK, fitted, measure
from cluster_place import (
    GREEDY,
    STORE,
    Place,
    Poisoned,
    Timed,
    Waiting,
    digest,
    here,
    lines_in,
    make_run,
    raylets,
    whole,
)

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "cluster.md"
RATE = 1000


def bytes_(place: Place) -> Iterator[str]:
    text = place.text(place.options.lines)
    for model in (place.run, place.export):
        wanted = place.directory / f"wanted-{model.name}"
        place.translate(model, text, wanted.name, *GREEDY).end()
    yield f"{place.options.lines:,} sentences, greedy.\n"
    yield "| machines | model | s | same bytes as one process | lines twice | lost |"
    yield "|---:|---|---:|---|---:|---:|"
    for count in place.options.machines:
        with raylets(count) as cluster:
            for model in (place.run, place.export):
                done = place.translate(model, text, "out", *GREEDY, "--cluster", cluster.address).end()
                same = whole(place.directory / "out", place.directory / f"wanted-{model.name}")
                yield f"| {count} | {model.name} | {done.seconds:.1f} | {same} |"


KILLED = (
    "| machines | lines written then | after s | whole after s | same bytes | twice | lost |",
    "|---:|---:|---:|---:|---|---:|---:|",
)


def kills(place: Place) -> Iterator[str]:
    def killed(cluster: Any, _begun: Timed) -> None:
        cluster.remove_node(chance.choice(list(cluster.worker_nodes)), allow_graceful=False)
        cluster.add_node(num_cpus=1, object_store_memory=STORE)

    chance = random.Random(place.options.seed)
    yield from disturbed(place, chance, place.options.times or 3, killed, again=False)


def drivers(place: Place) -> Iterator[str]:
    def killed(_cluster: Any, begun: Timed) -> None:
        begun.process.send_signal(signal.SIGKILL)

    chance = random.Random(place.options.seed)
    yield from disturbed(place, chance, place.options.times or 2, killed, again=True)


def disturbed(
    place: Place, chance: random.Random, times: int, kill: Callable[[Any, Timed], None], again: bool
) -> Iterator[str]:
    """A row for each kill during the work; those that came after the end are tried again, and not counted.
    The command is given `again` after one."""
    text = place.text(place.options.lines)
    place.translate(place.export, text, "wanted", *GREEDY).end()
    yield f"{place.options.lines:,} sentences, the export, seed {place.options.seed}.\n"
    yield from KILLED
    for count in place.options.machines:
        with raylets(count) as cluster:
            done = 0
            while done < times:
                command = (place.export, text, "out", *GREEDY, "--cluster", cluster.address)
                begun = place.translate(*command)
                written = at_random_moment(place, begun, chance)
                after = time.monotonic() - begun.began
                if begun.process.poll() is None and not (place.directory / "out").exists():
                    kill(cluster, begun)
                    done += 1
                    begun.end()
                    if again:
                        place.translate(*command).end()
                    seconds = time.monotonic() - begun.began
                    same = whole(place.directory / "out", place.directory / "wanted")
                    yield f"| {count} | {written:,} | {after:.1f} | {seconds:.1f} | {same} |"


def at_random_moment(place: Place, begun: Timed, chance: random.Random) -> int:
    """Wait until a chunk or more is written, and some time more; how many lines are written then."""
    part = place.directory / "out.progress.part"
    least, more = chance.randrange(CHUNK, place.options.lines), chance.uniform(0, 2)
    while begun.process.poll() is None and lines_in(part) < least - least % CHUNK:
        time.sleep(0.05)
    time.sleep(more)
    return lines_in(part)


def poison(place: Place) -> Iterator[str]:
    text = place.text(place.options.lines)
    place.translate(place.export, text, "wanted", *GREEDY).end()
    with raylets(2) as cluster:
        said = here(place, text, cluster, Poisoned)
    yield f"{place.options.lines:,} sentences, export, 2 machines; one line ends its process, two raise.\n"
    yield from (f"    {line}" for line in said.splitlines())
    pairs = zip(
        *((place.directory / name).read_bytes().splitlines() for name in ("out", "wanted")), strict=True
    )
    differ = [(number, own) for number, (own, other) in enumerate(pairs, 1) if own != other]
    empty = sum(not own for _, own in differ)
    yield f"\nLines unlike those of one process: {[number for number, _ in differ]}, {empty} of them empty."


def overhead(place: Place) -> Iterator[str]:
    """In turns: the run with its default search, or the export, which is the quickest there is."""
    text, ways = place.text(place.options.lines), {"plain": (), "--cluster local": ("--cluster", "local")}
    model, search = (place.export, GREEDY) if place.options.export else (place.run, ("--device", "cpu"))
    spent: dict[str, list[tuple[float, float]]] = {how: [] for how in ways}
    what = "the export, greedy" if place.options.export else "the run in PyTorch, its default search"
    yield f"{place.options.lines:,} sentences, {what}, all cores, in turns.\n"
    yield "| turn | command | s | CPU s of all its processes | load before | same bytes |"
    yield "|---:|---|---:|---:|---:|---|"
    for turn in range(place.options.times or 2):
        for how, further in ways.items():
            for left in place.directory.glob("*.progress.*"):  # a turn that was broken off would go on
                left.unlink()
            load = os.getloadavg()[0]
            done = place.translate(model, text, how[:5], *search, *further).end()
            cpu = done.watch.cpu()
            spent[how].append((done.seconds, cpu))
            same = digest(place.directory / "plain") == digest(place.directory / how[:5])
            yield f"| {turn + 1} | {how} | {done.seconds:.1f} | {cpu:.1f} | {load:.1f} | {same} |"
    plain, local = ([statistics.median(each) for each in zip(*spent[how], strict=True)] for how in ways)
    more = f"{local[1] - plain[1]:.1f} CPU s more ({local[1] / plain[1] - 1:+.1%})"
    yield f"\nOverhead, medians: {more}, {local[0] - plain[0]:.1f} s more ({local[0] / plain[0] - 1:+.1%})."


def memory(place: Place) -> Iterator[str]:
    yield "The export. Most memory (RSS) of a process at any time, MiB.\n"
    yield "| sentences | command | worker | s |"
    yield "|---:|---:|---:|---:|"
    for lines in (place.options.lines, 10 * place.options.lines):
        done = place.translate(place.export, place.text(lines), "out", *GREEDY, "--cluster", "local").end()
        own, worker = done.watch.memory("dragoman"), done.watch.memory("ray::RayWorker")
        yield f"| {lines:,} | {own:.0f} | {worker:.0f} | {done.seconds:.1f} |"


def speed(place: Place) -> Iterator[str]:
    """The costs that cluster_model.py takes, and what it has to predict from them. Two cores do not stand for
    four machines, so workers wait in place of translating; all else is real."""
    found = timed(place, lambda text, cluster: here(place, text, cluster, lambda work: Waiting(work, RATE)))
    yield f"Workers that wait as long as {RATE:,} sentences a second take; load {os.getloadavg()[0]:.0f}.\n"
    yield from fitted(found, RATE, measure(100_000)[0])


def shared(place: Place) -> Iterator[str]:
    """The same with workers that translate, and have the cores of this computer between them."""
    found = timed(
        place,
        lambda text, cluster: place.translate(
            place.run, text, "out", "--device", "cpu", "--cluster", cluster.address
        ).end(),
    )
    yield f"The run in PyTorch, its default search, a thread a machine; load {os.getloadavg()[0]:.0f}.\n"
    yield from fitted(found, 0.0, measure(100_000)[0], usable())


def timed(place: Place, do: Callable[[Path, Any], object]) -> dict[tuple[int, int], float]:
    """Seconds by machines and sentences."""
    few, many = place.options.lines // 4, place.options.lines
    found = dict[tuple[int, int], float]()
    for count in place.options.machines:
        with raylets(count) as cluster:
            for lines in (few, many) if count == 1 else (many,):
                text, began = place.text(lines), time.monotonic()
                do(text, cluster)
                found[count, lines] = time.monotonic() - began
                print(count, lines, f"{found[count, lines]:.1f} s", file=sys.stderr, flush=True)
    return found


def usable() -> int:
    return len(os.sched_getaffinity(0))


PARTS: dict[str, tuple[str, Callable[[Place], Iterator[str]], int]] = {
    "bytes": ("The same bytes on 1, 2 and 4 machines", bytes_, 25_000),
    "kills": ("A machine killed at random moments", kills, 60_000),
    "drivers": ("The command killed at random moments, and given again", drivers, 60_000),
    "poison": ("Poisonous lines", poison, 20_000),
    "overhead": ("What `--cluster local` costs against the plain command", overhead, 100_000),
    "memory": ("Memory while the input is ten times larger", memory, 100_000),
    "speed": ("The model of costs against 1 to 4 machines", speed, 240_000),
    "shared": ("The model of costs against 1 to 4 machines that share cores", shared, 30_000),
}


def save(title: str, rows: list[str]) -> None:
    """Replace a section of the results, or write a new one."""
    text = RESULT.read_text("utf-8")
    head, *sections = re.split(r"^## ", text, flags=re.M)
    known = {section.partition("\n")[0]: section for section in sections}
    known[title] = "\n".join((title, "", *rows, "", ""))
    order = [each for each, *_ in PARTS.values()]
    ordered = sorted(known, key=lambda name: order.index(name) if name in order else len(order))
    RESULT.write_text(
        head + "".join(f"## {known[name]}" for name in ordered).rstrip() + "\n", encoding="utf-8"
    )


def section(title: str) -> list[str]:
    _, _, found = RESULT.read_text("utf-8").partition(f"## {title}\n")
    return [found.partition("\n## ")[0].strip(), ""] if found else []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--lines", type=int)
    parser.add_argument("--times", type=int, help="kills on each number of machines, or turns")
    parser.add_argument("--machines", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--export", action="store_true", help="overhead of the export")
    parser.add_argument("--add", action="store_true", help="to what its section has already")
    parser.add_argument(
        "--keep", type=Path, help="directory with the run and the export, made if it is not there"
    )
    options = parser.parse_args()
    import ray

    from dragoman.cluster.on_ray import QUIET

    os.environ.update(QUIET)
    title, part, lines = PARTS[options.part]
    options.lines = options.lines or lines
    with tempfile.TemporaryDirectory(prefix="dragoman-cluster-") as name:
        place = Place(options.keep or Path(name), options)
        place.directory.mkdir(exist_ok=True)
        if not place.export.exists():
            make_run(place.directory)
            Timed("export", place.run, "--out", place.export).end()
        versions = f"Python {platform.python_version()}, Ray {ray.__version__}, {usable()} cores"
        rows = section(title) if options.add else []
        rows.append(f"`python {' '.join(sys.argv)}`, {time.strftime('%Y-%m-%d')}, {versions}.")
        for row in part(place):
            print(row, flush=True)
            rows.append(row)
            save(title, rows)  # what was measured is there if the rest is not


if __name__ == "__main__":
    main()

"""DDP and FSDP2 with one process against the plain loop: what a machine with one GPU can tell about nccl.

    python -m torch.distributed.run --standalone --nproc-per-node 1 tests/train/crew_of_one.py cuda

Prints, for float32 and bfloat16, how far the losses of 30 updates and two validations are from those of a run
without a process group, and those of the same run once more. `cpu` in place of `cuda` does it with gloo.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from dragoman.config import apply_overrides
from dragoman.training import api
from dragoman.training.distributed import ALONE, Crew, _Member
from toy import toy_config, toy_pairs, write_pairs

Join = Callable[[], AbstractContextManager[Crew]]
UPDATES = (
    *("train.max_updates=30", "train.log_every=1", "train.validate_every=15", "train.validate_sentences=0"),
    *("train.save_every=15", "train.accumulate=2", "train.ema=0.9", "train.pack=false"),
)


@contextmanager
def alone() -> Iterator[Crew]:
    yield ALONE


@contextmanager
def member() -> Iterator[Crew]:
    """As `joined`, which leaves a single process alone."""
    crew = _Member()
    try:
        yield crew
    finally:
        crew.heartbeat.end()
        if dist.is_initialized():
            dist.destroy_process_group()


def losses(files: tuple[str, str], out: Path, join: Join, *overrides: str) -> list[float]:
    """Of all updates and validations."""
    api.joined_crew = join
    run = api.train(apply_overrides(toy_config(files), [*UPDATES, *overrides]), out=out, quiet=True)
    return [record["loss"] for record in run.metrics]


def main(device: str) -> None:
    ways: tuple[tuple[str, Join, tuple[str, ...]], ...] = (
        ("alone", alone, ()),
        ("alone, again", alone, ()),
        ("DDP", member, ()),
        ("FSDP2", member, ("train.shard=true",)),
    )
    print(f"torch {torch.__version__}, {device}\n\n| | float32 | bfloat16 |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        files = write_pairs(Path(folder), toy_pairs(160))
        known: dict[str, list[float]] = {}
        for name, join, own in ways:
            apart = []
            for amp in ("none", "bf16"):
                out = Path(folder) / f"{name}-{amp}"
                found = losses(files, out, join, f"train.amp={amp}", f"train.device={device}", *own)
                plain = known.setdefault(amp, found)
                apart.append(max(abs(a - b) / abs(a) for a, b in zip(plain, found, strict=True)))
            print(f"| {name} | {apart[0]:.1e} | {apart[1]:.1e} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

"""Pre-training speed on a GPU: GPT-2 small and BERT base, beside Hugging Face's, eager and compiled.

    python benchmarks/pretrain_gpu.py [--lengths 512 1024] [--rounds 5] [--updates 10] [--profile FILE]

Every contender does the same work: forward with dropout 0.1 everywhere, the loss of a causal or a masked
language model, backward, clipping, fused AdamW, bfloat16 under autocast, with as many tokens an update and
the same weights, whose losses are compared first. Ours is the update of the training loop itself, with
its data read, noised, packed and moved ahead; the peers are given one whole batch, without padding, again and
again, and compile forward pass and loss as one. BERT has no next sentences here, and places for 1,024 pieces.
"""

import argparse
import gc
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common import interleave, median, write_table
from contender import count_parameters
from dragoman.data.batch import PairBatch, TextBatch
from dragoman.data.corpus import Prepared, prepare
from dragoman.data.packed import Batch
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.learning.masked import MaskedLanguageModel
from dragoman.learning.resolve import resolve_config
from dragoman.models import Network
from dragoman.runs.config import RunConfig
from dragoman.text.tokenizer import PAD_ID
from dragoman.training.batches import Batches
from dragoman.training.state import Training
from dragoman.training.update import Late, Learnt, learn
from made_up import write_text
from on_gpu import DEVICE, matrix_rate, show_profile, turn, wait
from peers import published_like
from pretrain_peers import Labelled, Peer, published_loss

PRESETS = {"gpt": "gpt-2", "bert": "bert-base"}
VOCABULARIES = {"gpt": 50_257, "bert": 30_522}
NAMES = {"gpt": "GPT-2 small", "bert": "BERT base"}
OURS, EAGER, COMPILED = "dragoman", "HF eager", "HF compiled"
SHARE = 0.15  # of the pieces that BERT is asked for


@dataclass(frozen=True)
class Point:
    kind: str
    length: int
    """Of a sequence: GPT's source of one piece or BERT's two marks counted."""
    rows: int

    def config(self, file: str, options: argparse.Namespace) -> RunConfig:
        gpt = self.kind == "gpt"
        objective = {"name": "causal", "block": self.length - 1} if gpt else {"name": "masked"}
        if not gpt:
            objective |= {"block": self.length - 2, "next_sentence": False, "noise": {"share": SHARE}}
        marks = -1 if gpt else 1  # what the sampler counts more than a row has
        plain = {
            "data": {"train": [{"files": [file], "format": "text"}], "valid_size": 10},
            "tokenizer": {
                "kind": "word",
                "vocab_size": options.vocabularies[self.kind],
                "min_frequency": 1,
                "joint": True,
            },
            "model": {"preset": PRESETS[self.kind], "max_positions": 1024},
            "objective": objective,
            "optim": {"name": "adamw", "rate": 1e-4},
            "schedule": {"warmup": 100},
            "train": {
                "max_updates": 1_000_000,
                "batch_tokens": self.rows * (self.length + marks),
                "amp": "bf16",
                "clip": 1.0,
            },
        }
        return resolve_config(plain, [f"model.{field}" for field in options.model])

    def random(self, vocab_size: int) -> Labelled:
        share = 1.0 if self.kind == "gpt" else SHARE
        return Labelled.random((self.rows, self.length), vocab_size, share)


def operations(config: Any, vocab_size: int, point: Point) -> float:
    """That a token needs: of all matrix products, forwards and twice backwards. A causal attention looks at
    half of what there is; a masked language model says `SHARE` of its pieces."""
    gpt, width = point.kind == "gpt", config.model_dim
    layer = 4 * width**2 + 2 * width * config.ff_dim
    head = vocab_size * width if gpt else SHARE * (vocab_size * width + width**2)
    attention = config.num_layers * point.length * width * (1 if gpt else 2)
    return 6.0 * (config.num_layers * layer + head + attention)


class Ours:
    """The training loop: batches ahead, then `learn`."""

    def __init__(self, config: RunConfig, prepared: Prepared) -> None:
        self.training = Training(config, prepared, DEVICE)
        self.data = Batches(config, prepared, DEVICE, packed=self.training.packed).updates(0, 0)
        self.before: Learnt | Late | None = None

    def __call__(self) -> torch.Tensor:
        """As the loop does it: the numbers of an update are looked at when the next one is launched."""
        self.training.progress.update += 1
        update = next(self.data)
        learnt = learn(self.training, update)
        assert self.before is None or self.before.finite
        self.before = learnt
        return sum((_pieces(micro.batch) for micro in update.micro_batches), torch.zeros((), device=DEVICE))


def _pieces(batch: Batch) -> torch.Tensor:
    """That are read, padding not counted."""
    read = [batch.src_ids, batch.tgt_in] if isinstance(batch, PairBatch) else [batch.ids]  # type: ignore[union-attr]
    return torch.stack([(ids != PAD_ID).sum() for ids in read]).sum()


def compare_losses(ours: Network, theirs: torch.nn.Module, point: Point, batch: Batch) -> float:
    """How far apart both are on one batch in float32 without dropout, with the weights of the start."""
    ours, theirs = ours.eval(), theirs.eval()
    with torch.no_grad():
        if isinstance(batch, PairBatch):
            last = batch.tgt_out[:, -1:]
            few = PairBatch(
                batch.src_ids,
                batch.src_mask,
                batch.tgt_in,
                torch.cat([batch.tgt_out[:, :-1], torch.zeros_like(last)], dim=1),
                batch.tgt_mask,
                int((batch.tgt_out[:, :-1] != PAD_ID).sum()),
            )
            loss = CrossEntropy()(ours, few)  # type: ignore[arg-type]
        else:
            assert isinstance(batch, TextBatch)
            few = batch
            loss = MaskedLanguageModel()(ours, few)  # type: ignore[arg-type]
        labelled = Labelled.of(few)
        expected = published_loss(theirs, point.kind)(labelled.ids, labelled.labels)
    ours.train()
    return abs(float(loss.nll) / loss.count - float(expected))


def whole_batch(config: RunConfig, prepared: Prepared, rows: int = 2) -> Batch:
    """Some rows that need no padding."""
    cpu = Batches(config, prepared, torch.device("cpu"))
    examples = cpu.examples
    for first in range(len(examples) - rows):
        batch = examples.batch(torch.arange(first, first + rows).numpy(), 0)
        if isinstance(batch, PairBatch) or bool(batch.mask.all()):  # type: ignore[union-attr]
            return batch.to(DEVICE)
    raise SystemExit("every row has a mark in it: make the paragraphs longer")


@dataclass
class Measured:
    step: Callable[[], int | torch.Tensor]
    first: float
    """Seconds from nothing to the end of the first update."""


def begin(make: Callable[[], Callable[[], int | torch.Tensor]], warm_up: int) -> Measured:
    began = time.perf_counter()
    step = make()
    step()
    wait()
    first = time.perf_counter() - began
    for _ in range(warm_up):
        step()
    wait()
    return Measured(step, first)


def measure(point: Point, config: RunConfig, prepared: Prepared, options: argparse.Namespace) -> dict:
    _, wiring = config.model_config
    size = prepared.tgt_tokenizer.size
    found = {OURS: begin(lambda: Ours(config, prepared), options.warm_up)}
    print(f"{point}: {OURS}, first update after {found[OURS].first:.1f} s", flush=True)
    ours = found[OURS].step
    assert isinstance(ours, Ours)
    if options.profile is not None:
        show_profile(ours, 5, Path(f"{options.profile}-{point.kind}-{point.length}.txt"))
    model = ours.training.model
    apart = compare_losses(
        model, published_like(model, wiring, point.kind).to(DEVICE), point, whole_batch(config, prepared)
    )
    print(f"{point}: losses are {apart:.1e} apart", flush=True)
    assert apart < 1e-3, "these are not the same model"
    for name in options.peers:
        theirs = published_like(model, wiring, point.kind).to(DEVICE)
        assert count_parameters(theirs) == count_parameters(model)
        found[name] = begin(
            lambda it=theirs, c=name == COMPILED: Peer(it, point.kind, point.random(size), c), 3
        )
        print(f"{point}: {name}, first update after {found[name].first:.1f} s", flush=True)
    turns = {name: lambda it=it: turn(it.step, options.updates) for name, it in found.items()}
    speeds = interleave(options.rounds, turns)
    ours.data.close()  # type: ignore[attr-defined]
    return {
        "kind": point.kind,
        "length": point.length,
        "a_token": operations(wiring, size, point),
        "parameters": count_parameters(model),
        "apart": apart,
        "speeds": speeds,
        "first": {name: it.first for name, it in found.items()},
    }


def compile_ahead(points: list[Point], arguments: list[str]) -> Iterator[subprocess.Popen]:
    """Processes that compile the peers side by side: what they find is kept in torch's cache on disk, and the
    measured process, which then takes seconds for each of them, does not have to wait for it four times."""
    for point in points:
        wanted = [*arguments, "--compile-only", point.kind, str(point.length)]
        yield subprocess.Popen([sys.executable, __file__, *wanted], stdout=subprocess.DEVNULL)


def compile_only(point: Point, options: argparse.Namespace) -> None:
    from dragoman.models import build_network
    from dragoman.models.base import Vocab

    size = options.vocabularies[point.kind]
    _, wiring = point.config("", options).model_config
    ours = build_network(point.kind, wiring, Vocab(size, size, shared=True))
    Peer(published_like(ours, wiring, point.kind).to(DEVICE), point.kind, point.random(size), compiled=True)()
    wait()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kinds", nargs="*", default=list(PRESETS), choices=list(PRESETS))
    parser.add_argument("--lengths", nargs="*", type=int, default=[512, 1024])
    parser.add_argument("--tokens", type=int, default=16_384, help="of an update")
    parser.add_argument("--updates", type=int, default=10, help="updates of a contender in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=8, help="updates of ours before: it meets its forms")
    parser.add_argument("--peers", nargs="*", default=[EAGER, COMPILED], choices=[EAGER, COMPILED])
    parser.add_argument("--vocabulary", type=int, help="pieces of both models, for a trial")
    parser.add_argument(
        "--model", nargs="*", default=[], help="fields of both models, for a trial: num_layers=2"
    )
    parser.add_argument("--profile", help="where the time of ours goes, by kernel: files that begin so")
    parser.add_argument("--keep", help="a file for the measured numbers, point by point")
    parser.add_argument("--compile-only", nargs=2, metavar=("KIND", "LENGTH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.vocabularies = {kind: options.vocabulary or size for kind, size in VOCABULARIES.items()}
    return options


def main() -> None:
    options = arguments()
    if options.compile_only:
        kind, length = options.compile_only
        compile_only(Point(kind, int(length), options.tokens // int(length)), options)
        return
    points = [
        Point(kind, length, options.tokens // length) for kind in options.kinds for length in options.lengths
    ]
    began = time.perf_counter()
    compiling = list(compile_ahead(points, sys.argv[1:])) if COMPILED in options.peers else []
    found = []
    with tempfile.TemporaryDirectory() as directory:
        prepared = {kind: _prepare(kind, Path(directory), options) for kind in options.kinds}
        for process in compiling:
            process.wait()
        cold = time.perf_counter() - began
        print(f"prepared, and compiled ahead, in {cold:.1f} s", flush=True)
        rate = matrix_rate()
        for point in points:
            file, corpus = prepared[point.kind]
            found.append(measure(point, point.config(file, options), corpus, options))
            gc.collect()
            torch.compiler.reset()
            if options.keep:
                Path(options.keep).write_text(json.dumps({"rate": rate, "points": found}), encoding="utf-8")
    show(found, rate, options)


def _prepare(kind: str, directory: Path, options: argparse.Namespace) -> tuple[str, Prepared]:
    """A text of 80 updates, and all words of the vocabulary."""
    (directory / kind).mkdir()
    size = options.vocabularies[kind]
    file = write_text(directory / kind, 80 * options.tokens, size)
    config = Point(kind, 512, 1).config(file, options)
    return file, prepare(config.data, config.tokenizer, seed=1, cache=directory / kind / "cache")


def show(found: list[dict], rate: float, options: argparse.Namespace) -> None:
    rows = []
    for point in found:
        speeds = {name: median(values) for name, values in point["speeds"].items()}
        for name, speed in speeds.items():
            against = [speeds.get(peer, math.nan) for peer in (EAGER, COMPILED)]
            rows.append(
                [
                    NAMES[point["kind"]],
                    f"{point['length']:,}",
                    name,
                    f"{speed / 1e3:,.1f}",
                    *(f"{speed / other:.2f}" for other in against),
                    f"{speed * point['a_token'] / rate:.0%}",
                    f"{point['first'][name]:.1f}",
                ]
            )
    header = ["model", "length", "", "thousand tokens/s", "to HF eager", "to HF compiled"]
    header += ["of the matrix rate", "first update, s"]
    parameters = ", ".join({f"{NAMES[p['kind']]} {p['parameters'] / 1e6:.1f} million" for p in found})
    notes = (
        f"Median of {options.rounds} interleaved rounds of {options.updates} updates of {options.tokens:,} "
        f"tokens; {parameters} parameters, the same in all; bfloat16 under autocast, dropout 0.1 (of "
        "attention, too), clipping, fused AdamW; losses in float32 with the same weights are at most "
        f"{max(p['apart'] for p in found):.0e} apart. The matrix rate is what a product of 8192 × 8192 "
        f"bfloat16 numbers reached in this run, {rate / 1e12:.0f} TFLOP/s. The share of it counts what the "
        "task needs: matrix products with their gradients, half of a causal attention, and BERT's projection "
        "at the 15% of places that are asked for. Ours computes it there alone, while Hugging Face computes "
        "it everywhere: a part of what ours gains on BERT. Ours reads its data (paragraphs of 100 to 300 "
        "words; BERT's rows differ in length by their marks, and are packed); the peers have one batch, "
        "always the same. The first update counts from building model and optimizer; that of the compiled "
        "peer finds its kernels in torch's cache on disk, which another process has filled before.\n\n"
        "Command: `python benchmarks/pretrain_gpu.py`"
    )
    whole = len(found) == 4 and len(options.peers) == 2 and not options.model
    write_table("pretrain_gpu", "Pre-training on a GPU", header, rows, notes, DEVICE.type == "cuda" and whole)


if __name__ == "__main__":
    main()

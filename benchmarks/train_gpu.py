"""Training speed on a GPU: ours beside Hugging Face MarianMT and nn.Transformer, same batches, interleaved.

    python benchmarks/train_gpu.py [--rounds 3] [--updates 20] [--profile]
    python benchmarks/train_gpu.py --curve 200 --batch-tokens 14000

Transformer-base with a joint vocabulary of 32,000 pieces on a made-up corpus whose lengths are those of WMT
(log-normal, 28 pieces on average, both sides alike). Every contender does the same work: forward with dropout
0.1, label-smoothed loss, backward, clipping, fused AdamW, bfloat16. Ours is the update of the training loop
itself, with its data read, packed and moved ahead. The compiled peer is given one batch of middle length
again and again, since it would compile anew for others: more than it would reach on all of them.

With `--curve` the loss of the fast path is held to that of the plain one instead, with two seeds each.
"""

import argparse
import gc
import itertools
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from common import interleave, median, plain_loss, stepper, write_table
from dragoman.data.batch import PairBatch
from dragoman.data.corpus import Prepared, prepare
from dragoman.learning.resolve import resolve_config
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.runs.config import RunConfig
from dragoman.training.batches import Batches
from dragoman.training.state import Training
from dragoman.training.update import Late, Learnt, learn
from made_up import MEAN_LENGTH, write_corpus
from on_gpu import DEVICE, HALF, matrix_rate, show_profile, turn, wait
from peers import TorchTransformer, published_like

Step = Callable[[], int]
"""One update; gives its target tokens."""


def run_config(files: list[str], options: argparse.Namespace, *overrides: str) -> RunConfig:
    plain = {
        "data": {"train": [{"files": files}], "valid_size": 10},
        "tokenizer": {"kind": "word", "vocab_size": options.vocab_size, "joint": True},
        "model": {"preset": options.model, "position_layout": "halves", "dropout": 0.1},
        "objective": {"label_smoothing": 0.1},
        "optim": {"name": "adamw", "rate": 5e-4},
        "schedule": {"warmup": 100},
        "train": {"max_updates": 100_000, "batch_tokens": options.batch_tokens, "amp": "bf16"},
    }
    return resolve_config(plain, overrides)


def operations(config: TransformerConfig, vocab_size: int, src_tokens: int, tgt_tokens: int) -> float:
    """Of all matrix products, forwards and twice backwards; padding and attention not counted."""
    square, wide = config.model_dim**2, 2 * config.model_dim * config.ff_dim
    encoder = config.num_layers * (4 * square + wide + 2 * square)  # and what the decoder asks of the memory
    decoder = (config.num_decoder_layers or config.num_layers) * (6 * square + wide)
    projection = vocab_size * config.model_dim
    return 6.0 * (encoder * src_tokens + (decoder + projection) * tgt_tokens)


class Ours:
    """The training loop: batches ahead, then `learn`."""

    def __init__(self, config: RunConfig, prepared: Prepared) -> None:
        self.training = Training(config, prepared, DEVICE)
        self.batches = Batches(config, prepared, DEVICE, packed=self.training.packed)
        self.data = self.batches.updates(0, 0)
        self.model = self.training.model
        self.before: Learnt | Late | None = None

    def __call__(self) -> int:
        """As the loop does it: the numbers of an update are looked at when the next one is launched."""
        self.training.progress.update += 1
        learnt = learn(self.training, next(self.data))
        assert self.before is None or self.before.finite
        self.before = learnt
        return learnt.tokens


class Peer:
    """Another model on the same batches, with padding."""

    def __init__(
        self,
        model: torch.nn.Module,
        logits_of: Callable[[PairBatch], torch.Tensor],
        config: RunConfig,
        prepared: Prepared,
        one_shape: bool = False,
    ) -> None:
        self.model = model

        def loss(batch: PairBatch) -> torch.Tensor:
            with torch.autocast(DEVICE.type, dtype=HALF):
                return plain_loss(logits_of(batch), batch)

        self.step = stepper(model, loss)
        batches = (
            update.micro_batches[0].batch for update in Batches(config, prepared, DEVICE).updates(0, 0)
        )
        self.data = iter(batches)
        if one_shape:
            self.data = itertools.repeat(next(b for b in batches if 26 <= b.shape[1] <= MEAN_LENGTH + 5))

    def __call__(self) -> int:
        batch = next(self.data)
        assert isinstance(batch, PairBatch)
        self.step(batch)
        return batch.num_tokens


def contenders(
    options: argparse.Namespace, files: list[str], prepared: Prepared
) -> Iterator[tuple[str, Callable[[], Ours | Peer]]]:
    config = run_config(files, options)
    yield "dragoman", lambda: Ours(config, prepared)
    yield "dragoman, padded", lambda: Ours(run_config(files, options, "train.pack=false"), prepared)
    _, wiring = config.model_config
    size = prepared.tgt_tokenizer.size

    def marian(compiled: bool) -> Peer:
        ours = build_model("transformer", wiring, Vocab(size, size, shared=True))
        model = published_like(ours, wiring).train().to(DEVICE)
        called = torch.compile(model, dynamic=False) if compiled else model

        def logits(batch: PairBatch) -> torch.Tensor:
            return called(
                input_ids=batch.src_ids,
                attention_mask=batch.src_mask.long(),
                decoder_input_ids=batch.tgt_in,
                use_cache=False,
            ).logits

        return Peer(model, logits, config, prepared, one_shape=compiled)

    def plain() -> Peer:
        model = TorchTransformer(wiring, size).train().to(DEVICE)
        return Peer(model, lambda b: model(b.src_ids, b.src_mask, b.tgt_in), config, prepared)

    yield "nn.Transformer", plain
    yield "HF MarianMT", lambda: marian(compiled=False)
    if not options.no_compile:
        yield "HF MarianMT, compiled, one shape", lambda: marian(compiled=True)


@dataclass
class Measured:
    step: Ours | Peer
    first: float
    """Seconds from nothing to the end of the first update."""
    bytes_a_token: float


def begin(make: Callable[[], Ours | Peer], warm_up: int) -> Measured:
    began = time.perf_counter()
    step = make()
    before = 0
    if DEVICE.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    tokens = [step()]
    wait()
    first = time.perf_counter() - began
    tokens += [step() for _ in range(warm_up)]
    most = torch.cuda.max_memory_allocated() - before if DEVICE.type == "cuda" else 0
    return Measured(step, first, most / max(tokens))


def curves(options: argparse.Namespace, files: list[str], prepared: Prepared) -> list[list[str]]:
    """Mean loss of the last fifth of the updates and of all, for both paths and two seeds."""
    rows = []
    for name, pack in (("packed, with kernels", "true"), ("padded", "false")):
        for seed in (1, 2):
            step = Ours(run_config(files, options, f"train.pack={pack}", f"seed={seed}"), prepared)
            losses = []
            for data in itertools.islice(step.data, options.curve):
                step.training.progress.update += 1
                found = learn(step.training, data)
                losses.append(found.nll / found.tokens)
            marks = [losses[min(len(losses), mark) - 1] for mark in (50, 100, 150)]
            last = losses[-max(1, len(losses) // 5) :]
            rows.append([name, str(seed), *(f"{x:.3f}" for x in marks), f"{sum(last) / len(last):.4f}"])
            assert all(map(math.isfinite, losses))
            print("curve", *rows[-1], flush=True)
            step.data.close()  # type: ignore[attr-defined]
            del step
            gc.collect()
    return rows


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model", default="transformer-base")
    parser.add_argument("--vocab-size", type=int, default=32_000)
    parser.add_argument("--batch-tokens", type=int, default=28_000)
    parser.add_argument("--updates", type=int, default=20, help="updates of a contender in a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--curve", type=int, default=0, help="compare the losses of so many updates instead")
    parser.add_argument("--tokens", type=int, default=1_200_000, help="of each side of the corpus")
    parser.add_argument("--only", nargs="*", help="contenders by name")
    parser.add_argument("--no-compile", action="store_true", help="without the compiled peer")
    parser.add_argument("--profile", action="store_true", help="where the time of ours goes, by kernel")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory() as directory:
        files = write_corpus(Path(directory), options.tokens, options.vocab_size)
        config = run_config(files, options)
        began = time.perf_counter()
        prepared = prepare(config.data, config.tokenizer, seed=1, cache=Path(directory) / "cache")
        print(f"corpus of {len(prepared.train):,} pairs prepared in {time.perf_counter() - began:.1f} s")
        if options.curve:
            compare(options, files, prepared)
        else:
            measure(options, files, config, prepared)


def compare(options: argparse.Namespace, files: list[str], prepared: Prepared) -> None:
    header = ["nats a target token", "seed", "update 50", "100", "150"]
    header.append(f"mean of the last {max(1, options.curve // 5)}")
    notes = (
        f"Loss of {options.curve} updates, {options.model}, `train.batch_tokens` {options.batch_tokens:,}, a "
        f"made-up corpus whose words have one translation each; bfloat16, dropout 0.1.\n\n"
        f"Command: `python benchmarks/train_gpu.py --curve {options.curve} "
        f"--batch-tokens {options.batch_tokens}`"
    )
    rows = curves(options, files, prepared)
    keep = DEVICE.type == "cuda"
    write_table("train_gpu_curve", "The fast path and the plain one", header, rows, notes, keep)


def measure(options: argparse.Namespace, files: list[str], config: RunConfig, prepared: Prepared) -> None:
    rate = matrix_rate()
    found: dict[str, Measured] = {}
    for name, make in contenders(options, files, prepared):
        if options.only is None or name in options.only:
            found[name] = begin(make, warm_up=100 if name == "dragoman" else 10)  # to meet all its forms
            print(f"{name}: first update after {found[name].first:.1f} s", flush=True)
            if options.profile and name.startswith("dragoman"):
                show_profile(found[name].step)
    turns = {name: lambda it=it: turn(it.step, options.updates) for name, it in found.items()}
    speeds = {name: median(values) for name, values in interleave(options.rounds, turns).items()}
    _, wiring = config.model_config
    size = prepared.tgt_tokenizer.size
    src, tgt = (int(x.sum()) + len(x) for x in (prepared.train.src_lengths, prepared.train.tgt_lengths))
    a_token = operations(wiring, size, src, tgt) / tgt
    best = max((speed for name, speed in speeds.items() if "dragoman" not in name), default=math.nan)
    rows = [
        [
            name,
            f"{speed / 1e3:,.0f}",
            f"{speed / best:.2f}",
            f"{speed * a_token / rate:.0%}",
            f"{found[name].bytes_a_token / 1e3:,.0f}",
            f"{found[name].first:.1f}",
        ]
        for name, speed in speeds.items()
    ]
    found.clear()
    gc.collect()
    sampler = Batches(config, prepared, torch.device("cpu")).sampler
    tokens = tgt / sampler.num_batches(0)
    notes = (
        f"Median of {options.rounds} interleaved rounds of {options.updates} updates; {options.model}, joint "
        f"vocabulary of {size:,} pieces, batches of {tokens:,.0f} target tokens on average "
        f"(`train.batch_tokens` {options.batch_tokens:,}), {tgt / len(prepared.train):.1f} a sentence; "
        "bfloat16, dropout 0.1, label smoothing 0.1, clipping, fused AdamW; cuDNN's attention, which plans "
        "anew for every shape, is off for everybody. The matrix rate is what a product of 8192 × 8192 "
        f"bfloat16 numbers reached in this run, {rate / 1e12:.0f} TFLOP/s; a target token and its source "
        f"take {a_token / 1e6:.0f} MFLOP, padding and attention not counted. Memory: what an update takes at "
        "its peak beside weights and optimizer state. The first update counts from building the model. The "
        "compiled peer has one batch of middle length, always the same.\n\n"
        "Command: `python benchmarks/train_gpu.py`"
    )
    header = ["", "thousand target tokens/s", "to the best peer", "of the matrix rate"]
    header += ["peak kB a token", "first update, s"]
    keep = DEVICE.type == "cuda" and options.only is None
    write_table("train_gpu", "Training on a GPU", header, rows, notes, keep)


if __name__ == "__main__":
    main()

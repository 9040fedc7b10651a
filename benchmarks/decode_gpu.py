"""Beam search on a GPU: Hugging Face `generate` and ours, with the same weights and the same forced length.

    python benchmarks/decode_gpu.py [--rounds 5] [--batches 1 64 512] [--profile]

A Transformer-base with random weights, bfloat16, vocabulary 32,000, 28 source and target tokens, beam 4. The
table has the roofline of every point too: the time that the bytes and products of a step would take at the
memory rate and the matrix rate that the card reached in the same run.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch.profiler import ProfilerActivity, profile

from common import interleave, median, write_table
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.beam import Beam
from dragoman.decode.search.config import BeamSearch
from dragoman.decode.search.job import Ended, Job
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import search
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.presets import transformer_base
from dragoman.models.transformer import TransformerConfig
from peers import published_like

VOCAB, LENGTH, BEAMS = 32_000, 28, 4
HALF = torch.bfloat16
SETTINGS = BeamSearch(beam=BEAMS, max_ratio=0, max_extra=LENGTH, min_length=LENGTH - 1, loop_guard=False)
HEADER = ["sentences at once", "HF generate", "ours, unrecorded", "ours", "ours / HF"]
HEADER += ["ms a step", "roofline", "of the roofline"]


def seconds(work: Callable[[], object], times: int = 1) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(times):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / times


def rates() -> tuple[float, float]:
    """Bytes and floating-point operations a second that this card reaches."""
    block = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    other = torch.empty_like(block)
    square = torch.randn(8192, 8192, dtype=HALF, device="cuda")
    for work in (lambda: other.copy_(block), lambda: square @ square):
        seconds(work, 3)
    bytes_a_second = 2 * block.numel() / seconds(lambda: other.copy_(block), 10)
    return bytes_a_second, 2 * 8192**3 / seconds(lambda: square @ square, 10)


@dataclass(frozen=True)
class Roofline:
    """The least that has to be read and multiplied, part by part."""

    config: TransformerConfig
    bytes_a_second: float
    products_a_second: float

    def seconds_for(self, batch: int) -> float:
        dim, layers, rows = self.config.model_dim, self.config.num_layers, batch * BEAMS
        feedforward = 2 * dim * self.config.ff_dim
        encoder = layers * (4 * dim * dim + feedforward)
        memory = layers * 2 * dim * dim  # keys and values of cross-attention
        decoder = layers * (6 * dim * dim + feedforward)
        logits = rows * VOCAB * 4 * 3  # written, read for the sum, read for the best
        sources = batch * LENGTH * 2 * dim * 2 * layers  # a memory is read once for all beams
        past = rows * LENGTH / 2 * 2 * dim * 2 * layers
        step = self._product(decoder, rows) + self._product(VOCAB * dim, rows)
        step += (logits + sources + past) / self.bytes_a_second
        return self._product(encoder + memory, batch * LENGTH) + LENGTH * step

    def _product(self, weights: int, rows: int) -> float:
        return max(2 * weights / self.bytes_a_second, 2 * weights * rows / self.products_a_second)


class Contenders:
    """Three searches of the same batch with the same weights."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.config = replace(transformer_base(), position_layout="halves", dropout=0.0)
        ours = build_model("transformer", self.config, Vocab(VOCAB, VOCAB, shared=True)).eval()
        self.marian = published_like(ours, self.config).eval().to("cuda", HALF)
        self.scorer = Scorer([ours.requires_grad_(False).to("cuda", HALF)])

    def batch(self, sentences: int) -> None:
        self.ids = torch.randint(3, VOCAB, (sentences, LENGTH), device="cuda")
        self.mask = torch.ones_like(self.ids, dtype=torch.bool)
        self.jobs = [Job(tuple(source)) for source in self.ids.tolist()]

    def hugging_face(self) -> None:
        found = self.marian.generate(
            input_ids=self.ids,
            attention_mask=self.mask.long(),
            num_beams=BEAMS,
            do_sample=False,
            min_new_tokens=LENGTH,
            max_new_tokens=LENGTH,
        )
        assert found.size(1) == LENGTH + 1

    def ours(self) -> list[list[Ended]]:
        found = search(self.scorer, self.jobs, SETTINGS)
        assert all(len(best.tokens) == LENGTH for best, *_ in found)
        return found

    def unrecorded(self) -> list[list[Ended]]:
        with torch.inference_mode():
            batch = SearchBatch.of(self.jobs, SETTINGS, self.scorer.vocab, self.scorer.device)
            return Beam(self.scorer, batch, SETTINGS).run()


def measure(contenders: Contenders, roofline: Roofline, batch: int, rounds: int) -> list[str]:
    contenders.batch(batch)
    works = {"HF": contenders.hugging_face, "un": contenders.unrecorded, "ours": contenders.ours}
    for work in works.values():
        seconds(work, 2)
    pairs = zip(contenders.ours(), contenders.unrecorded(), strict=True)
    same = sum(one[0].tokens == other[0].tokens for one, other in pairs)
    print(f"{same} of {batch} sentences as without recording", flush=True)
    turns = {name: lambda work=work: batch / seconds(work) for name, work in works.items()}
    speeds = {name: median(values) for name, values in interleave(rounds, turns).items()}
    least, taken = roofline.seconds_for(batch), batch / speeds["ours"]
    return [
        str(batch),
        *(f"{speed:,.1f}" for speed in speeds.values()),
        f"{speeds['ours'] / speeds['HF']:.1f}",
        f"{taken / LENGTH * 1e3:.3f}",
        f"{least / LENGTH * 1e3:.3f}",
        f"{least / taken:.0%}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, nargs="*", default=[1, 64, 512])
    parser.add_argument("--profile", action="store_true", help="where the time of ours goes, by kernel")
    options = parser.parse_args()
    contenders = Contenders()
    roofline = Roofline(contenders.config, *rates())
    rows = []
    for batch in options.batches:
        rows.append(measure(contenders, roofline, batch, options.rounds))
        if options.profile:
            with profile(activities=[ProfilerActivity.CUDA]) as profiled:
                contenders.ours()
            print(profiled.key_averages().table("cuda_time_total", row_limit=25, max_name_column_width=80))
    memory, products = roofline.bytes_a_second / 1e12, roofline.products_a_second / 1e12
    notes = (
        f"Sentences a second, beam {BEAMS}, {LENGTH} source and {LENGTH} forced target tokens, "
        f"Transformer-base with vocabulary {VOCAB:,}, bfloat16; median of {options.rounds} interleaved "
        "rounds. «Unrecorded» is our search without graphs, kernel by kernel. The roofline is the time of a "
        f"step, the encoder's share included, at {memory:.2f} TB/s and {products:.0f} TFLOP/s, both measured "
        "in this run.\n\nCommand: `python benchmarks/decode_gpu.py`"
    )
    write_table("decode_gpu", "Beam search on a GPU", HEADER, rows, notes)


if __name__ == "__main__":
    main()

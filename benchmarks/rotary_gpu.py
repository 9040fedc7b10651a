"""Rotary positions on the fast path of a GPU: is everything the same, and how fast is it?

    PYTHONPATH=src python benchmarks/rotary_gpu.py
    PYTHONPATH=src python benchmarks/rotary_gpu.py --together 8     also as 8 processes that share the card
    PYTHONPATH=src python benchmarks/rotary_gpu.py --dry            tiny, also without a GPU

1. Packed and recorded batches against padded ones kernel by kernel, in float32 without dropout.
2. Recorded search against the plain one, in float32.
3. Updates a second of a small model, recorded and not, in bfloat16. «Host» is the time that the host takes to
   launch an update; if it is the whole time of an update, the card waits for the host.

Every result is saved as it comes (rotary_gpu.jsonl in $OUT, or else beside the tables).
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from dragoman.data.batch import PairBatch, collate
from dragoman.data.packed import Batch, PackedPairs
from dragoman.decode.search.batch import SearchBatch
from dragoman.decode.search.beam import Beam
from dragoman.decode.search.config import SearchConfig
from dragoman.decode.search.job import Ended, Job
from dragoman.decode.search.scorer import Scorer
from dragoman.decode.translator.translator import search
from dragoman.learning.cross_entropy import CrossEntropy, RDrop
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.transformer import TransformerConfig
from dragoman.training.graph_capture import GraphRecorder
from on_gpu import DEVICE, HALF
from rotary_gpu_speed import Report, measure, measure_together, one_of_many

CHECKED = [
    *({"positions": places, "norm": norm} for places in ("sinusoidal", "rotary") for norm in ("post", "pre")),
    {"positions": "rotary", "norm": "pre", "position_layout": "halves"},
    {"positions": "t5", "norm": "pre", "norm_kind": "rms", "bias": False, "gated": True},
]
CLOSE = 1e-4
"""Relative difference of sums in float32."""


# Losses and gradients


def small_model(size: int, **fields: Any) -> EncoderDecoder:
    torch.manual_seed(1)
    config = TransformerConfig(num_layers=2, model_dim=64, num_heads=4, ff_dim=128, dropout=0.0, **fields)
    return build_model("transformer", config, Vocab(size, size, shared=True)).to(DEVICE)


def alike_batches(pairs: int, size: int, count: int) -> list[PairBatch]:
    """Of other words and another order, but with the same lengths: they have one form."""
    dice = np.random.default_rng(1)
    lengths = dice.integers(1, 24, (pairs, 2))
    return [
        collate(
            [
                (dice.integers(3, size, src).tolist(), dice.integers(3, size, tgt).tolist())
                for src, tgt in dice.permutation(lengths).tolist()
            ]
        )
        for _ in range(count)
    ]


def passes(model: EncoderDecoder, objective: CrossEntropy | RDrop, half: bool) -> Callable[[Batch], Any]:
    def passed(batch: Any) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.autocast(DEVICE.type, dtype=HALF, enabled=half):
            loss = objective(model, batch)
        loss.total.backward()
        return loss.total.detach(), loss.nll.detach()

    return passed


def gradients_of(model: EncoderDecoder) -> list[torch.Tensor]:
    found = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad(set_to_none=False)
    return found


def compare_updates(report: Report, options: argparse.Namespace) -> None:
    """The third batch of a form is played back. It is compared with the padded one; in bfloat16 too, where
    both round, each in its own way."""
    size, pairs = 100, 12 if options.dry else 200
    batches = alike_batches(pairs, size, 3)
    for fields in CHECKED[-3:] if options.dry else CHECKED:
        for name, objective in (("", CrossEntropy(0.1)), (", R-Drop", RDrop(5.0, 0.1))):
            for half in (False, True):
                model = small_model(size, **fields).train()
                plain = passes(model, objective, half)
                recorder = GraphRecorder(plain, list(model.parameters()))
                run = recorder if DEVICE.type == "cuda" else plain
                for batch in batches:
                    sums = run(PackedPairs.of(batch, 64).to(DEVICE))
                    found = [float(each) for each in sums]
                    gradients = gradients_of(model)
                expected = [float(each) for each in plain(batches[-1].to(DEVICE))]
                others = gradients_of(model)
                loss = max(abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True))
                slope = max(
                    float((a - b).norm() / b.norm().clamp(min=1e-6 if half else 1e-3))
                    for a, b in zip(gradients, others, strict=True)
                )
                good = loss < (0.02 if half else CLOSE) and slope < (0.2 if half else 10 * CLOSE)
                recorded = f"{len(recorder._recordings)} recorded"
                what = " ".join(str(value) for value in fields.values()) + name
                report.add(
                    "update",
                    f"{what}, {'bfloat16' if half else 'float32'}",
                    f"{'same' if good else 'DIFFERENT'}, {recorded}, loss {loss:.1e}, gradient {slope:.1e}",
                )


# Search


def compare_searches(report: Report, options: argparse.Namespace) -> None:
    size, count = 300, 6 if options.dry else 300
    config = SearchConfig(beam=4, n_best=2, max_ratio=1.0, max_extra=4, loop_guard=False)
    dice = np.random.default_rng(2)
    lengths = dice.integers(1, 30, count).tolist()
    jobs = [Job((*dice.integers(3, size, length).tolist(), 2)) for length in lengths]
    for fields in CHECKED[:5]:
        model = small_model(size, **fields).eval().requires_grad_(False)
        for parameter in model.parameters():  # so that hypotheses differ in probability
            parameter.data.mul_(1.5)
        scorer = Scorer([model])
        with torch.inference_mode():
            expected = Beam(scorer, SearchBatch.of(jobs, config, scorer.vocab, scorer.device), config).run()
        began = time.perf_counter()
        found = search(scorer, jobs, config)
        took = time.perf_counter() - began
        same = sum(_tokens(one) == _tokens(other) for one, other in zip(found, expected, strict=True))
        apart = max(
            abs(one[0].score(config) - other[0].score(config))
            for one, other in zip(found, expected, strict=True)
        )
        recorded = scorer.rooms.take([model], config) and DEVICE.type == "cuda"
        what = " ".join(str(value) for value in fields.values())
        verdict = "same" if same == count or apart < CLOSE else "DIFFERENT"
        report.add(
            "search",
            f"{what}, {'recorded' if recorded else 'plain'}",
            f"{verdict}, {same} of {count} n-best lists alike, scores by {apart:.1e}, {took:.1f} s",
        )


def _tokens(best: list[Ended]) -> list[tuple[int, ...]]:
    return [tuple(one.tokens) for one in best]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--dry", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--together", type=int, default=0, help="also so many runs at once")
    parser.add_argument("--only", choices=["update", "search", "speed", "together"], help="one part alone")
    parser.add_argument("--one-of-many", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    if options.one_of_many:
        one_of_many(options)
        return
    report = Report()
    parts = {"update": compare_updates, "search": compare_searches, "speed": measure}
    if options.together:
        parts["together"] = measure_together
    for name, part in parts.items():
        if options.only in (None, name):
            part(report, options)
    report.finish()


if __name__ == "__main__":
    main()

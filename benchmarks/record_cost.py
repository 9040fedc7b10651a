"""What looking inside costs while nobody looks, and what it costs while somebody does.

    python benchmarks/record_cost.py

Milliseconds of process time for forward passes of one random Transformer on the same batches. «The bare
kernel» is the same model with `run_attention` replaced by torch's fused attention and nothing else: no taps
could be opened, so the difference to «nobody looks» is the price of being able to.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from unittest.mock import patch

import torch
import torch.nn.functional as F

from common import interleave, median, write_table
from dragoman.data.batch import PairBatch, collate
from dragoman.models import build_model
from dragoman.models.base import EncoderDecoder, Vocab
from dragoman.models.presets import preset
from dragoman.nn.attention_kernels import AttentionCall
from dragoman.probe.heads import mask_heads
from dragoman.probe.record import record
from dragoman.shapes import Tensor


def bare_kernel(call: AttentionCall) -> Tensor:
    assert call.scaled
    heads, mask = call.inputs.split(), call.mask
    causal = mask.causal and mask.visible is None
    dense = None if causal else mask.dense(heads.query.size(2), heads.key.size(2), heads.query.device)
    return F.scaled_dot_product_attention(
        heads.query, heads.key, heads.value, attn_mask=dense, is_causal=causal
    )


def timed(model: EncoderDecoder, batches: list[PairBatch], enter: Callable[[ExitStack], object]) -> float:
    with ExitStack() as stack, torch.inference_mode():
        enter(stack)
        began = time.process_time()
        for batch in batches:
            model(batch.src_ids, batch.src_mask, batch.tgt_in)
        return 1000 * (time.process_time() - began) / len(batches)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="transformer-small")
    parser.add_argument("--sentences", type=int, default=16)
    parser.add_argument("--length", type=int, default=30)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()

    torch.manual_seed(0)
    model = build_model(*preset(args.model), Vocab(8000, 8000, shared=True)).eval().requires_grad_(False)
    ids = torch.randint(3, 8000, (args.batches, args.sentences, args.length)).tolist()
    batches = [collate([(row, row) for row in batch]) for batch in ids]
    off = {name: [0] for name, _ in model.named_modules() if name.endswith("cross_attention")}
    attend = "dragoman.nn.attention.run_attention"
    ways: dict[str, Callable[[ExitStack], object]] = {
        "the bare kernel": lambda stack: stack.enter_context(patch(attend, bare_kernel)),
        "nobody looks": lambda _stack: None,
        "heads switched off": lambda stack: stack.enter_context(mask_heads(model, off)),
        "everything recorded": lambda stack: stack.enter_context(record(model)),
    }
    for enter in ways.values():
        timed(model, batches, enter)
    found = interleave(
        args.rounds, {name: lambda enter=enter: timed(model, batches, enter) for name, enter in ways.items()}
    )
    least = {name: min(times) for name, times in found.items()}
    base = found["the bare kernel"]
    rows = []
    for name, times in found.items():
        ratio = median([own / other for own, other in zip(times, base, strict=True)])
        rows.append([name, f"{median(times):.1f}", f"{least[name]:.1f}", f"{ratio:.3f}"])
    notes = (
        f"{args.model}, {args.sentences} sentences of {args.length} pieces a batch, process time of a "
        f"forward pass; {args.rounds} rounds in turn. The ratio is the median of the ratios within a round."
    )
    header = ["", "ms, median", "ms, least", "ratio to the bare kernel"]
    write_table("record_cost", "What looking inside costs", header, rows, notes)


if __name__ == "__main__":
    main()

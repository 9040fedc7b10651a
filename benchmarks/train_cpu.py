"""Training speed on a CPU: ours beside Hugging Face MarianMT and nn.Transformer, same batches, interleaved.

    python benchmarks/train_cpu.py train.en train.de

Every contender does the same work: forward with dropout 0.1, label-smoothed loss, backward, clipping, fused
AdamW.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from common import (
    SMOOTHING,
    batches_of,
    encode_corpus,
    interleave,
    median,
    plain_loss,
    stepper,
    write_table,
)
from dragoman.data.batch import PairBatch
from dragoman.learning.cross_entropy import CrossEntropy
from dragoman.models import build_model
from dragoman.models.base import Vocab
from dragoman.models.presets import preset
from peers import TorchTransformer, published_like


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("src", type=Path)
    parser.add_argument("tgt", type=Path)
    parser.add_argument("--model", default="transformer-small")
    parser.add_argument("--vocab-size", type=int, default=8000)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--batches", type=int, default=6, help="batches a contender does in a round")
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()

    torch.manual_seed(0)
    tokenizer, pairs = encode_corpus(args.src, args.tgt, args.vocab_size)
    batches = batches_of(pairs, args.batch_tokens, args.batches)
    kind, config = preset(args.model)
    config = replace(config, position_layout="halves", dropout=0.1)
    ours = build_model(kind, config, Vocab(tokenizer.size, tokenizer.size, shared=True)).train()
    marian = published_like(ours, config).train()
    plain = TorchTransformer(config, tokenizer.size).train()
    objective = CrossEntropy(SMOOTHING)

    def marian_logits(batch: PairBatch) -> torch.Tensor:
        return marian(
            input_ids=batch.src_ids,
            attention_mask=batch.src_mask.long(),
            decoder_input_ids=batch.tgt_in,
            use_cache=False,
        ).logits

    steps = {
        "dragoman": stepper(ours, lambda batch: objective(ours, batch).total),
        "HF MarianMT": stepper(marian, lambda batch: plain_loss(marian_logits(batch), batch)),
        "nn.Transformer": stepper(
            plain, lambda batch: plain_loss(plain(batch.src_ids, batch.src_mask, batch.tgt_in), batch)
        ),
    }
    tokens = sum(batch.num_tokens for batch in batches)

    def contender(step: Callable[[PairBatch], None]) -> Callable[[], float]:
        def run() -> float:
            began = time.perf_counter()
            for batch in batches:
                step(batch)
            return tokens / (time.perf_counter() - began)

        return run

    contenders = {name: contender(step) for name, step in steps.items()}
    for name in contenders:
        contenders[name]()  # warm up
    speeds = {name: median(values) for name, values in interleave(args.rounds, contenders).items()}
    best_peer = max(speed for name, speed in speeds.items() if name != "dragoman")
    rows = [[name, f"{speed:,.0f}", f"{speed / best_peer:.2f}"] for name, speed in speeds.items()]
    padding = 1 - tokens / sum(batch.tgt_in.numel() for batch in batches)
    write_table(
        "train_cpu",
        f"Training on a CPU, {args.model}",
        ["", "target tokens/s", "ratio to the best peer"],
        rows,
        f"Median of {args.rounds} interleaved rounds of {args.batches} batches, n·(longest source + longest "
        f"target) ≤ {args.batch_tokens} tokens; {tokens} target tokens a round, {padding:.1%} of the target "
        f"positions are padding; joint BPE of {tokenizer.size} pieces; fp32, dropout 0.1, label smoothing "
        f"{SMOOTHING}, clipping, fused AdamW for all.\n\n"
        f"Command: `python benchmarks/train_cpu.py {args.src.name} {args.tgt.name}`",
    )


if __name__ == "__main__":
    main()

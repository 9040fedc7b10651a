"""What the benchmarks share: text to ids, turns that interleave, tables with versions and machine."""

import platform
import statistics
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from dragoman.data.batch import PairBatch, collate
from dragoman.data.formats import read_lines
from dragoman.text.tokenizer import Tokenizer, TokenizerConfig

RESULTS = Path(__file__).parent / "results"
SMOOTHING = 0.1
IdPairs = list[tuple[list[int], list[int]]]
B = TypeVar("B")


def encode_corpus(
    src: Path, tgt: Path, vocab_size: int, lines: int | None = None
) -> tuple[Tokenizer, IdPairs]:
    """A joint BPE tokenizer for two parallel files, or for their first lines, and their pairs in ids."""
    sources, targets = list(read_lines(src))[:lines], list(read_lines(tgt))[:lines]
    tokenizer = Tokenizer.train([*sources, *targets], TokenizerConfig(vocab_size=vocab_size))
    return tokenizer, list(zip(tokenizer.encode_batch(sources), tokenizer.encode_batch(targets), strict=True))


def batches_of(pairs: IdPairs, tokens: int, count: int, seed: int = 0) -> list[PairBatch]:
    """`count` batches of neighbours in length with n·(longest source + longest target) ≤ tokens."""
    order = sorted(range(len(pairs)), key=lambda i: (len(pairs[i][1]), len(pairs[i][0])))
    cuts, batch, longest = [], [], [0, 0]
    for index in order:
        wider = [max(have, len(side) + 1) for have, side in zip(longest, pairs[index], strict=True)]
        if batch and (len(batch) + 1) * sum(wider) > tokens:
            cuts.append(batch)
            batch, wider = [], [len(side) + 1 for side in pairs[index]]
        batch, longest = [*batch, index], wider
    picked = np.random.default_rng(seed).permutation(len(cuts))[:count]
    return [collate([pairs[i] for i in cuts[number]]) for number in picked]


def stepper(model: nn.Module, loss_of: Callable[[PairBatch], torch.Tensor]) -> Callable[[PairBatch], None]:
    """One update on a summed loss of pairs."""
    return mean_stepper(model, lambda batch: loss_of(batch) / batch.num_tokens)


def mean_stepper(model: nn.Module, mean_loss: Callable[[B], torch.Tensor]) -> Callable[[B], None]:
    """One update on the mean loss, the same for everybody."""
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)

    def step(batch: B) -> None:
        optimizer.zero_grad(set_to_none=True)
        mean_loss(batch).backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()

    return step


def plain_loss(logits: torch.Tensor, batch: PairBatch) -> torch.Tensor:
    return F.cross_entropy(
        logits.flatten(0, 1),
        batch.tgt_out.flatten(),
        ignore_index=0,
        label_smoothing=SMOOTHING,
        reduction="sum",
    )


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def interleave(rounds: int, contenders: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Every contender once a round, in an order that turns: what the machine does to one it does to all."""
    results: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            results[name].append(contenders[name]())
            print(f"  round {number + 1}/{rounds}  {name:24} {results[name][-1]:10.1f}", flush=True)
    return results


def write_table(
    name: str, title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: str, keep: bool = True
) -> None:
    """Print a table and, unless it is of a trial, keep it under benchmarks/results/."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        return (
            "| "
            + " | ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True))
            + " |"
        )

    table = [line(header), line(["-" * width for width in widths]), *map(line, rows)]
    text = "\n".join([f"# {title}", "", *table, "", notes.strip(), "", environment(), ""])
    if keep:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    print("\n" + text)


def environment() -> str:
    packages = ", ".join(
        f"{name} {_version(name)}" for name in ("torch", "transformers", "ctranslate2", "tokenizers", "numpy")
    )
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else _cpu()
    return f"{device}; Python {platform.python_version()}; {packages}."


def _version(name: str) -> str:
    try:
        return version(name)
    except ModuleNotFoundError:
        return "not installed"


def _cpu() -> str:
    names = [
        line.split(":", 1)[1].strip() for line in _read("/proc/cpuinfo") if line.startswith("model name")
    ]
    return f"{torch.get_num_threads()} threads of {names[0] if names else platform.processor()}"


def _read(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []

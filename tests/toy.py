"""A toy corpus (words, and the same letters backwards in capitals) and a Transformer that is as small."""

import random
from pathlib import Path
from typing import Any

PARTS_OF_A_RUN = {
    "best.json",
    "checkpoints",
    "config.yaml",
    "data",
    "log.txt",
    "manifest.json",
    "metrics.jsonl",
    "samples.jsonl",
    "timing.jsonl",
    "tokenizer.json",
}


def toy_pairs(count: int, seed: int = 1) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    found: dict[str, str] = {}
    while len(found) < count:
        words = [
            "".join(chance.choices("abcde", k=chance.randint(1, 3))) for _ in range(chance.randint(1, 4))
        ]
        text = " ".join(words)
        found[text] = text[::-1].upper()
    return list(found.items())


def write_pairs(directory: Path, pairs: list[tuple[str, str]], stem: str = "a") -> tuple[str, str]:
    paths = directory / f"{stem}.en", directory / f"{stem}.de"
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("\n".join(side) + "\n", encoding="utf-8")
    return str(paths[0]), str(paths[1])


def toy_config(corpus: tuple[str, str]) -> dict[str, Any]:
    """A whole configuration as YAML would hold it."""
    return {
        "seed": 5,
        "data": {"train": [{"files": list(corpus)}], "src_lang": "en", "tgt_lang": "de", "valid_size": 16},
        "tokenizer": {"vocab_size": 300},
        "model": {"num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 32, "dropout": 0.1},
        "optim": {"rate": 3e-3},
        "schedule": {"warmup": 10},
        "train": {
            "max_updates": 20,
            "batch_tokens": 200,
            "log_every": 4,
            "validate_every": 8,
            "save_every": 5,
            "validate_sentences": 4,
            "device": "cpu",
        },
    }

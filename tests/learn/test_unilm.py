"""A small UniLM learns what belongs in blanks, under all three masks, and so has learnt to write."""

from pathlib import Path

from dragoman.data.corpus import prepare
from dragoman.decode.config import SearchConfig
from dragoman.train.config import resolve
from dragoman.train.display import Quiet
from dragoman.train.run import Run
from dragoman.train.session import train_run
from learn.test_masked import stretches_of_one_word


def test_it_fills_blanks_and_writes(tmp_path: Path) -> None:
    text = stretches_of_one_word(tmp_path)
    small = {"num_layers": 1, "model_dim": 32, "num_heads": 2, "ff_dim": 64, "max_positions": 32}
    config = resolve(
        {
            "data": {"train": [{"files": [str(text)], "format": "text"}], "valid_size": 120},
            "tokenizer": {"kind": "word", "vocab_size": 300},
            "model": {"kind": "unilm", **small, "dropout": 0, "attention_dropout": 0},
            "objective": {"name": "unilm", "block": 24},
            "optim": {"rate": 1e-2},
            "schedule": {"name": "cosine", "warmup": 20},
            "train": {"max_updates": 130, "batch_tokens": 1024, "validate_every": 130, "device": "cpu"},
        }
    )
    prepared = prepare(config.data, config.tokenizer, seed=1, cache=tmp_path / "cache")
    run = Run.create(tmp_path / "run", config, prepared)
    train_run(run, Quiet())
    (valid,) = [record for record in run.metrics if record["kind"] == "valid"]
    assert valid["accuracy"] > 0.9
    lines = run.generator(device="cpu").lines("c c", 2, max_tokens=6, search=SearchConfig(beam=2))
    assert list(lines) == ["c c c c"] * 2

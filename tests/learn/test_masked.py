"""A small BERT learns what hidden pieces are from those that are seen."""

from pathlib import Path

from dragoman.data.corpus import prepare
from dragoman.train.config import resolve
from dragoman.train.display import Quiet
from dragoman.train.run import Run
from dragoman.train.session import train_run

WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]


def stretches_of_one_word(directory: Path) -> Path:
    """A stretch of text has one word for everything: what is hidden is what is seen."""
    text = directory / "text.txt"
    stretches = [WORDS[(3 * n + n // 8) % 8] for n in range(75)]
    text.write_text("".join(f"{word} {word} {word} {word}\n" * 16 for word in stretches), "utf-8")
    return text


def test_it_guesses_hidden_pieces(tmp_path: Path) -> None:
    text = stretches_of_one_word(tmp_path)
    small = {"num_layers": 1, "model_dim": 32, "num_heads": 2, "ff_dim": 64, "max_positions": 32}
    config = resolve(
        {
            "data": {"train": [{"files": [str(text)], "format": "text"}], "valid_size": 120},
            "tokenizer": {"kind": "word", "vocab_size": 300},
            "model": {"kind": "bert", **small, "dropout": 0, "attention_dropout": 0},
            "objective": {"name": "masked", "block": 24, "noise": {"share": 0.15}},
            "optim": {"rate": 1e-2},
            "schedule": {"name": "cosine", "warmup": 20},
            "train": {"max_updates": 150, "batch_tokens": 1024, "validate_every": 150, "device": "cpu"},
        }
    )
    prepared = prepare(config.data, config.tokenizer, seed=1, cache=tmp_path / "cache")
    run = Run.create(tmp_path / "run", config, prepared)
    train_run(run, Quiet())
    (valid,) = [record for record in run.metrics if record["kind"] == "valid"]
    assert valid["accuracy"] > 0.9

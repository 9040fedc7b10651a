"""Texts that a small model of the Transformer's kin can learn, and runs that learn them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman.config import to_dict
from dragoman.data.corpus import prepare
from dragoman.learning.resolve import resolve_config
from dragoman.runs.directory import Run
from dragoman.training.display import NoDisplay
from dragoman.training.session import train_run
from until_learnt import learn_until

SMALL = {
    "num_layers": 1,
    "model_dim": 32,
    "num_heads": 2,
    "ff_dim": 64,
    "max_positions": 32,
    "dropout": 0,
    "attention_dropout": 0,
}
WORDS = ["a", "b", "c", "d", "e", "f", "g", "h"]


def stretches_of_one_word(directory: Path) -> Path:
    """A stretch of text has one word for everything: what is hidden is what is seen."""
    text = directory / "text.txt"
    stretches = [WORDS[(3 * n + n // 8) % 8] for n in range(75)]
    text.write_text("".join(f"{word} {word} {word} {word}\n" * 16 for word in stretches), "utf-8")
    return text


def learnt(
    directory: Path,
    data: dict[str, Any],
    kind: str,
    objective: dict[str, Any],
    batch: int,
    enough: Callable[[Run], bool],
) -> Run:
    """A small model of this kind, trained until it has learnt enough, which is asked every 50 updates. It
    took 50 to 200 of them, whatever the seed and the instruction set; the limit is 3000."""
    config = resolve_config(
        {
            "data": data,
            "tokenizer": {"kind": "word", "vocab_size": 300},
            "model": {"kind": kind, **SMALL},
            "objective": objective,
            "optim": {"rate": 1e-2},
            "schedule": {"name": "constant", "warmup": 20},
            "train": {"max_updates": 50, "batch_tokens": batch, "validate_every": 50, "device": "cpu"},
        }
    )
    prepared = prepare(config.data, config.tokenizer, seed=1, cache=directory / "cache")
    run = Run.create(directory / "run", config, prepared)
    train_run(run, NoDisplay())

    def go_on() -> None:
        goal = (run.config.train.max_updates or 0) + 50
        run.replace_config(resolve_config(to_dict(run.config), [f"train.max_updates={goal}"]))
        train_run(run, NoDisplay())

    learn_until(lambda: enough(run), go_on, at_most=59)
    return run


def last_validation(run: Run) -> dict[str, Any]:
    return [record for record in run.metrics if record["kind"] == "valid"][-1]


def text_source(text: Path) -> dict[str, Any]:
    return {"files": [str(text)], "format": "text"}


def learnt_stretches(
    directory: Path, kind: str, objective: dict[str, Any], enough: Callable[[Run], bool]
) -> Run:
    """One that has to guess what the words of a stretch are."""
    data = {"train": [text_source(stretches_of_one_word(directory))], "valid_size": 120}
    return learnt(directory, data, kind, {"block": 24, **objective}, 1024, enough)


def knows_the_words(run: Run) -> bool:
    """Whoever guesses one of the eight words has an accuracy of an eighth."""
    return last_validation(run)["accuracy"] > 0.9

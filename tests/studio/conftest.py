"""Runs as small as can be: a Transformer with several checkpoints, an LSTM without attention, GPT, counts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.studio.subject import Subjects
from dragoman.training.api import train
from toy import toy_config, toy_pairs, write_pairs

TEXT = "abc de ab"
_SMALL = {"max_updates": 2, "validate_every": 2, "save_every": 2, "log_every": 1, "validate_sentences": 2}


def _changed(base: dict[str, Any], **sections: dict[str, Any]) -> dict[str, Any]:
    return {**base, **{name: {**base.get(name, {}), **fields} for name, fields in sections.items()}}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studio")
    # A model that has learnt nothing would often write nothing.
    base = toy_config(write_pairs(folder, toy_pairs(120))) | {"search": {"min_length": 4, "max_ratio": 1.0}}
    looks = _changed(
        base, train={**_SMALL, "max_updates": 12, "validate_every": 6, "save_every": 4, "keep": 9}
    )
    looks["model"] = {**looks["model"], "num_layers": 2}
    train(looks, out=folder / "transformer", quiet=True)
    blind = {**_changed(base, train=_SMALL), "model": {"kind": "rnn", "attention": "none", "model_dim": 8}}
    blind["search"] = {**blind["search"], "beam": 3, "alpha": 0.5}  # another search than that of the others
    train(blind, out=folder / "lstm", quiet=True)
    lines = folder / "lines.txt"
    lines.write_text("\n".join(src for src, _ in toy_pairs(120)) + "\n", encoding="utf-8")
    writes = _changed(base, train=_SMALL) | {
        "data": {"train": [{"files": [str(lines)], "format": "text"}], "valid_size": 16},
        "model": {"kind": "gpt", "num_layers": 1, "model_dim": 16, "num_heads": 2, "ff_dim": 32},
        "objective": {"name": "causal", "block": 24},
    }
    train(writes, out=folder / "gpt", quiet=True)
    counts = {name: base[name] for name in ("seed", "data", "tokenizer", "search")}
    train(counts | {"model": {"preset": "markov-skips"}}, out=folder / "markov", quiet=True)
    return folder


@pytest.fixture(scope="module")
def subjects(runs: Path) -> Iterator[Subjects]:
    names = ("transformer", "lstm", "gpt", "markov")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.studio.subject._GOES_ON", 6)  # pieces after a prompt
        yield Subjects([runs / name for name in names], device="cpu", text=TEXT)

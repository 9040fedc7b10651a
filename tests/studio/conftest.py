"""Runs as small as can be: a Transformer with several checkpoints, an LSTM without attention, GPT, counts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.studio.app import build
from dragoman.studio.subject import Subject
from dragoman.studio.subjects import Subjects
from dragoman.training.api import train
from studio.asking import TEXT
from studio.browsing import Page, opened, running
from toy import toy_config, toy_pairs, write_pairs

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


@pytest.fixture(scope="session")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that do not translate: BERT, ELMo, T5, a classifier of texts and a tagger of words."""
    folder = tmp_path_factory.mktemp("readers")
    lines = [src for src, _ in toy_pairs(120)]
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / "labels.tsv").write_text(
        "".join(f"{line}\t{'with' if 'a' in line else 'without'}\n" for line in lines)
    )
    tagged = [[f"{word}\t{'B-A' if 'a' in word else 'O'}\n" for word in line.split()] for line in lines]
    (folder / "tags.conll").write_text("\n".join("".join(words) for words in tagged))
    fields = ["train.max_updates=2", "train.validate_every=2", "train.batch_tokens=400", "train.samples=0"]
    fields += ["train.validate_sentences=0", "train.device=cpu", "data.valid_size=8"]
    small = ["model.num_layers=2", "model.model_dim=16", "model.num_heads=2", "model.ff_dim=32"]

    def made(*arguments: object) -> None:
        result = CliRunner().invoke(app, [str(each) for each in (*arguments, "-q", *fields)])
        assert result.exit_code == 0, result.exception

    for name in ("bert", "t5", "elmo"):
        own = [] if name == "elmo" else [*small, "objective.block=64"]
        text = [folder / "text.txt", "--model", f"{name}-tiny", "-o", folder / name]
        made("pretrain", *text, "tokenizer.vocab_size=300", *own)
    made("finetune", folder / "bert", folder / "labels.tsv", "--task", "classify", "-o", folder / "labels")
    made("finetune", folder / "bert", folder / "tags.conll", "--task", "tag", "-o", folder / "tags")
    return folder


@pytest.fixture(scope="module")
def subjects(runs: Path) -> Iterator[Subjects]:
    names = ("transformer", "lstm", "gpt", "markov")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dragoman.studio.subject._GOES_ON", 6)  # pieces after a prompt
        yield Subjects([runs / name for name in names], device="cpu", text=TEXT)


@pytest.fixture(scope="module")
def page(subjects: Subjects, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with running(subjects) as address, opened(address, tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def client(subjects: Subjects) -> Iterator[TestClient]:
    with TestClient(build(subjects), base_url="http://127.0.0.1", raise_server_exceptions=False) as found:
        yield found


@pytest.fixture(scope="module")
def subject(subjects: Subjects) -> Subject:
    found = subjects.get("transformer")
    assert isinstance(found, Subject)
    return found

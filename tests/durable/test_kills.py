"""Every command that writes, killed in the middle of it and started again: the same bytes, nothing left."""

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from children import command, count_calls, killed_at, run
from dragoman.checkpoint.huggingface import export_huggingface
from dragoman.checkpoint.model import load_model
from dragoman.runs import corpus_job as corpus
from dragoman.runs.directory import Run
from toy import toy_pairs

CHANGES_EACH_TIME = ("timing.jsonl", "log.txt", "samples.jsonl", ".lock", "report.json")
"""Times, and what is written once more by a run that goes on."""
SMALL = [
    *("tokenizer.vocab_size=280", "train.max_updates=2", "train.save_every=1", "train.validate_every=1"),
    *("train.batch_tokens=200", "train.device=cpu", "train.validate_sentences=1"),
]
BERT = ["kind=bert", "num_layers=1", "model_dim=8", "num_heads=2", "ff_dim=8", "max_positions=128"]
KILLS = 3
"""Of each command: before the first change, in the middle, before the last."""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command works, always with the same path: a run remembers paths."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(corpus, "LINES_AT_ONCE", 3)
    return tmp_path / "root"


def hold(root: Path, begin: Callable[[Path], object], arguments: list[object]) -> None:
    def anew() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        begin(root)

    act, output = command(*arguments), root.parent / "output"
    anew()
    calls = count_calls(act, root)
    expected = contents(root)
    for number in sorted({1 + (calls - 1) * place // (KILLS - 1) for place in range(KILLS)}):
        anew()
        assert run(killed_at(number, act, root), output).status == -9
        again = run(act, output)
        complete = again.status == 2 and "this exists already" in again.text
        assert again.status == 0 or complete, (number, again.text)
        found = contents(root)
        assert found.keys() == expected.keys(), number
        assert [name for name in found if found[name] != expected[name]] == [], number
        assert not list((root.parent / "temporary").iterdir()), number


def contents(root: Path) -> dict[str, bytes | None]:
    """Directories have none."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
        if path.name not in CHANGES_EACH_TIME
    }


def write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


# --- commands that train -----------------------------------------------------------------------------


def test_train(root: Path, plain: dict[str, Any]) -> None:
    def begin(root: Path) -> None:
        (root / "recipe.yaml").write_text(yaml.safe_dump(plain), "utf-8")

    arguments = [
        "train",
        root / "recipe.yaml",
        "train.max_updates=2",
        "train.average=2",
        "--out",
        root / "run",
    ]
    hold(root, begin, [*arguments, "-q"])


def test_resume(root: Path, trained: Run) -> None:
    def begin(root: Path) -> None:
        copy_run(trained, root)

    hold(root, begin, ["resume", root / "run", "train.max_updates=5", "-q"])


def test_count(root: Path, plain: dict[str, Any]) -> None:
    def begin(root: Path) -> None:
        counted = {key: plain[key] for key in ("seed", "data", "tokenizer")} | {"model": {"kind": "markov"}}
        (root / "recipe.yaml").write_text(yaml.safe_dump(counted), "utf-8")

    hold(root, begin, ["train", root / "recipe.yaml", "--out", root / "run", "-q"])


def test_pretrain_and_finetune(root: Path) -> None:
    def begin(root: Path) -> None:
        write_lines(root / "text.txt", [source for source, _ in toy_pairs(60)])

    model = [f"model.{field}" for field in BERT]
    arguments = [
        "pretrain",
        root / "text.txt",
        "objective.block=16",
        *model,
        *SMALL,
        "--out",
        root / "run",
        "-q",
    ]
    hold(root, begin, arguments)

    pretrained = shutil.copytree(root / "run", root.parent / "pretrained")

    def begin_task(root: Path) -> None:
        rows = [f"{source}\t{'long' if len(source) > 8 else 'short'}" for source, _ in toy_pairs(60)]
        write_lines(root / "task.tsv", rows)

    arguments = [
        "finetune",
        pretrained,
        root / "task.tsv",
        "--task",
        "classify",
        *SMALL[1:],
        "--out",
        root / "run",
    ]
    hold(root, begin_task, [*arguments, "-q"])


def test_distill(root: Path, trained: Run) -> None:
    def begin(root: Path) -> None:
        copy_run(trained, root)

    model = ["model.preset=transformer-student", "model.num_layers=1", "model.model_dim=8", "model.ff_dim=8"]
    arguments = ["distill", root / "run", *model, "model.num_heads=2", *SMALL[1:], "--beam", 1, "--no-train"]
    hold(root, begin, [*arguments, "-q"])


# --- commands that use a run -------------------------------------------------------------------------


def copy_run(trained: Run, root: Path) -> None:
    shutil.copytree(trained.directory, root / "run")
    write_lines(root / "lines.txt", [source for source, _ in toy_pairs(8, seed=3)])
    write_lines(root / "pairs.tsv", ["\t".join(pair) for pair in toy_pairs(8, seed=3)])


@pytest.mark.parametrize(
    "name, options",
    [
        ("average", ["--last", "2"]),
        ("export", ["--out", "{root}/out"]),
        ("export", ["--out", "{root}/out", "--to", "huggingface"]),
        ("translate", ["--input", "{root}/lines.txt", "--out", "{root}/out"]),
        ("back-translate", ["{root}/lines.txt", "--out", "{root}/out"]),
        ("embed", ["{root}/lines.txt", "--out", "{root}/out.npy"]),
        ("embed", ["{root}/lines.txt", "--out", "{root}/out.parquet"]),
        ("evaluate", ["{root}/pairs.tsv", "--bootstrap", "0"]),
    ],
)
def test_a_command(root: Path, trained: Run, name: str, options: list[str]) -> None:
    given = [option.format(root=root) for option in options]
    hold(root, lambda root: copy_run(trained, root), [name, root / "run", *given])


def test_align_corpus(root: Path) -> None:
    def begin(root: Path) -> None:
        write_lines(root / "pairs.tsv", ["\t".join(pair) for pair in toy_pairs(8)])

    hold(root, begin, ["align-corpus", root / "pairs.tsv", "--output", root / "out"])


def test_import(root: Path, trained: Run) -> None:
    export_huggingface(load_model(trained.directory), root.parent / "published")
    arguments = ["import", root.parent / "published", "--out", root / "run"]
    hold(root, lambda _root: None, [*arguments])


def test_what_an_evaluation_reports_is_whole(root: Path, trained: Run) -> None:
    root.mkdir()
    copy_run(trained, root)
    arguments = ["evaluate", root / "run", root / "pairs.tsv", "--bootstrap", 0]
    assert run(command(*arguments), root.parent / "output").status == 0
    folder = root / "run" / "evaluation" / "pairs.tsv"
    assert sorted(path.name for path in folder.iterdir()) == ["hypotheses.txt", "report.json"]
    assert json.loads((folder / "report.json").read_bytes())["files"] == [str(root / "pairs.tsv")]

"""compare as a person types it, on two small runs that were really trained."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu
from typer.testing import CliRunner, Result

import dragoman
from dragoman.cli import compare as command
from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.runs.directory import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compare")


@pytest.fixture(scope="module")
def runs(folder: Path, train_small: Callable[..., Path]) -> list[Path]:
    lstm = train_small(folder, "lstm", kind="rnn", attention="none")
    return [lstm, train_small(folder, "transformer")]


@pytest.fixture(scope="module")
def files(folder: Path, pairs: list[tuple[str, str]]) -> list[Path]:
    """Short and long, and none of them in training."""
    short = [(" ".join(src.split()[:4]), " ".join(tgt.split()[:4])) for src, tgt in pairs[::4]]
    long = [(f"{src} and {src}", f"{tgt} AND {tgt}") for src, tgt in pairs[::8]]
    written = [folder / "t.en", folder / "t.de"]
    for file, lines in zip(written, zip(*(short + long), strict=True), strict=True):
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return written


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def test_table_picture_and_figures_from_one_command(
    runs: list[Path], files: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "lengths"
    options = ("--out", out, "--edges", "6,10", "--bootstrap", 20)
    result = compare(*runs, "--test", *files, *options)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lengths.png", "lengths.svg", "lengths.tsv"]
    sources, references = (file.read_text("utf-8").splitlines() for file in files)
    with out.with_suffix(".tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    for run in runs:
        texts = dragoman.load(run).translate(sources)
        for bucket, places in {"≤ 6": range(16), "> 10": range(16, 24), "all": range(24)}.items():
            row = next(row for row in rows if row["run"] == run.name and row["source_words"] == bucket)
            expected = sacrebleu.corpus_bleu(
                [texts[i] for i in places], [[references[i] for i in places]], force=True
            ).score
            assert float(row["value"]) == pytest.approx(expected, abs=1e-5)
            assert int(row["sentences"]) == len(places)
            assert f"{expected:.1f} ±" in result.output
    svg = out.with_suffix(".svg").read_text("utf-8")
    assert all(text in svg for text in ("lstm", "transformer", "≤ 6", "n = 16"))
    assert "are in the training data" not in result.output

    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    by_two_options = ("--test", files[0], "--test", files[1])
    assert compare(*runs, *by_two_options, *options).exit_code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_table_of_pairs_labels_and_the_warning_of_overlap(
    runs: list[Path], folder: Path, tmp_path: Path
) -> None:
    options = ("--metric", "chrf", "--unit", "characters", "--bootstrap", 0, "--min-sentences", 10)
    labels = ("--label", "one vector", "--label", "attention")
    out = tmp_path / "by.length.svg"  # an ending of ours is taken off
    result = compare(*runs, "--test", folder / "pairs.tsv", "--out", out, *labels, *options)
    assert result.exit_code == 0, result.output
    assert (tmp_path / "by.length.png").is_file()
    assert "are in the training data" in result.output
    header, *rows = (tmp_path / "by.length.tsv").read_text("utf-8").splitlines()
    assert header.split("\t")[1] == "source_characters"
    assert {row.split("\t")[0] for row in rows} == {"one vector", "attention"}
    assert {row.split("\t")[3] for row in rows} == {"BLEU", "chrF2"}
    assert "±" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["A", "B", "--test", "SRC", "missing.de"], "missing.de"),
        (["A", "B", "--test", "missing.en", "--test", "TGT"], "missing.en"),
        (["A", "no/such/run", "--test", "SRC", "TGT"], "no/such/run"),
        (["A", "B", "--test", "SRC", "SHORT"], "24 lines"),
        (["A", "B"], "names no test set; give one with --test"),
        (["A", "B", "SRC", "TGT"], "after --test"),
        (["SRC", "--test", "TGT"], "at least one run"),
        (["A", "A", "--test", "SRC", "TGT"], "'lstm' stands for two runs"),
        (["A", "B", "--test", "SRC", "TGT", "--label", "one"], "2 runs, found 1"),
        (["A", "--test", "SRC", "TGT", "--label", "a\tb"], "printable"),
        (["A", "B", "--test", "SRC", "TGT", "--edges", "5,x"], "5,x"),
        (["A", "B", "--test", "SRC", "TGT", "--edges", "9,3"], "9,3"),
        (["A", "B", "--test", "SRC", "TGT", "--out", "no/such/dir/lengths"], "no/such/dir"),
        (["A", "B", "--test", "SRC", "TGT", "--out", "SRC/lengths"], "t.en"),
        (["A", "B", "--test", "SRC", "TGT", "--out", "A"], "is a directory"),
        (["A", "B", "--test", "SRC", "TGT", "--out", "."], "is a directory"),
        (["A", "B", "--test", "SRC", "TGT", "--tokenize", "moses"], "moses"),
        (["A", "B", "--test", "SRC", "TGT", "--beam", "0"], "beam"),
    ],
)
def test_mistakes_are_told_in_one_sentence(
    runs: list[Path], files: list[Path], tmp_path: Path, arguments: list[str], message: str
) -> None:
    short = tmp_path / "short.de"
    short.write_text("one line\n", encoding="utf-8")
    names = {"A": runs[0], "B": runs[1], "SRC": files[0], "TGT": files[1], "SHORT": short}
    filled = [names.get(argument, argument) for argument in arguments]
    if "SRC/lengths" in filled:
        filled[-1] = files[0] / "lengths"
    if "--out" not in filled:
        filled += ["--out", tmp_path / "lengths"]
    result = compare(*filled)
    assert isinstance(result.exception, UserError), result.output
    assert message in str(result.exception)
    assert "\n" not in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["short.de"]


def test_a_picture_that_cannot_be_replaced_is_named(
    runs: list[Path], files: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "lengths.png").mkdir()
    result = compare(runs[0], "--test", *files, "--out", tmp_path / "lengths", "--bootstrap", 0)
    assert isinstance(result.exception, UserError), result.output
    assert "lengths.png: this is a directory, not a file" in str(result.exception)


def test_without_matplotlib_nothing_is_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _name: None)
    result = compare("no/run")
    assert isinstance(result.exception, UserError)
    assert "[plots]" in str(result.exception)


def test_curves_of_several_runs_in_one_picture_without_a_test_set(runs: list[Path], tmp_path: Path) -> None:
    result = compare(
        *runs, "--curves", "--out", tmp_path / "curves", "--label", "one vector", "--label", "all"
    )
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((tmp_path / "curves.tsv").read_text("utf-8").splitlines(), delimiter="\t"))
    for label, run in zip(("one vector", "all"), runs, strict=True):
        records = [record for record in Run.open(run).metrics if record["kind"] == "valid"]
        own = [row for row in rows if row["run"] == label and row["field"] == "validation loss"]
        assert [float(row["value"]) for row in own] == [record["loss"] for record in records]
    svg = (tmp_path / "curves.svg").read_text("utf-8")
    assert all(text in svg for text in ("one vector", "all", "validation loss", "training loss"))
    assert (tmp_path / "curves.png").is_file()

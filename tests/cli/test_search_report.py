"""search-report, exhaustive translation and the record of a search, on a small run."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dragoman.cli import search_report as command
from dragoman.cli.main import app
from dragoman.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def run(folder: Path, train_small: Callable[..., Path]) -> Path:
    return train_small(folder)


def dragoman_command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_tables_picture_and_figures(run: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report"
    options = ("--beams", "1,3", "--sentences", 20, "--max-nodes", 300, "--out", out)
    result = dragoman_command("search-report", run, folder / "pairs.tsv", *options)
    assert result.exit_code == 0, result.output
    assert "20 of 64 sentences" in result.output
    assert "k = 3" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.png", "report.svg", "report.tsv"]
    with out.with_suffix(".tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    overall = [row for row in rows if row["source_pieces"] == "all"]
    assert [row["beam"] for row in overall] == ["1", "3"]
    assert all(int(row["sentences"]) + int(row["unproven"]) == 20 for row in overall)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert dragoman_command("search-report", run, folder / "pairs.tsv", *options).exit_code == 0
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_sentences_without_proof_and_blank_ones_are_counted(run: Path, tmp_path: Path) -> None:
    src, tgt = tmp_path / "t.en", tmp_path / "t.de"
    src.write_text("the red cat\n\na new dog\n", encoding="utf-8")
    tgt.write_text("THE RED CAT\n\nA NEW DOG\n", encoding="utf-8")
    result = dragoman_command("search-report", run, src, tgt, "--beams", "1", "--max-nodes", 1)
    assert result.exit_code == 0, result.output
    assert "2 of 3 sentences (1 have a blank source)" in result.output
    assert "No optimum was proven within 1 prefixes" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--beams", "1,x"], "--beams"),
        (["--beams", "0"], "--beams"),
        (["--max-nodes", "0"], "max_nodes"),
        (["--alpha", "-1"], "alpha"),
        (["--out", "no/such/dir/report"], "no/such/dir"),
    ],
)
def test_mistakes_are_told_in_one_sentence(run: Path, folder: Path, options: list[str], message: str) -> None:
    result = dragoman_command("search-report", run, folder / "pairs.tsv", *options)
    assert isinstance(result.exception, UserError), result.output
    assert message in str(result.exception)


def test_without_matplotlib_there_are_tables_and_no_picture(
    run: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_spec", lambda _name: None)
    options = ("--beams", "1", "--sentences", 2, "--max-nodes", 50)
    result = dragoman_command("search-report", run, folder / "pairs.tsv", *options)
    assert result.exit_code == 0, result.output
    result = dragoman_command("search-report", run, folder / "pairs.tsv", "--out", tmp_path / "report")
    assert isinstance(result.exception, UserError)
    assert "[plots]" in str(result.exception)


def test_exhaustive_translation_says_whether_it_is_proven(run: Path) -> None:
    arguments = ("translate", run, "the red cat and a dog", "--json")
    beam = json.loads(dragoman_command(*arguments).stdout)["translations"][0]
    assert "exact" not in beam
    for nodes, proven in ((5000, True), (1, False)):
        nodes_at_most = ("--set", f"search.max_nodes={nodes}")
        result = dragoman_command(*arguments, "--method", "exhaustive", *nodes_at_most)
        found = json.loads(result.stdout)["translations"][0]
        assert found["exact"] is proven
        assert found["score"] >= beam["score"] - 1e-6
        assert ("1 of 1 translations may not be the optimum" in result.stderr) is not proven


def test_the_record_of_a_search(run: Path) -> None:
    arguments = ("translate", run, "the red cat", "  ", "--json", "--beam", 3)
    plain = [json.loads(line) for line in dragoman_command(*arguments).stdout.splitlines()]
    recorded = [json.loads(line) for line in dragoman_command(*arguments, "--record").stdout.splitlines()]
    steps = recorded[0].pop("trace")
    assert recorded == plain  # a blank text is not searched, and has no record
    assert {candidate["fate"] for step in steps for candidate in step} >= {"kept", "ended", "pruned"}
    assert any(candidate["piece"] == "</s>" for step in steps for candidate in step)
    alone = dragoman_command("translate", run, "the red cat", "--record")
    assert isinstance(alone.exception, UserError)
    both = dragoman_command(*arguments, "--record", "--method", "exhaustive")
    assert isinstance(both.exception, UserError)

"""`--columns` of `corpus` and `train`, and `corpus --keep-going`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dragoman.cli.main import app
from dragoman.errors import UserError
from dragoman.training.draft import with_columns

TABLE = "id,note,en,fr,de\n" + "".join(
    f"{n},seen,The house has {n} rooms.,La maison a {n} pièces.,Das Haus hat {n} Zimmer.\n" for n in range(40)
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(TABLE, "utf-8")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["corpus", *arguments])


@pytest.mark.parametrize("columns", ["en,de", " en , de ", "3,5"])
def test_the_columns_of_a_corpus(table: Path, columns: str) -> None:
    found = run(str(table), "--columns", columns, "--lines", "copy", "--json")
    assert found.exit_code == 0
    report = json.loads(run(str(table), "--columns", columns, "--json").stdout)
    assert report["pairs"] == 40
    assert report["tgt"]["words"] >= 200


@pytest.mark.parametrize("columns", ["en", "en,de,fr", ",de", "en,en", ""])
def test_columns_that_are_not_two(table: Path, columns: str) -> None:
    found = run(str(table), "--columns", columns)
    assert isinstance(found.exception, UserError) and "--columns: expected the source" in str(found.exception)


def test_columns_are_named_once(table: Path) -> None:
    found = run(str(table), "--columns", "en,de", "--src", "en")
    assert "leave --src and --tgt out" in str(found.exception)


def test_training_takes_the_columns(table: Path) -> None:
    data = with_columns([str(table)], [str(table)], "de,fr")["data"]
    assert (data["src_lang"], data["tgt_lang"]) == ("de", "fr")
    assert [(one["src"], one["tgt"]) for one in (*data["train"], *data["valid"])] == [("de", "fr")] * 2
    with pytest.raises(UserError, match="a recipe names its own columns"):
        with_columns(["recipe.yaml"], [], "de,fr")
    for language in ("en", "de"):
        table.with_name(f"a.{language}").write_text("a b\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"--columns: .*a\.en has no columns"):
        with_columns([str(table.with_name(name)) for name in ("a.en", "a.de")], [], "en,de")


@pytest.mark.usefixtures("table")
def test_every_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.tsv").write_bytes(b"a\tb\n\xff\tc\n")
    (tmp_path / "cut.tmx").write_text("<tmx><body>", "utf-8")
    files = [str(tmp_path / name) for name in ("bad.tsv", "pairs.csv", "cut.tmx")]
    found = run(*files, "--keep-going", "--json")
    assert found.exit_code == 1
    assert "bad.tsv:2" in found.stderr and "cut.tmx" in found.stderr
    assert json.loads(found.stdout)["pairs"] == 40
    assert isinstance(run(*files, "--json").exception, UserError)
    none = run(files[0], "--keep-going")
    assert "none of the 1 corpora can be read" in str(none.exception)

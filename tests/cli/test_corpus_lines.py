"""`dragoman corpus --lines`: silence would not say whether there are none."""

from pathlib import Path

from typer.testing import CliRunner

from dragoman.cli.main import app


def test_the_number_of_faults_is_told(tmp_path: Path) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("a b c\td e f\ng h i\tj k l\na b c\td e f\n")
    found = CliRunner().invoke(app, ["corpus", str(table), "--lines", "duplicate"])
    assert (
        found.exit_code == 0
        and found.stderr.endswith("1 pair with the fault duplicate\n")
        and "pairs.tsv:3" in found.stdout
    )
    none = CliRunner().invoke(app, ["corpus", str(table), "--lines", "empty"])
    assert none.stdout == "" and none.stderr.endswith("no pair with the fault empty\n")

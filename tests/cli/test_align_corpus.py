"""`dragoman align-corpus` as a person types it."""

from pathlib import Path

from typer.testing import CliRunner, Result

from dragoman.cli.main import app


def dragoman_command(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_links_and_their_error_rate(pairs: list[tuple[str, str]], tmp_path: Path) -> None:
    table, gold, out = tmp_path / "pairs.tsv", tmp_path / "gold.txt", tmp_path / "links.txt"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    gold.write_text("1-1 2-2 3-3 4p4 5-5 6-6\n" * 3, encoding="utf-8")  # of the first three pairs
    result = dragoman_command("align-corpus", table, "--gold", gold, "--gold-first", 1, "--output", out)
    assert result.exit_code == 0, result.output
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(pairs)
    assert set(lines) == {"0-0 1-1 2-2 3-3 4-4 5-5"}
    assert "step 10 of 10" in result.stderr
    assert "alignment error rate 0.0%, precision 100.0%, recall 100.0%" in result.stderr
    assert dragoman_command("align-corpus", table).stdout.splitlines() == lines

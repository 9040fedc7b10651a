"""`dragoman filter`: what is kept, what is left out and why."""

from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dragoman.cli.main import app
from dragoman.data.filter import IMPROBABLE, dual_score, judged_pairs
from dragoman.data.formats import Pair, group_files
from dragoman.errors import UserError
from languages import SENTENCES


def corpus(directory: Path, pairs: list[tuple[str, str]]) -> list[str]:
    files = [directory / "a.en", directory / "a.de"]
    for file, side in zip(files, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    return list(map(str, files))


GOOD = list(zip(SENTENCES["en"], SENTENCES["de"], strict=True))
FAULTY = [("", "Nichts"), (GOOD[0][0], GOOD[0][0]), GOOD[1]]
"""Empty, a copy, and a pair that occurred before."""


def test_pairs_without_faults_are_written_and_the_others_with_their_reasons(tmp_path: Path) -> None:
    files = corpus(tmp_path, [*GOOD, *FAULTY])
    result = CliRunner().invoke(app, ["filter", *files, "--out", str(tmp_path / "clean")])
    assert result.exit_code == 0, result.output
    kept = [(tmp_path / f"clean.{code}").read_text("utf-8").splitlines() for code in ("en", "de")]
    rows = [line.split("\t") for line in (tmp_path / "clean.dropped.tsv").read_text("utf-8").splitlines()]
    assert [(row[0], Path(row[1]).name) for row in rows] == [
        ("empty", "a.en:49"),
        ("copy", "a.en:50"),
        ("duplicate", "a.en:51"),
    ]
    assert [*zip(*kept, strict=True)] == [
        pair for pair in GOOD if list(pair) not in [row[3:] for row in rows[:-3]]
    ]
    assert f"{len(kept[0])} of 51 pairs written" in result.output and "(2.0%)" in result.output


def test_of_the_faultless_the_best_by_a_score_stay(tmp_path: Path) -> None:
    asked: list[str] = []

    def score(pairs: list[Pair]) -> list[float]:
        asked.extend(pair.src for pair in pairs)
        return [float("dog" not in pair.src) for pair in pairs]

    sources = group_files(corpus(tmp_path, [*GOOD, *FAULTY]))
    found = list(
        judged_pairs(sources, ("en", "de"), tmp_path, lambda *_: None, partial(map, score), keep=0.5)
    )  # type: ignore[arg-type]
    assert len(found) == len(GOOD) + len(FAULTY) and "" not in asked
    dogs = {one.reason for one in found if "dog" in one.pair.src and one.score is not None}
    assert dogs == {IMPROBABLE}
    assert not any(one.reason == IMPROBABLE for one in found if "dog" not in one.pair.src)


def test_dual_cross_entropy_prefers_pairs_that_both_directions_find_probable() -> None:
    assert dual_score(1.0, 1.0) > dual_score(1.0, 2.0) > dual_score(2.0, 3.0)
    assert dual_score(1.0, None) > dual_score(2.0, None)


def test_what_cannot_be_done_is_told(tmp_path: Path) -> None:
    files = corpus(tmp_path, GOOD)
    for options, told in (
        (["--out", str(tmp_path)], "this is a directory; give a name for the files"),
        (
            ["--out", str(tmp_path / "x"), "--backward", "runs/de-en"],
            "--backward: it goes together with --run",
        ),
    ):
        with pytest.raises(UserError, match=told):
            CliRunner().invoke(
                app, ["filter", *files, *options], catch_exceptions=False, standalone_mode=False
            )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.de", "a.en"]

"""Counting on plain text: the worked examples by the usual commands, each line by itself."""

import math
from pathlib import Path

import pytest

from dragoman.runs.directory import Run
from dragoman.runs.opening import open_generator
from dragoman.training.api import train

SHOW = ["show me my directories please"] * 2 + ["show me my files please"] * 3
SHOW += ["show me my photos please"] * 5


def trained(tmp_path: Path, lines: list[str], **model: object) -> Run:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(lines) + "\n", "utf-8")
    fields = {"preset": "markov", "smoothing": 0.0, **model}
    return train(
        str(text),
        out=tmp_path / "run",
        valid=[str(text)],
        overrides={
            "objective.name": "causal",
            "tokenizer.kind": "word",
            "train.device": "cpu",
            **{f"model.{name}": value for name, value in fields.items()},
        },
        quiet=True,
    )


def next_word(run: Run, prefix: str, word: str) -> float:
    scored = open_generator(run, device="cpu").translator.score([("", f"{prefix} {word}")])[0]
    return round(math.exp(scored.token_scores[len(prefix.split())]), 9)


def test_shares_of_what_followed_are_those_of_the_lecture(tmp_path: Path) -> None:
    run = trained(tmp_path, SHOW, order=1)
    found = {word: next_word(run, "show me my", word) for word in ("directories", "files", "photos")}
    assert found == pytest.approx({"directories": 0.2, "files": 0.3, "photos": 0.5}, abs=1e-6)
    assert next_word(run, "show me my files", "please") == pytest.approx(1.0, abs=1e-6)


def test_each_line_is_read_by_itself(tmp_path: Path) -> None:
    """After the first word of a line nothing of the line before is known, whichever line it was."""
    run = trained(tmp_path, ["a x b", "c x d"] * 3, order=3, skips=True)
    for first, last in (("a", "b"), ("c", "d")):
        assert next_word(run, f"{first} x", last) == pytest.approx((0.5 + 0.5 + 1) / 3)  # </s>, <s>, word
    scored = open_generator(run, device="cpu").translator.score([("", "a x b"), ("", "c x d")])
    for line in scored:
        assert math.exp(line.token_scores[0]) == pytest.approx(0.5)


def test_it_writes_lines_of_the_text(tmp_path: Path) -> None:
    run = trained(tmp_path, SHOW, order=2)
    written = open_generator(run, device="cpu").hypotheses("show me my")
    assert written[0].text in SHOW

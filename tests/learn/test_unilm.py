"""A small UniLM learns what belongs in blanks, under all three masks, and so has learnt to write."""

from pathlib import Path

from dragoman.decode.search.config import SearchConfig
from dragoman.runs.directory import Run
from learn.texts import knows_the_words, learnt_stretches


def writes(run: Run) -> bool:
    lines = run.generator(device="cpu").lines("c c", 2, max_tokens=6, search=SearchConfig(beam=2))
    return list(lines) == ["c c c c"] * 2


def test_it_fills_blanks_and_writes(tmp_path: Path) -> None:
    learnt_stretches(tmp_path, "unilm", {"name": "unilm"}, lambda run: knows_the_words(run) and writes(run))

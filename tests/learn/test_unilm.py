"""A small UniLM learns what belongs in blanks, under all three masks, and so has learnt to write."""

from pathlib import Path

from dragoman.decode.search.config import SearchConfig
from learn.texts import accuracy_of, learnt_stretches


def test_it_fills_blanks_and_writes(tmp_path: Path) -> None:
    run = learnt_stretches(tmp_path, "unilm", {"name": "unilm"}, updates=130)
    assert accuracy_of(run) > 0.9
    lines = run.generator(device="cpu").lines("c c", 2, max_tokens=6, search=SearchConfig(beam=2))
    assert list(lines) == ["c c c c"] * 2

"""A small BERT learns what hidden pieces are from those that are seen."""

from pathlib import Path

from learn.texts import knows_the_words, learnt_stretches


def test_it_guesses_hidden_pieces(tmp_path: Path) -> None:
    learnt_stretches(tmp_path, "bert", {"name": "masked", "noise": {"share": 0.15}}, knows_the_words)

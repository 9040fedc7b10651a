"""Sentences, and that nothing between them is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.text.sentences import split_sentences


@pytest.mark.parametrize(
    "pieces",
    [
        ["One. ", "Two!  ", "Three?\n", "Four"],
        ["He said «No.» ", "Then he left. "],
        ["Dr. Smith saw Mr. J. Doe, e.g. at 3.5 km. ", "Really?! ", "(Yes.) ", "Ok…"],
        ["See fig. 3 for more. ", "Zum Beispiel z.B. Brot. ", "Ende."],
        ["It ended. and went on."],
        ["今日は。", "元気？", "はい"],
        ["a\n", "b\n\n  ", "c"],
        ["Version 2. ", "Next."],
        ["<g1>One. ", "Two.</g1> ", "Three."],
    ],
)
def test_sentences(pieces: list[str]) -> None:
    assert split_sentences("".join(pieces)) == pieces


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="aB.!?… \n\t\"')»。1", max_size=40))
def test_nothing_is_lost(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join(pieces) == text
    assert all(pieces)

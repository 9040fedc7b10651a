"""Sentences, and that nothing between them is lost."""

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.errors import UserError
from dragoman.text.sentences import split_sentences


@pytest.mark.parametrize(
    "pieces",
    [
        ["One. ", "Two!  ", "Three?\n", "Four"],
        ["He said «No.» ", "Then he left. "],
        ["Dr. Smith saw Mr. J. Doe, e.g. at 3.5 km. ", "Really?! ", "Ok…"],
        ["See fig. 3 for more. ", "Zum Beispiel z.B. Brot. ", "Ende."],
        ["今日は。", "元気？", "はい"],
        ["a\n", "b\n\n  ", "c"],
        ["Version 2. ", "Next."],
        ["3. Juni 1999\n", "2. Clean the filter. ", "It was 42. ", "12. Stop."],
        ["<g1>One. ", "Two.</g1> ", "Three."],
        ["One. ", "<b>Two.</b> ", "<i>Three</i>."],
        ["  Hello. ", "You."],
        ["यह है। ", "वह है।"],
        [" "],
        [],
    ],
)
def test_sentences(pieces: list[str]) -> None:
    assert split_sentences("".join(pieces)) == pieces


@pytest.mark.parametrize(
    ("language", "pieces"),
    [
        ("de", ["Am 3. Oktober kam er. ", "Dann ging er."]),
        ("bn", ["আমি ভাত খাই। ", "তুমি কী খাও?"]),
        ("hy", ["Սա նախադասություն է։ ", "Սա էլ։"]),
        ("ur", ["یہ ایک جملہ ہے۔ ", "یہ بھی۔"]),
        ("xx", ["One. ", "Two."]),
        ("pt-BR", ["O Sr. Silva foi. ", "Ela ficou."]),
    ],
)
def test_languages_have_marks_and_abbreviations_of_their_own(language: str, pieces: list[str]) -> None:
    assert split_sentences("".join(pieces), language) == pieces


def test_a_long_text_is_split_like_its_parts() -> None:
    pieces = [f"This is sentence {number}, which says «Yes.» and goes on. " for number in range(200)]
    assert split_sentences("".join(pieces)) == pieces
    endless = "word " * 2000
    assert split_sentences(f"One. {endless}. Two.") == ["One. ", f"{endless}. ", "Two."]


def test_what_is_missing_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    with pytest.raises(UserError, match="needs the package 'sentencex'"):
        split_sentences("One. Two.")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="aB.!?… \n\t\"')»。1<b>/", max_size=40))
def test_nothing_is_lost(text: str) -> None:
    pieces = split_sentences(text)
    assert "".join(pieces) == text
    assert all(pieces)

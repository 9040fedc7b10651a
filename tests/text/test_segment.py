"""The pattern against a splitter written by hand, and Python's reading of it against the library's."""

import itertools
import unicodedata

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import pre_tokenizers

from dragoman.text.segment import segment_pattern, segmenter
from dragoman.text.tokenizer import TokenizerConfig

OPTIONS = list(itertools.product(("start", "end"), (True, False), (True, False)))


def by_hand(text: str, mark: str, punctuation: bool, digits: bool) -> list[str]:
    """Character by character. The mark at the end is the mirror image of the mark at the start."""

    def isolated(c: str) -> bool:
        category = unicodedata.category(c)
        if ord(c) > 0xFFFF:
            return False
        if punctuation and (category[0] == "P" or (c.isascii() and category[0] == "S")):
            return True
        return category[0] == "Z" or category == "Cc" or (digits and category[0] == "N")

    units: list[str] = []
    in_run = False
    for c in text:
        if c in " <" or isolated(c):
            units.append(c)
            in_run = False
        elif in_run and len(units[-1]) < 128:
            units[-1] += c
        else:
            units.append(c)
            in_run = True
    segments: list[str] = []
    for i, unit in enumerate(units):
        if unit != " ":
            if mark == "start" and i > 0 and units[i - 1] == " " and unit != "<":
                segments[-1] += unit
            else:
                segments.append(unit)
        elif mark == "end" and i > 0 and units[i - 1] not in (" ", "<"):
            segments[-1] += " "
        else:
            segments.append(" ")
    return segments


@pytest.fixture(scope="module")
def splitters() -> dict:
    made = {}
    for mark, punctuation, digits in OPTIONS:
        config = TokenizerConfig(word_mark=mark, split_punctuation=punctuation, split_digits=digits)  # type: ignore[arg-type]
        library = pre_tokenizers.Split(tokenizers.Regex(segment_pattern(config)), "isolated")
        made[mark, punctuation, digits] = (segmenter(config), library)
    return made


TRICKY = st.text(st.sampled_from(" <>abé1٣½,.«$▁\t\n\u2028\u00a0\x00\u0301船👍𝟎"), max_size=30)
ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(text=st.one_of(TRICKY, ANY, TRICKY.map(lambda t: t + "x" * 300 + t)))
def test_segments_are_those_of_a_splitter_by_hand_and_of_the_library(text: str, splitters: dict):
    for options, (pattern, library) in splitters.items():
        segments = pattern.findall(text)
        assert "".join(segments) == text
        assert segments == by_hand(text, *options)
        assert segments == [segment for segment, _ in library.pre_tokenize_str(text)]
        assert all(segment == "<" or "<" not in segment for segment in segments)


def identifiers_by_hand(text: str, mark: str) -> list[str]:
    """Identifiers become one letter, the rest is split as usual, and then they are put back."""
    found, short, place = [], "", 0

    def kind(i: int) -> str:
        if i >= len(text) or text[i] in " <":
            return ""
        category = unicodedata.category(text[i]) if ord(text[i]) <= 0xFFFF else "Lo"
        if text[i] == "_":
            return "letter"
        if category[0] == "P" or category == "Cc" or category[0] == "Z":
            return ""
        if text[i].isascii() and category[0] == "S":
            return ""
        return "digit" if category[0] == "N" else "letter"

    while place < len(text):
        if kind(place) != "letter":
            short, place = short + text[place], place + 1
            continue
        start, place, count = place, place + 1, 1
        while count < 128:
            dot = place < len(text) and text[place] == "."
            if not kind(place + dot):
                break
            place, count = place + 1 + dot, count + 1
        found.append(text[start:place])
        short += "“"
    left = iter(found)
    pieces = []
    for piece in by_hand(short, mark, True, True):
        pieces.append(piece.replace("“", next(left)) if "“" in piece else piece)
    return pieces


IDENTIFIERS = st.text(st.sampled_from(' <_.a1b2,"é٣\t船'), max_size=30)


@settings(max_examples=300, derandomize=True, database=None, deadline=None)
@given(text=st.one_of(IDENTIFIERS, IDENTIFIERS.map(lambda t: t + "x._" * 200 + t)))
@pytest.mark.parametrize("mark", ["start", "end"])
def test_identifiers_are_kept_whole(text: str, mark: str) -> None:
    config = TokenizerConfig(word_mark=mark, keep_identifiers=True)  # type: ignore[arg-type]
    segments = segmenter(config).findall(text)
    assert "".join(segments) == text
    assert segments == identifiers_by_hand(text, mark)
    library = pre_tokenizers.Split(tokenizers.Regex(segment_pattern(config)), "isolated")
    assert segments == [segment for segment, _ in library.pre_tokenize_str(text)]


def test_identifiers_of_a_query() -> None:
    found = segmenter(TokenizerConfig(keep_identifiers=True)).findall(
        ' SELECT t0.total_sum , x._y FROM "EECS" WHERE n=550.5 ; end. a..b N_00 f(b)'
    )
    assert found == [
        *(
            " SELECT",
            " t0.total_sum",
            " ,",
            " x._y",
            " FROM",
            ' "',
            "EECS",
            '"',
            " WHERE",
            " n",
            "=",
            "5",
            "5",
        ),
        *("0", ".", "5", " ;", " end", ".", " a", ".", ".", "b", " N_00", " f", "(", "b", ")"),
    ]


def test_every_character_of_the_basic_plane_is_classified_alike(splitters: dict):
    plane = [chr(code) for code in range(0x10000) if not 0xD800 <= code <= 0xDFFF]
    text = "".join(f"a{c}a" for c in plane)
    for options, (pattern, library) in splitters.items():
        segments = pattern.findall(text)
        assert segments == by_hand(text, *options)
        assert segments == [segment for segment, _ in library.pre_tokenize_str(text)]


def test_what_a_person_expects():
    start, end = segmenter(TokenizerConfig()), segmenter(TokenizerConfig(word_mark="end"))
    assert start.findall(" He said (in 1999): don't!") == [
        " He", " said", " (", "in", " 1", "9", "9", "9", ")", ":", " don", "'", "t", "!",
    ]  # fmt: skip
    assert end.findall("Well, yes  <b> ") == ["Well", ", ", "yes ", " ", "<", "b", "> "]

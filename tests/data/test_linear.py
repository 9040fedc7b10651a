"""Documents from strangers take steps in proportion to their length, whatever is in them.

Steps are counted (`steps.py`), not timed. From reading to writing: units, translations, checks, edits.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dragoman.errors import UserError
from hostile import AFTER, FRAMES, PIECES, RUNS, STRUCTURES, Frame, repeated
from steps import counting, steps_of

LEAST, CHARACTERS = 12, 120
"""Repetitions of a piece, and characters of the shorter text."""
MOST_GROWTH = 2.3

Through = Callable[[str, str], None]


@pytest.fixture(scope="module")
def through() -> Iterator[Through]:
    """A document read, translated and written, with all steps counted."""
    packages = "dragoman.text", "dragoman.data.formats", "dragoman.data.documents", "markdown_it"
    with counting(*packages) as load:
        documents, units = load("dragoman.data.documents"), load("dragoman.data.documents.unit")
        translate = load("dragoman.data.documents.translate").translate_units

        def through(name: str, text: str) -> None:
            try:
                opened: Any = documents.SUFFIXES[name[1:]](text, name, ("en", "de"))
            except UserError:
                return
            found = translate(opened.units, lambda texts: [f"Z {text}" for text in texts])
            units.apply(text, opened.edits(found.texts))

        yield through


def growth(through: Through, name: str, piece: str, frame: Frame) -> float:
    count = max(LEAST, CHARACTERS // len(piece))
    short = steps_of(through, name, frame(repeated(piece, count)))
    return steps_of(through, name, frame(repeated(piece, 2 * count)), most=100 * short) / short


@pytest.mark.parametrize("name", FRAMES)
def test_twice_the_text_takes_twice_the_steps(through: Through, name: str) -> None:
    grown = {piece: growth(through, name, piece, FRAMES[name]) for piece in PIECES}
    assert {piece: found for piece, found in grown.items() if found > MOST_GROWTH} == {}


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.vtt"])
def test_a_long_run_behind_a_beginning(through: Through, name: str) -> None:
    for before in AFTER:
        for piece in RUNS:
            found = growth(through, name, piece, lambda text, head=before: FRAMES[name](f"a {head}{text}x"))
            assert found <= MOST_GROWTH, (before, piece)


@pytest.mark.parametrize(("name", "piece", "frame"), STRUCTURES)
def test_the_structure_of_a_format(through: Through, name: str, piece: str, frame: Frame) -> None:
    assert growth(through, name, piece, frame) <= MOST_GROWTH

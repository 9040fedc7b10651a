"""Text from strangers takes steps in proportion to its length. They are counted (`steps.py`), not timed."""

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest

from hostile import AFTER, PIECES, RUNS
from steps import counted_call, counting, steps_of

MOST_GROWTH = 2.3
Load = Callable[[str], ModuleType]


@pytest.fixture(scope="module")
def load() -> Iterator[Load]:
    with counting("dragoman.text", "dragoman.serve.masks") as found:
        yield found


def grown(function: Callable[[str], object], piece: str, before: str = "") -> float:
    count = max(16, 200 // len(piece))
    short = steps_of(function, before + piece * count)
    return steps_of(function, before + piece * 2 * count, most=100 * short) / short


def functions(load: Load) -> dict[str, Callable[[str], object]]:
    spans, protect = load("dragoman.text.spans"), load("dragoman.text.protect")
    glossary, masks = load("dragoman.text.glossary"), load("dragoman.serve.masks")
    segment, options = load("dragoman.text.segment"), load("dragoman.text.tokenizer_config")
    terms = glossary.Glossary(
        [glossary.GlossaryEntry(term, ("x",)) for term in ("a", "b", "a b", "www", "1 - 1", "k")]
    )
    identify = load("dragoman.text.identify").identify
    segments = segment.segmenter(options.TokenizerConfig()).findall

    def protected(text: str) -> None:
        protect.carried(protect.protect(text, spans.ALL_KINDS), text)

    def masked(text: str) -> None:
        found = masks.mask(text, terms, ["a", "b", "x"])
        found.unmask(f"{found.text}{found.text}")

    return {
        "spans": lambda text: spans.find(text, spans.ALL_KINDS),
        "tags": lambda text: spans.find(text, ("tag",)),
        "sentences": load("dragoman.text.sentences").split_sentences,
        "protection": protected,
        "masks": masked,
        "units": load("dragoman.text.word_boundaries").units,
        "language": lambda text: identify(text, ["en", "fr", "zh", "ja"]),
        "segments": lambda text: counted_call(segments, text),
    }


NAMES = ["spans", "tags", "sentences", "protection", "masks", "units", "language", "segments"]


@pytest.mark.parametrize("name", NAMES)
def test_twice_the_text_takes_twice_the_steps(load: Load, name: str) -> None:
    function = functions(load)[name]
    found = {piece: grown(function, piece) for piece in PIECES}
    assert {piece: growth for piece, growth in found.items() if growth > MOST_GROWTH} == {}


@pytest.mark.parametrize("name", ["spans", "sentences", "masks"])
def test_a_long_run_behind_a_beginning(load: Load, name: str) -> None:
    function = functions(load)[name]
    for before in AFTER:
        for piece in RUNS:
            assert grown(function, piece, before) <= MOST_GROWTH, (before, piece)


@pytest.mark.parametrize("line", ["a{}", "a b {}", "{} a", "a " * 40 + "{}", "船{}"])
def test_a_glossary_is_read_in_steps_like_its_length(load: Load, line: str) -> None:
    glossary = load("dragoman.text.glossary")

    def built(count: int) -> None:
        glossary.Glossary(
            [glossary.GlossaryEntry(line.format(number), ("x",)) for number in range(1000, 1000 + count)]
        )

    assert steps_of(built, 80) <= MOST_GROWTH * steps_of(built, 40)


def test_the_longest_term_is_looked_for_once_at_each_place(load: Load) -> None:
    """A term that is nearly there at every place: a walk through it from each would take the square."""
    glossary = load("dragoman.text.glossary")

    def found(count: int) -> None:
        terms = glossary.Glossary([glossary.GlossaryEntry("a " * 100 + "b", ("x",))])
        assert terms.matches("a " * count) == []

    assert steps_of(found, 800) <= MOST_GROWTH * steps_of(found, 400)


def test_the_counter_sees_squares() -> None:
    """Of loops, of copies, of what is looked for in vain, of patterns that go back."""
    with counting("squares") as load:
        squares = load("squares")
        for function in (squares.loops, squares.copies, squares.searches, squares.slices, squares.patterns):
            assert grown(function, "a") > 2.8, function.__name__
        assert grown(squares.straight, "a") < 2.05

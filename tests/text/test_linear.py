"""Text from strangers takes steps in proportion to its length. They are counted (`steps.py`), not timed."""

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
import sentencex

from dragoman.text.sentences import WINDOW, split_sentences
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
    segment, options = load("dragoman.text.segment"), load("dragoman.text.tokenizer_file")
    terms = glossary.Glossary(
        [glossary.GlossaryEntry(term, ("x",)) for term in ("a", "b", "a b", "www", "1 - 1", "k")]
    )
    identification = load("dragoman.text.identify")
    identification.identification_model()  # not counted: it is read once
    identify = identification.identify
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


@pytest.mark.parametrize("text", ["a. " * 4000, "“a " * 4000, "a" * 12_000, "<b>a</b>. " * 1500])
def test_the_splitter_sees_windows_of_long_texts(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """sentencex takes the square of a text's length where there are many quotes."""
    seen: list[int] = []

    def segment(language: str, window: str) -> list[str]:
        seen.append(len(window))
        return real(language, window)

    real = sentencex.segment
    monkeypatch.setattr(sentencex, "segment", segment)
    assert "".join(split_sentences(text)) == text
    assert max(seen) <= WINDOW and sum(seen) <= 3 * len(text)


PLACED = {
    "around all words": lambda words, marks: "<b>" * marks + words + "</b>" * marks,
    "around one word": lambda words, marks: words + " " + "<b>" * marks + "a" + "</b>" * marks,
    "between words": lambda words, marks: words + " " + "<br/>" * marks + " a",
    "apart": lambda words, marks: words + "<br/> <br/>" * (marks // 2) + "a",
    "with nothing inside": lambda words, marks: words + " " + "<i></i>" * (marks // 2) + " a",
    "beside an element": lambda words, marks: f"<b>{words}</b> a{'<br/>' * marks}a <i>a</i> a",
}


@pytest.mark.parametrize("how", PLACED)
def test_a_mark_more_takes_the_same_steps_among_many_words(load: Load, how: str) -> None:
    """All weights are looked at once, not once a mark."""
    spans, protect = load("dragoman.text.spans"), load("dragoman.text.protect")

    def placed(words: int, marks: int) -> None:
        protected = protect.protect(PLACED[how]("a " * words + "a", marks), spans.ALL_KINDS)
        protect.restore(protected.text, protected)

    among_few = steps_of(placed, 20, 200) - steps_of(placed, 20, 100)
    among_many = steps_of(placed, 200, 200) - steps_of(placed, 200, 100)
    assert among_many <= 1.05 * among_few


PAIRED = ["<b>a</b> ", "<b>a ", "a<br/> ", "<b>a <i>a</i> </b> ", "{x} a "]


def placing(load: Load, piece: str, most_units: int) -> Callable[[int], None]:
    spans, protect = load("dragoman.text.spans"), load("dragoman.text.protect")

    def placed(count: int) -> None:
        text = piece * count + "</b>" * count * (piece == "<b>a ")
        protected = protect.protect(text, spans.ALL_KINDS)
        vars(protect)["_MOST_UNITS"] = most_units
        written, _ = protect.restore(protected.text, protected)
        assert protect.carried(protected, written)

    return placed


@pytest.mark.parametrize("piece", PAIRED)
def test_twice_the_words_take_four_times_the_steps(load: Load, piece: str) -> None:
    """As many as there are weights between the words of both sides."""
    placed = placing(load, piece, 1024)
    assert steps_of(placed, 80) <= 2 * MOST_GROWTH * steps_of(placed, 40)


@pytest.mark.parametrize("piece", PAIRED)
def test_a_very_long_text_is_placed_in_steps_like_its_length(load: Load, piece: str) -> None:
    placed = placing(load, piece, 10)
    assert steps_of(placed, 160) <= MOST_GROWTH * steps_of(placed, 80)


def test_the_counter_sees_squares() -> None:
    """Of loops, of copies, of what is looked for in vain, of patterns that go back."""
    with counting("squares") as load:
        squares = load("squares")
        for function in (squares.loops, squares.copies, squares.searches, squares.slices, squares.patterns):
            assert grown(function, "a") > 2.8, function.__name__
        assert grown(squares.straight, "a") < 2.05

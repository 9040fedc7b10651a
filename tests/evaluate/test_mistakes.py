"""Kinds of mistakes, each told by its rule and by nothing else."""

import pytest

from dragoman.errors import UserError
from dragoman.evaluate.mistakes import by_known_words, find_kinds, sentence_scores, slices_by_length


@pytest.mark.parametrize(
    ("source", "reference", "output", "kinds"),
    [
        ("a cat", "eine Katze", "eine Katze", []),
        ("a cat", "eine Katze", "", ["empty"]),
        ("a cat", "", "", []),
        ("a cat", "eine Katze", "a cat", ["copied"]),
        ("Anna", "Anna", "Anna", []),
        ("a cat", "eine Katze", "eine eine eine", ["repeated"]),
        ("very", "sehr sehr sehr", "sehr sehr sehr", []),
        ("a", "x y z x y z a b c", "x y x y x y c", ["repeated"]),
        ("a", "eine sehr große Katze", "Katze", ["too short"]),
        ("a", "Ei", "E", []),  # one letter is no difference in length
        ("a", "Katze", "eine sehr große Katze", ["too long"]),
    ],
)
def test_each_kind_is_told_by_its_rule(source: str, reference: str, output: str, kinds: list[str]) -> None:
    found = find_kinds(["b", source], ["B", reference], ["B", output])
    assert [kind.name for kind in found] == kinds
    assert all(kind.places == (1,) for kind in found)


def test_as_many_outputs_as_references() -> None:
    with pytest.raises(UserError, match="cannot be held against"):
        find_kinds(["a"], ["b"], [])


def test_scores_of_sentences() -> None:
    assert sentence_scores(["ab", "cd"], ["ab", "ce"], exact=True) == [100.0, 0.0]
    right, wrong = sentence_scores(["a cat", "a dog"], ["a cat", "a cat"], exact=False)
    assert right == pytest.approx(100) and 0 < wrong < 60


def test_thirds_by_words_or_by_characters() -> None:
    sources = [" ".join("w" * count) for count in (1, 2, 3, 4, 5, 6)]
    found = slices_by_length(sources, [60, 50, 40, 30, 20, 10])
    assert [(each.name, each.sentences, each.score) for each in found] == [
        ("0–2 words", 2, 55),
        ("3–4 words", 2, 35),
        ("5–6 words", 2, 15),
    ]
    found = slices_by_length(["a", "bb", "ccc"], [3, 2, 1])
    assert [each.name for each in found] == ["0–1 characters", "2–2 characters", "3–3 characters"]
    assert [each.sentences for each in slices_by_length(["a b"] * 5, [1.0] * 5)] == [5]


def test_new_words() -> None:
    scores = [10.0, 20.0, 40.0]
    known, new = by_known_words(["a b", "a x", "b"], scores, {"a", "b"})
    assert (known.sentences, known.score, new.sentences, new.score) == (2, 25.0, 1, 20.0)
    assert by_known_words(["x", "y", "z"], scores, {"a"}) == []
    assert by_known_words(["a"], [1.0], {"a"}) == []

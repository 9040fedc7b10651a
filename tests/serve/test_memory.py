"""The translation memory: pairs that are put and dropped, and the difference between two texts."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman.serve.difference import differences
from dragoman.serve.memory import TranslationMemory

TEXTS = st.text("ab .,\n日", max_size=40)


def test_a_pair_that_is_put_takes_the_place_of_others() -> None:
    memory = TranslationMemory([("a cat", "Katze"), ("a cat", "Kater"), ("a dog", "Hund")])
    memory.put("a  cat", "Mieze")
    assert len(memory) == 2 and memory.exact("a cat") == "Mieze"
    assert [one.target for one in memory.matches("a cat", 20)] == ["Mieze", "Hund"]
    memory.drop("a dog")
    memory.drop("nothing like it")
    assert len(memory) == 1 and memory.exact("a dog") is None and memory.matches("a dog", 90) == []


def test_what_is_put_again_and_again_takes_no_room() -> None:
    memory = TranslationMemory([("a dog", "Hund")])
    for number in range(5000):
        memory.put("a cat", f"Katze {number}")
    assert len(memory) == 2 and memory.exact("a cat") == "Katze 4999"
    assert len(memory._pairs) < 1100 and len(memory._postings["cat"]) < 1100


@given(TEXTS, TEXTS)
def test_a_difference_has_both_texts(first: str, second: str) -> None:
    found = differences(first, second)
    assert "".join(one.text for one in found if one.kind != "added") == first
    assert "".join(one.text for one in found if one.kind != "removed") == second


def test_long_texts_are_not_compared_word_by_word() -> None:
    assert [one.kind for one in differences("a " * 1500, "a")] == ["removed", "added"]

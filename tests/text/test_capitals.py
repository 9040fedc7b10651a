"""Which texts in capitals are read in lower case, by the pieces that both need."""

import pytest

from dragoman.text.all_capitals import in_lower_case


def letters_and_words(text: str) -> int:
    """Pieces of a vocabulary of words in lower case, with or without a capital: others are spelt."""
    return sum(1 if word[1:].islower() or len(word) == 1 else len(word) for word in text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CHECK THE BATTERY!", "Check the battery!"),
        ("REVISE LA BATERÍA", "Revise la batería"),
        ("  1. CHECK  THE BATTERY", "  1. Check  the battery"),
        ("NASA", None),  # an abbreviation
        ("BBC NEWS", None),
        ("CHECK THE iPHONE", None),
        ("Check the battery", None),
        ("PRÜFE DIE STRASSE İ", None),  # lower case is longer
        ("DIE STRAẞE IST GLATT", None),  # its own lower case has another upper case
        ("123 456 789", None),
        ("电池 电池 电池", None),
        ("", None),
    ],
)
def test_texts(text: str, expected: str | None) -> None:
    assert in_lower_case(text, letters_and_words) == expected


def test_a_vocabulary_that_knows_capitals_reads_them() -> None:
    assert in_lower_case("CHECK THE BATTERY", lambda text: len(text.split())) is None
    assert in_lower_case("CHECK THE BATTERY", len) is None  # letters


def test_a_model_of_lower_case_gets_no_capital() -> None:
    def lower_only(text: str) -> int:
        return sum(1 if character.islower() else 3 for character in text if character.isalpha())

    assert in_lower_case("CHECK THE BATTERY", lower_only) == "check the battery"

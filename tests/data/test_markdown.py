"""Markdown: what is text, what is not, and that a translation does not become a block of its own."""

import re

import pytest

from dragoman.data.documents import parse_document
from dragoman.data.documents.translate import translate_units


def upper(text: str) -> str:
    return "".join(part if part.startswith("<") else part.upper() for part in re.split("(<[^>]*>)", text))


def shouted(text: str) -> str:
    opened = parse_document(text.encode(), "a.md")
    found = translate_units(opened.units, lambda texts: [upper(text) for text in texts])
    return opened.written(found.texts).decode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Run:\n\n    pip install\n    tox -e\n\nOk\n", "RUN:\n\n    pip install\n    tox -e\n\nOK\n"),
        ("- run\n\n      make\n      test\n\n  now\n", "- RUN\n\n      make\n      test\n\n  NOW\n"),
        ("\tcode\n\tmore\n", "\tcode\n\tmore\n"),
        ("> ~~~\n> code\n> ~~~\n> text\n", "> ~~~\n> code\n> ~~~\n> TEXT\n"),
        ("a\r\nb\r\n\r\nc\rd", "A B\r\n\r\nC D"),
        ("> one\nlazy\n", "> ONE LAZY\n"),
        ("1. a\n   - b\n     c\n", "1. A\n   - B C\n"),
        ("# head # two ##\n", "# HEAD # TWO ##\n"),
        ("two\nlines\n---\n", "TWO LINES\n---\n"),
        ("Note[^1].\n\n[^1]: A foot note\n", "NOTE[^1].\n\n[^1]: A FOOT NOTE\n"),
        ("> | a \\| b | `x` |\n> |---|---|\n> | c | |\n", "> | A \\| B | `x` |\n> |---|---|\n> | C | |\n"),
        ("<details>\n<summary>stays</summary>\n\ntext\n\n</details>\n",
         "<details>\n<summary>stays</summary>\n\nTEXT\n\n</details>\n"),
        ("---\ntitle: x\n---", "---\ntitle: x\n---"),
        ("---\n\ntext", "---\n\nTEXT"),
        ("[x]: http://a.b 'title'\n[x] and [y]\n", "[x]: http://a.b 'title'\n[X][x] AND [Y]\n"),
    ],
)  # fmt: skip
def test_blocks(text: str, expected: str) -> None:
    assert shouted(text) == expected


@pytest.mark.parametrize("translation", ["# x", "- x", "1. x", "> x", "===", "---", "``` x", "a | b"])
def test_a_translation_stays_where_it_is(translation: str) -> None:
    for text in ("one\n\ntwo\n", "| one | h |\n|---|---|\n| two | c |\n"):
        opened = parse_document(text.encode(), "a.md")
        written = opened.written({0: translation})
        again = parse_document(written, "a.md")
        assert len(again.units) - len(opened.units) in (-1, 0)  # one without letters is no unit
        assert again.units[-1].source == opened.units[-1].source


def test_a_check_can_end_the_reading() -> None:
    calls = []

    def check(parts: int) -> None:
        calls.append(parts)
        if len(calls) > 5:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        parse_document(b"a\n\n" * 100, "a.md", check=check)

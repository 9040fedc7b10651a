"""Small rules of the service, each by itself."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from dragoman.data.memory import TranslationMemory, similarity
from dragoman.serve import deepl, tmserver
from dragoman.serve.batcher import Kindred
from dragoman.serve.pieces import tags_broken
from dragoman.serve.service import Service, Translated, Wish


@pytest.mark.parametrize(
    ("query", "expected"),
    [("", (75, 3)), ("?min_similarity=0&max_candidates=0", (0, 0)), ("?max_candidates=100", (75, 100))],
)
def test_what_a_translation_memory_is_asked_for(query: str, expected: tuple[int, int]) -> None:
    asked: list[tuple[int, int]] = []

    async def similar(*arguments: Any) -> list[Any]:
        asked.append(arguments[-2:])
        return []

    checked: list[list[str]] = []
    service: Any = SimpleNamespace(
        similar=similar, pair=lambda *codes: codes, check=checked.append, routes={}
    )
    app = FastAPI()
    app.include_router(tmserver.router_of(service))
    assert TestClient(app).get(f"/tm/en/de/unit/x{query}").json() == []
    assert asked == [expected]
    assert checked == [["x"]]


def test_texts_of_very_different_lengths_are_not_similar() -> None:
    assert similarity("abcdefghij", "abc") == similarity("abc", "abcdefghij") == 0.0
    assert similarity("abcdefghi", "abc") == 33.3
    assert similarity("a b", "a  b") == 100.0
    assert similarity(f"{'a' * 1000}b", f"{'a' * 1000}c") == 99.0  # 99.9 by length, and yet not the same


def test_a_word_of_very_many_sentences_leads_to_the_first_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.data.memory._MOST_POSTINGS", 2)
    known = TranslationMemory([(f"the cat {number}", str(number)) for number in range(5)])
    assert sorted(match.target for match in known.matches("the cat", 0, 9)) == ["0", "1"]


def test_without_markup_the_answers_of_the_service_are_handed_on() -> None:
    answers = [object(), object()]

    async def translate(*_: object) -> list[Any]:
        return answers

    service: Any = SimpleNamespace(translate=translate)
    nothing: Any = None
    for handling in (None, "xml"):
        fields: Any = SimpleNamespace(get={"tag_handling": handling}.get, names=lambda _: [])
        found = asyncio.run(deepl._by_markup(service, nothing, ["a", "b"], ("en", "de"), nothing, fields))
        assert found is answers


def test_candidates_are_those_that_share_most_words() -> None:
    known = TranslationMemory([("the cat sat", "1"), ("the dog ran", "2"), ("the red cat ran", "3")])
    assert known._candidates("the cat ran", 1) == [2]


def test_nothing_is_aligned_that_is_not_asked_for() -> None:
    assert Wish().align is False
    assert Kindred().align is False


def test_tags_are_broken_where_the_translation_lost_what_the_source_had() -> None:
    assert tags_broken("<b>a</b>", "<b>a")
    assert not tags_broken("<b>a", "<b>a</b>")
    assert not tags_broken("<b>a</b>", "<b>a</b>")


def test_a_text_is_cut_at_its_tags_and_nothing_is_lost() -> None:
    text = "one<p>two</p>three<i>four</i>"
    pieces = deepl._cut(text, {"p"})
    assert pieces == [
        ("one", False),
        ("<p>", True),
        ("two", False),
        ("</p>", True),
        ("three<i>four</i>", False),
    ]
    assert "".join(piece for piece, _ in pieces) == text


def test_a_text_goes_through_every_leg_of_its_route() -> None:
    async def leg(texts: list[str], pair: tuple[str, str], *_: object) -> list[Translated]:
        return [Translated(f"{text} {pair[0]}{pair[1]}") for text in texts]

    routes = {("a", "d"): (("a", "b"), ("b", "c"), ("c", "d"))}
    own: Any = SimpleNamespace(routes=routes, served={}, _leg=leg)
    (found,) = asyncio.run(Service._by_model(own, ["x"], ("a", "d"), Wish()))
    assert found.text == "x ab bc cd"


def test_a_text_whose_tags_break_is_translated_as_a_whole() -> None:
    asked: list[int] = []

    async def join(pieces: list[list[str]], *_: object) -> list[Translated]:
        asked.extend(len(row) for row in pieces)
        return [Translated("<b>A. B.</b>" if len(row) == 1 else "<b>A. B.") for row in pieces]

    own: Any = SimpleNamespace(_join=join)
    text = "<b>One house is red. Two houses are blue.</b>"
    (found,) = asyncio.run(Service._leg(own, [text], ("a", "b"), Kindred(), Wish()))
    assert asked == [2, 1] and found.text == "<b>A. B.</b>"


def test_spaces_in_a_memory_do_not_make_a_match_worse() -> None:
    (match,) = TranslationMemory([("the  red   cat", "x")]).matches("the red cat", 0, 1)
    assert match.quality == 100.0

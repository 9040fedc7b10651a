"""The translation memory: pairs that are put and dropped, and the difference between two texts."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.errors import UserError
from dragoman.serve.corrections import Corrections
from dragoman.serve.difference import differences
from dragoman.serve.memory import TranslationMemory, open_memories
from dragoman.serve.service import Served, Service, Wish
from serve.standin import Shouter

KNOWN = TranslationMemory([("Save the table.", "Tabelle speichern."), ("Close it.", "Schließen.")])
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


class Reader(Shouter):
    """It says what was beside each text."""

    def hypotheses(self, texts: Sequence[str], **how: Any) -> list[list[Hypothesis]]:
        beside = how.pop("similar", {})
        rows = super().hypotheses(texts, **how)
        return [
            [replace(one, text=f"{one.text} ({beside[text]})" if text in beside else one.text) for one in row]
            for text, row in zip(texts, rows, strict=True)
        ]


def test_a_model_that_reads_the_memory_gets_what_is_new_in_it(tmp_path: Path) -> None:
    """A correction changes the next translation of a similar sentence, whatever was remembered before."""
    service = Service([Served(("en", "de"), Reader(), reads_memory=True)], memories={("en", "de"): KNOWN})
    service.corrections = Corrections(service.limits, tmp_path / "c.tmx")

    async def story() -> None:
        async def translated(text: str, **wish: Any) -> str:
            return (await service.translate([text], ("en", "de"), Wish(**wish)))[0].text

        assert await translated("Save the table now.") == "SAVE THE TABLE NOW. (Tabelle speichern.)"
        assert await translated("Save the table now.", memory=False) == "SAVE THE TABLE NOW."
        assert await translated("Save the table.") == "Tabelle speichern.", "word for word it is the memory's"
        assert await translated("Quite another one.") == "QUITE ANOTHER ONE."
        assert service.corrections is not None
        await service.corrections.put(("en", "de"), "Save the table soon.", "Bald speichern.")
        await service.corrections.put(("en", "de"), "Save the table now!", "Jetzt speichern!")
        assert await translated("Save the table now.") == "SAVE THE TABLE NOW. (Jetzt speichern!)"
        assert await translated("Save the table now.", n_best=2) == "SAVE THE TABLE NOW. (Jetzt speichern!)"

    asyncio.run(story())
    service.close()


def test_others_are_not_told() -> None:
    service = Service([Served(("en", "de"), Reader())], memories={("en", "de"): KNOWN})
    (found,) = asyncio.run(service.translate(["Save the table now."], ("en", "de")))
    assert found.text == "SAVE THE TABLE NOW."
    service.close()


ALIASES = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (None, r"this is no run directory; give a run or a file \(.*config\.yaml: this is a named pipe"),
        (ALIASES, r"this is no run directory; give a run or a file \(.*config\.yaml: .*values"),
        ("data: [1]\n", "this is no run directory; give a run or a file$"),
        ("data: {src_lang: en, tgt_lang: de}\npurpose: predict\n", "has not learnt from pairs"),
    ],
)
def test_a_directory_that_is_no_run_of_pairs(tmp_path: Path, config: str | None, told: str) -> None:
    """Whoever made a run is trusted with nothing: a pipe is not waited for, and YAML has its limits."""
    if config is None:
        os.mkfifo(tmp_path / "config.yaml")
    else:
        (tmp_path / "config.yaml").write_text(config)
    with pytest.raises(UserError, match=told):
        open_memories([tmp_path], [("en", "de")])

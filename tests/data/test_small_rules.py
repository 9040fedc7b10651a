"""Small rules of reading and laying out, each by itself."""

import struct
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dragoman.data.alignment import CorpusAligner
from dragoman.data.config import DataConfig, SourceConfig
from dragoman.data.demo_date_formats import _vocabulary
from dragoman.data.documents import parse_document
from dragoman.data.formats import gettext, read_pairs
from dragoman.data.labelled.layout import Item
from dragoman.errors import UserError


def test_the_words_that_a_way_of_writing_dates_needs() -> None:
    """Names of months and weekdays, ordinals, and what stands between; numbers need none."""
    fields = [("o", 1, ""), ("M", 2, ""), ("L", 3, ""), ("d", 1, ""), ("y", 4, ""), ("", 0, " de, ")]
    assert _vocabulary(fields) == {"o", "LLL", "de"}
    assert _vocabulary([("E", 4, ""), ("c", 1, ""), ("M", 4, ""), ("d", 2, "")]) == {
        "weekday",
        "short weekday",
        "MMMM",
    }


def test_an_mo_file_has_a_greatest_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.mo"
    path.write_bytes(struct.pack("<7I", 0x950412DE, 0, 0, 28, 28, 0, 28))
    monkeypatch.setattr(gettext, "MAX_MO", 28)
    source = SourceConfig((str(path),))
    assert list(read_pairs(source, "en", "de")) == []
    monkeypatch.setattr(gettext, "MAX_MO", 27)
    with pytest.raises(UserError, match="too many for an MO file"):
        list(read_pairs(source, "en", "de"))


def test_an_example_of_several_rows_takes_the_room_of_its_longest() -> None:
    rows: Any = tuple(SimpleNamespace(ids=np.zeros(length)) for length in (3, 7, 5))
    assert Item(0, rows, np.zeros(1)).length == 21


@pytest.mark.parametrize(("text", "marked"), [("~~red~~", True), ("~red~", False), ("a ~~~red~~~", False)])
def test_two_tildes_strike_out(text: str, marked: bool) -> None:
    (unit,) = parse_document(f"the {text} cat".encode(), "a.md").units
    assert ("~" not in unit.source) == marked


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_a_temperature_is_finite_and_positive(temperature: float) -> None:
    with pytest.raises(UserError, match="temperature"):
        DataConfig(train=(SourceConfig(files=("a", "b")),), temperature=temperature)


def test_alignment_is_learnt_and_not_only_guessed_from_the_order() -> None:
    """Single words say which is which; a pair in the other order follows them, not the diagonal."""
    words = "abcdefgh"
    pairs = [(word, word.upper()) for word in words] * 3
    pairs += [(f"{a} {b}", f"{b} {a}".upper()) for a, b in pairwise(words)]
    aligner = CorpusAligner(pairs)
    steps: list[int] = []
    aligner.learn(progress=steps.append)
    assert steps == list(range(1, len(steps) + 1)) and steps
    assert list(aligner.links())[len(words) * 3 :] == [[(0, 1), (1, 0)]] * (len(words) - 1)

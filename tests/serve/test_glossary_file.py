"""The file of a server's glossaries says whether it is as it was written."""

import asyncio
import json
from pathlib import Path

import pytest

from dragoman.errors import UserError
from dragoman.serve.dictionaries import Given
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.limits import Limits


def names(file: Path) -> list[str]:
    return [one.name for one in Glossaries(Limits(), file)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "glossaries.json"
    kept = Glossaries(Limits(), path)
    for name in ("one", "two"):
        asyncio.run(kept.create(name, [Given(("en", "de"), "cat\tKatze\ndog\tHund", "tsv")]))
    return path


def test_it_is_read_again(file: Path) -> None:
    assert names(file) == ["one", "two"]


def test_a_file_without_glossaries_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "glossaries.json"
    kept = Glossaries(Limits(), path)
    made = asyncio.run(kept.create("one", [Given(("en", "de"), "cat\tKatze", "tsv")]))
    asyncio.run(kept.delete(made.id))
    assert names(path) == []


def test_a_flipped_bit_anywhere_is_refused(file: Path) -> None:
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(UserError):
            names(file)


def test_a_file_of_an_earlier_version_has_no_hash(file: Path) -> None:
    file.write_text(json.dumps(json.loads(file.read_bytes())[:-1]), "utf-8")
    assert names(file) == ["one", "two"]

"""Glossaries of clients: how many and how large, in a thread and on the disk, and a disk that is full."""

import asyncio
import errno
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.errors import UserError
from dragoman.serve import dictionaries
from dragoman.serve.app import Options
from dragoman.serve.dictionaries import LONGEST_TERM, Given
from dragoman.serve.glossaries import Glossaries
from dragoman.serve.limits import Limits
from serve.standin import client_of, service_of

PAIR = {"source_lang": "en", "target_lang": "de"}


def terms(count: int, first: int = 0) -> str:
    return "\n".join(f"term{number:05}\tname" for number in range(first, first + count))


def single(client: TestClient, entries: str, name: str = "g", **more: str) -> Any:
    return client.post("/v2/glossaries", json={"name": name, **PAIR, "entries": entries, **more})


def several(*entries: str, source: str = "en") -> dict[str, Any]:
    return {
        "name": "g",
        "dictionaries": [
            {"source_lang": source, "target_lang": f"d{n}", "entries": text} for n, text in enumerate(entries)
        ],
    }


def test_a_dictionary_has_a_limit_however_it_comes_to_its_terms() -> None:
    limits = Limits(glossary_terms=10, glossary_bytes=200)
    with client_of(service_of(limits=limits)) as client:
        assert single(client, terms(11)).status_code == 413
        assert single(client, "a\t" + "b" * 199).status_code == 413
        assert single(client, terms(10)).status_code == 201
        made = client.post("/v3/glossaries", json=several(terms(6))).json()
        own = f"/v3/glossaries/{made['glossary_id']}"
        refused = client.patch(own, json=several(terms(5, first=6)))
        assert refused.status_code == 413 and "more than 10 terms" in refused.json()["message"]
        changed = client.patch(own, json=several(terms(4, first=6))).json()
        assert changed["dictionaries"][0]["entry_count"] == 10
        put = {"source_lang": "en", "target_lang": "d0", "entries": terms(11)}
        assert client.put(f"{own}/dictionaries", json=put).status_code == 413
        assert client.get(own).json()["dictionaries"][0]["entry_count"] == 10


def test_all_glossaries_have_a_limit_together() -> None:
    with client_of(service_of(limits=Limits(glossaries=2))) as client:
        assert [single(client, "a\tb").status_code for _ in range(3)] == [201, 201, 456]
    with client_of(service_of(limits=Limits(glossaries_terms=5))) as client:
        made = client.post("/v3/glossaries", json=several(terms(2), terms(2))).json()
        own = f"/v3/glossaries/{made['glossary_id']}"
        assert single(client, terms(2)).status_code == 456
        assert client.patch(own, json=several(terms(2, first=7))).status_code == 456
        assert single(client, terms(1)).status_code == 201
    with client_of(service_of(limits=Limits(glossaries_bytes=5000))) as client:
        made = [single(client, "a\t" + "b" * 250).status_code for _ in range(6)]
        assert made == [201, 201, 201, 456, 456, 456]
        assert "5,000 bytes" in single(client, "a\t" + "b" * 250).json()["message"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"entries": f"{'a' * (LONGEST_TERM + 1)}\tb"}, "more than 256 characters"),
        ({"entries": f"a\t{'b' * (LONGEST_TERM + 1)}"}, "more than 256 characters"),
        ({"name": "n" * 1025}, "at most 1024 characters"),
        ({"name": ""}, "needs a name"),
        ({"source_lang": "x" * 33}, "no code of a language"),
        ({"entries": '"a', "entries_format": "csv"}, "line 1 of the entries is not CSV"),
        ({"entries": "A b\tx\nA  b\ty"}, "empty or comes twice"),
    ],
)
def test_what_is_no_glossary(client: TestClient, change: dict[str, str], said: str) -> None:
    response = client.post("/v2/glossaries", json={"name": "g", **PAIR, "entries": "a\tb", **change})
    assert response.status_code == 400 and said in response.json()["message"]


def test_a_new_name_is_held_to_the_same_length(client: TestClient) -> None:
    made = client.post("/v3/glossaries", json=several("a\tb")).json()
    own = f"/v3/glossaries/{made['glossary_id']}"
    assert client.patch(own, json={"name": "n" * 1025}).status_code == 400
    assert client.patch(own, json={"name": "new"}).json()["name"] == "new"
    assert client.delete(own).status_code == 204


def test_terms_of_a_request_have_limits_too(client: TestClient) -> None:
    asked = {"texts": ["a"], "source": "en", "target": "de"}
    for glossary in ({"a": "b" * 257}, {"a" * 257: "b"}):
        response = client.post("/api/v1/translate", json={**asked, "glossary": glossary})
        assert response.status_code == 400 and "more than 256 characters" in response.json()["error"]
    many = client.post(
        "/v2/translate",
        json={"text": ["a"], "source_lang": "en", "target_lang": "de", "glossary_ids": ["x"] * 17},
    )
    assert many.status_code == 400 and "at most 16 glossaries" in many.json()["message"]


def test_terms_are_read_in_a_thread_and_others_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    names: list[str] = []
    built = dictionaries.glossary_of

    def slow(entries: dict[str, str]) -> object:
        names.append(threading.current_thread().name)
        begun.set()
        assert go_on.wait(600)
        return built(entries)

    monkeypatch.setattr(dictionaries, "glossary_of", slow)
    with client_of(service_of()) as client:
        statuses: list[int] = []
        thread = threading.Thread(target=lambda: statuses.append(single(client, "a\tb").status_code))
        thread.start()
        assert begun.wait(600)
        assert client.get("/health").json() == {"status": "ok"}  # while the terms are not read yet
        assert client.get("/v3/glossaries").json() == {"glossaries": []}
        go_on.set()
        thread.join(600)
        assert statuses == [201] and names[0].startswith("asyncio_")


@pytest.mark.parametrize(
    ("number", "status", "said"),
    [(errno.ENOSPC, 507, "the disk of the server is full"), (errno.EROFS, 503, "cannot write its file")],
)
def test_a_disk_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int, said: str
) -> None:
    """Neither memory nor disk change, and nothing is left behind."""
    file = tmp_path / "glossaries.json"
    with client_of(service_of(), Options(glossaries=file)) as client:
        made = client.post("/v3/glossaries", json=several("a\tb")).json()
        own, before = f"/v3/glossaries/{made['glossary_id']}", file.read_bytes()

        def fail(_: int) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            for response in (
                single(client, "c\td"),
                client.patch(own, json=several("c\td")),
                client.put(f"{own}/dictionaries", json={**PAIR, "entries": "c\td"}),
                client.delete(f"{own}/dictionaries", params={"source_lang": "en", "target_lang": "d0"}),
                client.delete(own),
            ):
                assert response.status_code == status and said in response.json()["message"]
        assert client.get("/v3/glossaries").json() == {"glossaries": [made]}
        assert file.read_bytes() == before and list(tmp_path.iterdir()) == [file]
        assert single(client, "c\td").status_code == 201  # with room again


def test_the_file_is_for_its_owner_and_as_small_as_its_terms(tmp_path: Path) -> None:
    file = tmp_path / "glossaries.json"
    file.write_text("[]")
    file.chmod(0o644)
    with client_of(service_of(), Options(glossaries=file)) as client:
        assert single(client, "naïve\té\t\x01").status_code == 201
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    kept, *_ = json.loads(file.read_bytes())
    assert kept["dictionaries"] == [{"source_lang": "en", "target_lang": "de", "entries": {"naïve": "é"}}]


def test_limits_hold_over_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "glossaries.json"
    with client_of(service_of(), Options(glossaries=file)) as client:
        for _ in range(3):
            assert single(client, terms(4)).status_code == 201
    for limits, said in (
        (Limits(glossaries=2), "all glossaries together may have 2 glossaries"),
        (Limits(glossaries_terms=11), "all glossaries together may have 11 terms"),
        (Limits(glossary_terms=3), "the dictionary has more than 3 terms"),
        (Limits(glossaries_bytes=20), "not a file of at most 160 bytes"),
    ):
        with pytest.raises(UserError, match=rf"glossaries\.json: .*{said}"):
            Glossaries(limits, file)
    assert len(list(Glossaries(Limits(), file))) == 3


@pytest.mark.parametrize("content", ["[{}]", "{", "[1]", '{"a": 1}', "[" * 100_000, '[{"glossary_id": []}]'])
def test_a_file_that_is_no_file_of_glossaries(tmp_path: Path, content: str) -> None:
    file = tmp_path / "glossaries.json"
    file.write_text(content)
    with pytest.raises(UserError, match="not a file of glossaries that this server wrote"):
        Glossaries(Limits(), file)


def test_a_change_is_done_as_a_whole_if_its_client_leaves(tmp_path: Path) -> None:
    file = tmp_path / "glossaries.json"

    async def story() -> None:
        glossaries = Glossaries(Limits(), file)
        asked = asyncio.ensure_future(glossaries.create("g", [Given(("en", "de"), terms(50), "tsv")]))
        while not file.exists():  # it is being written, or has been
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait({asked})
        await glossaries.create("h", [Given(("en", "de"), "a\tb", "tsv")])
        assert [one.name for one in glossaries] == ["g", "h"]

    asyncio.run(story())
    assert [one.name for one in Glossaries(Limits(), file)] == ["g", "h"]


def test_many_changes_at_once_are_all_there() -> None:
    async def story() -> None:
        glossaries = Glossaries(Limits())
        made = await asyncio.gather(
            *(glossaries.create(str(n), [Given(("en", "de"), "a\tb", "tsv")]) for n in range(20))
        )
        extended = [
            glossaries.extend(made[0].id, None, [Given(("en", "de"), f"t{n}\tx", "tsv")]) for n in range(20)
        ]
        await asyncio.gather(*extended)
        assert len(list(glossaries)) == 20
        assert len(glossaries.find(made[0].id).dictionaries["en", "de"].entries) == 21

    asyncio.run(story())

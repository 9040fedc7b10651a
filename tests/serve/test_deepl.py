"""DeepL's dialect: what its clients send, and what they would crash without."""

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from dragoman.errors import UserError
from dragoman.serve.app import Options
from serve.standin import client_of, service_of, shouter


def translated(client: TestClient, text: str, **asked: object) -> str:
    body = {"text": [text], "source_lang": "EN", "target_lang": "DE", **asked}
    response = client.post("/v2/translate", json=body)
    assert response.status_code == 200, response.text
    return response.json()["translations"][0]["text"]


def test_as_json_and_as_a_form(client: TestClient) -> None:
    asked = {
        "text": ["One.", "Two."],
        "target_lang": "DE",
        "source_lang": "EN",
        "show_billed_characters": True,
    }
    expected = [
        {"detected_source_language": "EN", "text": text, "billed_characters": 4} for text in ("ONE.", "TWO.")
    ]
    assert client.post("/v2/translate", json=asked).json() == {"translations": expected}
    form = {"text": ["One.", "Two."], "target_lang": "de", "source_lang": "en", "auth_key": "any"}
    assert client.post("/v2/translate", data=form).json() == {"translations": expected}


def test_texts_of_several_languages_keep_their_order(client: TestClient) -> None:
    texts = ["der Hund ist da", "le chat est là", "die Katze und der Hund"]
    found = client.post("/v2/translate", json={"text": texts, "target_lang": "EN-US"}).json()["translations"]
    assert [one["text"] for one in found] == [text.upper() for text in texts]
    assert [one["detected_source_language"] for one in found] == ["DE", "FR", "DE"]


def test_markup(client: TestClient) -> None:
    weblate = translated(client, 'Hi <x id="7"></x> you', tag_handling="xml", ignore_tags=["x"])
    assert weblate == 'HI <x id="7"></x> YOU'
    assert translated(client, "a <x>b <x>c</x></x> d", tag_handling="xml", ignore_tags=["x"]) == (
        "A <x>b <x>c</x></x> D"
    )
    assert translated(client, "<p>a</p><p>b &amp; c</p>", tag_handling="xml", splitting_tags=["p"]) == (
        "<p>A</p><p>B &amp; C</p>"
    )
    assert translated(client, "<p>a <b>b</b></p>", tag_handling="html") == "<p>A <b>B</b></p>"


@pytest.mark.parametrize(
    ("how", "pieces"),
    [
        ("0", ["Ab cd.\nEf gh. Ij"]),
        ("1", ["Ab cd.", "Ef gh.", "Ij"]),
        ("nonewlines", ["Ab cd.", "Ef gh.", "Ij"]),
    ],
)
def test_how_sentences_are_split(how: str, pieces: list[str]) -> None:
    service = service_of()
    with client_of(service) as client:
        translated(client, "Ab cd.\nEf gh. Ij", split_sentences=how)
        assert shouter(service).batches == [pieces]
        translated(client, "Kl\nmn", split_sentences=how)
        joined = {"0": ["Kl\nmn"], "1": ["Kl", "mn"], "nonewlines": ["Kl mn"]}
        assert shouter(service).batches[1] == joined[how]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"target_lang": "DE"}, "Parameter 'text' not specified"),
        ({"text": ["a"]}, "'target_lang'"),
        ({"text": ["a"], "target_lang": "XX", "source_lang": "EN"}, "'target_lang' not supported"),
        ({"text": ["a"], "target_lang": "DE", "source_lang": "XX"}, "'source_lang' not supported"),
        ({"text": ["a"], "target_lang": "DE", "formality": "more"}, "'formality' is not supported"),
        ({"text": ["a"], "target_lang": "DE", "tag_handling": "tex"}, "'tag_handling' not supported"),
        ({"text": [1], "target_lang": "DE"}, "text must be a text"),
        ({"text": ["a"], "target_lang": "DE", "style_id": "x"}, "'style_id' is not supported"),
    ],
)
def test_mistakes(client: TestClient, asked: dict[str, object], said: str) -> None:
    response = client.post("/v2/translate", json=asked)
    assert response.status_code == 400 and said in response.json()["message"]


def test_languages_and_usage(client: TestClient) -> None:
    assert client.get("/v2/languages").json()[0] == {"language": "EN", "name": "English"}
    in_body = client.request("GET", "/v2/languages", data={"type": "target"}).json()
    assert in_body == client.get("/v2/languages", params={"type": "target"}).json()
    assert [one["language"] for one in in_body] == ["DE", "EN-GB", "EN-US"]
    third = client.get("/v3/languages", params={"resource": "translate_text"}).json()
    assert {one["lang"]: (one["usable_as_source"], one["usable_as_target"]) for one in third} == {
        **{"de": (True, True), "en": (True, False), "fr": (True, False)},
        **{"en-GB": (False, True), "en-US": (False, True)},
    }
    usage = client.get("/v2/usage").json()
    assert usage["character_count"] > 0 and usage["character_limit"] > usage["character_count"]
    assert client.post("/v2/write/rephrase", json={}).json() == {"message": "Not Found"}


def test_glossaries_of_one_pair(client: TestClient) -> None:
    pairs = client.get("/v2/glossary-language-pairs").json()["supported_languages"]
    assert {"source_lang": "en", "target_lang": "de"} in pairs
    asked = {
        "name": "g",
        "source_lang": "EN",
        "target_lang": "DE",
        "entries": "cat\tKater",
        "entries_format": "tsv",
    }
    made = client.post("/v2/glossaries", json=asked)
    info = made.json()
    assert made.status_code == 201 and info["ready"] and info["entry_count"] == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", info["creation_time"])
    own = f"/v2/glossaries/{info['glossary_id']}"
    assert client.get(own).json() == info and client.get("/v2/glossaries").json() == {"glossaries": [info]}
    assert client.get(f"{own}/entries").text == "cat\tKater"
    assert translated(client, "A cat.", glossary_id=info["glossary_id"]) == "A Kater."
    for wrong in ({"source_lang": None}, {"source_lang": "FR"}):
        body = {"text": ["a"], "target_lang": "DE", "glossary_id": info["glossary_id"], **wrong}
        assert client.post("/v2/translate", json=body).status_code == 400
    assert client.delete(own).status_code == 204
    assert client.get(own).status_code == client.delete(own).status_code == 404


@pytest.mark.parametrize("entries", ["", "cat", "cat\t", "cat\ta\ncat\tb"])
def test_entries_that_are_none(client: TestClient, entries: str) -> None:
    asked = {"name": "g", "source_lang": "EN", "target_lang": "DE", "entries": entries}
    response = client.post("/v2/glossaries", json=asked)
    assert response.status_code == 400 and response.json()["message"].startswith("Bad request")


@pytest.mark.parametrize("dictionaries", [None, [], "cat", {"entries": "cat\ta"}, ["cat"], [{}, 1]])
def test_dictionaries_that_are_none(client: TestClient, dictionaries: object) -> None:
    response = client.post("/v3/glossaries", json={"name": "g", "dictionaries": dictionaries})
    assert response.status_code == 400
    assert response.json()["message"] == "Bad request: 'dictionaries' must be a list of dictionaries"


def test_glossaries_of_several_pairs(client: TestClient) -> None:
    first = {"source_lang": "en", "target_lang": "de", "entries": "cat,Kater", "entries_format": "csv"}
    made = client.post("/v3/glossaries", json={"name": "m", "dictionaries": [first]}).json()
    own = f"/v3/glossaries/{made['glossary_id']}"
    second = {"source_lang": "fr", "target_lang": "en", "entries": "chat\ttomcat", "entries_format": "tsv"}
    put = client.put(f"{own}/dictionaries", json=second).json()
    assert put == {"source_lang": "fr", "target_lang": "en", "entry_count": 1}
    more = {"name": "n", "dictionaries": [{**first, "entries": "dog,Rüde"}]}
    changed = client.patch(own, json=more).json()
    assert changed["name"] == "n" and [one["entry_count"] for one in changed["dictionaries"]] == [2, 1]
    pair = {"source_lang": "EN", "target_lang": "DE"}
    (entries,) = client.get(f"{own}/entries", params=pair).json()["dictionaries"]
    assert entries["entries"] == "cat\tKater\ndog\tRüde"
    assert client.get(f"/v2/glossaries/{made['glossary_id']}").status_code == 404
    assert translated(client, "cat dog", glossary_ids=[made["glossary_id"]]) == "Kater Rüde"
    assert client.delete(f"{own}/dictionaries", params=pair).status_code == 204
    assert [one["entry_count"] for one in client.get(own).json()["dictionaries"]] == [1]
    assert made["glossary_id"] in [
        one["glossary_id"] for one in client.get("/v3/glossaries").json()["glossaries"]
    ]
    assert client.delete(own).status_code == 204


def test_glossaries_are_kept_in_a_file(tmp_path: Path) -> None:
    options = Options(glossaries=tmp_path / "glossaries.json")
    asked = {"name": "g", "source_lang": "EN", "target_lang": "DE", "entries": "cat\tKater"}
    with client_of(service_of(), options) as client:
        made = client.post("/v2/glossaries", json=asked).json()
    with client_of(service_of(), options) as client:
        assert client.get("/v2/glossaries").json() == {"glossaries": [made]}
        assert translated(client, "cat", glossary_id=made["glossary_id"]) == "Kater"
    (tmp_path / "glossaries.json").write_text("[{}]")
    with pytest.raises(UserError, match=r"glossaries\.json: not a file of glossaries"):
        client_of(service_of(), options)


def test_documents() -> None:
    service = service_of()
    shouter(service).go_on.clear()
    with client_of(service) as client:
        file = {
            "file": ("file", b"<!DOCTYPE html><p>some <b>text</b></p>")
        }  # without a suffix, as from memory
        sent = client.post("/v2/document", data={"target_lang": "DE", "source_lang": "EN"}, files=file).json()
        own, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
        assert client.post(own, json=key).json()["status"] in ("queued", "translating")
        assert client.post(f"{own}/result", json=key).status_code == 503
        shouter(service).go_on.set()
        while (status := client.post(own, json=key).json())["status"] in ("queued", "translating"):
            pass
        assert status["status"] == "done" and status["billed_characters"] == 38
        assert client.post(own, json={"document_key": "no"}).status_code == 404
        assert client.post(f"{own}/result", json=key).content == b"<!DOCTYPE html><p>SOME <b>TEXT</b></p>"
        assert client.post(f"{own}/result", json=key).status_code == 404


def test_a_document_that_cannot_be_read(client: TestClient) -> None:
    sent = client.post(
        "/v2/document", data={"target_lang": "DE", "source_lang": "EN"}, files={"file": ("a.docx", b"PK")}
    ).json()
    own, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
    while (status := client.post(own, json=key).json())["status"] in ("queued", "translating"):
        pass
    assert status["status"] == "error" and "a.docx: not a whole zip archive" in status["error_message"]
    body = {"target_lang": "DE", "source_lang": "EN", "output_format": "pdf"}
    assert client.post("/v2/document", data=body, files={"file": ("a.txt", b"a")}).status_code == 400

"""Whatever is sent to whatever route: never a fault of the server, always an error in the dialect's words."""

import asyncio
import json
import logging
import random
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import Options, build
from dragoman.serve.keys import Keys
from dragoman.serve.limits import Limits
from fuzz_serve import KEY, fuzz, fuzz_live
from rubbish import Rubbish
from serve.standin import service_of

POST = """
/translate /detect /translate_file /suggest /v2/translate /v2/glossaries /v3/glossaries /v2/document
/v2/document/x /api/v1/translate /api/v1/detect /api/v1/documents /api/v1/alternatives /api/v1/corrections
"""
GET = """
/translate /identifyLang /v2/languages /v3/languages /tm/en/de/unit/a /tm/x/y/unit/ /api/v1/memory
/v3/glossaries/x/entries
"""
ROUTES = [
    *(("POST", path) for path in POST.split()),
    *(("GET", path) for path in GET.split()),
    ("PATCH", "/v3/glossaries/x"),
    ("PUT", "/v3/glossaries/x/dictionaries"),
    ("DELETE", "/v2/glossaries/x"),
]
OWN = {
    "texts": ["Hello."],
    "source": "en",
    "target": "de",
    "format": "text",
    "split": "none",
    "alternatives": 1,
}
OWN |= {"details": True, "memory": True, "glossary": {}}
RIGHT = {"q": "Hello.", "text": ["Hello."], "source": "en", "target": "de", "langpair": "en|de"}
RIGHT |= {"source_lang": "EN", "target_lang": "DE", "name": "g", "entries": "a\tb", "document_key": "x"}
OTHERS = """
format alternatives tag_handling ignore_tags split_sentences splitting_tags glossary_id glossary_ids
entries_format dictionaries formality type file min_similarity max_candidates resource model_type
"""
VALUES: list[Any] = [
    *(
        "en",
        "de",
        "EN",
        "DE",
        "auto",
        "en|de",
        "|",
        "html",
        "xml",
        "tsv",
        "0",
        "1",
        "true",
        "",
        " ",
        "\0",
        "\x1b",
    ),
    *(
        "Hello <b>you</b>.",
        "<p>a<b>",
        "<x>",
        "a\tb",
        "a\tb\na\tc",
        "ab,cd",
        "é\u0301\u202e",
        "😀",
        "a" * 5001,
    ),
    *(None, True, 0, -1, 1.5, 10**30, [], {}, [None], ["a", 1], [["a"]], {"a": "b"}, ["en"] * 70),
    *([{"source_lang": "en", "target_lang": "de", "entries": "a\tb"}], [{}], {"a": 1}),
]


def asked(chance: random.Random, path: str) -> dict[str, Any]:
    """What is right, with up to three fields that may not be."""
    right = OWN if path == "/api/v1/translate" else RIGHT
    names = [*right] if right is OWN else [*right, *OTHERS.split()]
    return right | {name: chance.choice(VALUES) for name in chance.sample(names, chance.randint(0, 3))}


@pytest.mark.parametrize("how", ["json", "form", "query"])
def test_nothing_that_is_sent_is_a_fault(client: TestClient, how: str) -> None:
    chance = random.Random(how)
    well = 0
    for _ in range(120):
        method, path = chance.choice(ROUTES)
        fields = asked(chance, path)
        if how == "json":
            headers = {"Content-Type": "application/json"}
            response = client.request(method, path, content=json.dumps(fields).encode(), headers=headers)
        else:
            plain = {name: one if isinstance(one, str) else json.dumps(one) for name, one in fields.items()}
            given = {"data": plain} if how == "form" else {"params": plain}
            response = client.request(method, path, **given)
        assert response.status_code < 500, (method, path, fields, response.text)
        if response.status_code >= 400:
            assert isinstance(response.json(), dict), (path, response.text)
        well += response.status_code < 300
    assert well > 20


def test_rubbish_of_every_kind(caplog: pytest.LogCaptureFixture) -> None:
    """A slice of `benchmarks/fuzz_serve.py`, which sends 20,000 of them."""
    service = service_of(("en", "de"), ("de", "en"), ("fr", "en"), pivot="en")
    locked = build(service, Options(keys=Keys([KEY])))
    with caplog.at_level(logging.INFO):
        found = asyncio.run(fuzz(build(service), locked, Rubbish(2), 300))
        live = asyncio.run(fuzz_live(build(service), Limits(receive_s=2), Rubbish(3), 60))
    assert found.faults == live.faults == []
    assert not [one for one in caplog.records if one.exc_info or one.levelno >= logging.ERROR]
    assert len(found.statuses) == 9 and sum(own[200] for own in found.statuses.values()) > 60
    assert "broken HTTP" in live.statuses

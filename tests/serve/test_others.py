"""Apertium's and tmserver's dialects, and the page."""

import base64
import hashlib
import re

import pytest
from starlette.testclient import TestClient


def test_what_weblate_and_omegat_ask_of_apertium(client: TestClient) -> None:
    pairs = client.get("/listPairs").json()
    assert pairs["responseStatus"] == 200
    assert {"sourceLanguage": "en", "targetLanguage": "de"} in pairs["responseData"]
    query = {"q": "Hello", "markUnknown": "no", "langpair": "en|de", "key": ""}
    expected = {"responseData": {"translatedText": "HELLO"}, "responseDetails": None, "responseStatus": 200}
    assert client.get("/translate", params=query).json() == expected
    assert client.get("/translate", params={**query, "langpair": "eng|deu"}).json() == expected
    assert client.post("/translate", data=query).json() == expected


def test_apertium_says_what_is_wrong(client: TestClient) -> None:
    response = client.get("/translate", params={"q": "a", "langpair": "en|zz"})
    body = response.json()
    assert response.status_code == body["responseStatus"] == body["code"] == 400
    assert body["responseDetails"] == body["explanation"] == "zz is not supported"
    assert client.get("/translate", params={"q": "a", "langpair": "en"}).status_code == 400


def test_apertium_knows_names_and_languages(client: TestClient) -> None:
    assert client.get("/listLanguageNames").json()["fr"] == "French"
    found = client.get("/identifyLang", params={"q": "le chat est sur la table"}).json()
    assert max(found, key=lambda code: found[code]) == "fr"


def test_similar_sentences(client: TestClient) -> None:
    (found,) = client.get("/tm/en/de/unit/The%20cat%20sat%20on%20a%20mat.").json()
    assert found == {
        **{"source": "The cat sat on the mat.", "target": "Die Katze saß auf der Matte."},
        "quality": 87.0,
    }
    more = {"min_similarity": 10, "max_candidates": 2}
    assert len(client.get("/tm/en/de/unit/The cat/dog sat on a mat.", params=more).json()) == 2
    assert client.get("/tm/de/en/unit/Die Katze").json() == []
    assert client.get("/tm/languages/").json() == {"sourceLanguages": ["en"], "targetLanguages": ["de"]}


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_page_asks_nobody_else(client: TestClient, path: str) -> None:
    response = client.get(path)
    page, policy = response.text, response.headers["content-security-policy"]
    assert not re.findall(r"https?://|//[a-z]+\.|\son[a-z]+=|\sstyle=|innerHTML|eval\(", page)
    assert not re.findall(r"<(?:link|img|iframe)\b|\ssrc=", page)
    for element in ("script", "style") if path == "/" else ("style",):
        (inside,) = re.findall(f"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    assert response.headers["x-frame-options"] == "DENY"
    if path == "/docs":
        assert "<script" not in page and "script-src 'none'" in policy


def test_every_request_has_an_example(client: TestClient) -> None:
    page = client.get("/docs").text
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        for method in operations:
            assert f"<code>{method.upper()} {path}</code>" in page
    for asked in ("POST /translate", "POST /suggest", "POST /v2/translate", "GET /translate"):
        assert f"<code>{asked}</code>" in page
    assert re.search(r"POST /v2/translate</code>.*<pre[^>]*>curl -s \$SERVER/v2/translate", page)

"""The requests of Weblate and OmegaT, as they go over the wire, and what they read from the answers."""

import json
from typing import Any
from urllib.parse import quote

from starlette.testclient import TestClient

WEBLATE = {"User-Agent": "Weblate/2026.10.1", "Accept-Encoding": "gzip, deflate", "Accept": "*/*"}
OMEGAT = {"User-Agent": "Java-http-client/17.0.9", "Accept": "application/json"}


def asked(client: TestClient, method: str, path: str, body: Any = None, **headers: str) -> Any:
    content = None if body is None else json.dumps(body).encode()
    kind = {} if body is None else {"Content-Type": "application/json"}
    response = client.request(method, path, content=content, headers={**WEBLATE, **kind, **headers})
    assert response.status_code == 200, response.text
    return response.json()


def test_weblate_as_a_client_of_libretranslate(client: TestClient) -> None:
    assert {"en", "de", "fr"} == {one["code"] for one in asked(client, "GET", "/languages")}
    texts = ["Hello, world!", "Save <b>%s</b> as…"]
    body = {"api_key": "", "q": texts, "source": "en", "target": "de"}
    found = asked(client, "POST", "/translate", body)["translatedText"]
    assert found == ["HELLO, WORLD!", "SAVE <b>%s</b> AS…"]
    one = {"api_key": "", "q": texts[0], "source": "en", "target": "de"}  # its LTEngine sends one text
    assert asked(client, "POST", "/translate", one)["translatedText"] == "HELLO, WORLD!"


def test_weblate_as_a_client_of_deepl(client: TestClient) -> None:
    key = {"Authorization": "DeepL-Auth-Key any"}
    for resource in ("translate_text", "glossary"):
        languages = asked(client, "GET", f"/v3/languages?resource={resource}", **key)
        assert {one["lang"] for one in languages if one["usable_as_source"]} == {"en", "de", "fr"}
        assert {one["lang"] for one in languages if one["usable_as_target"]} == {"de", "en-GB", "en-US"}
        assert all(one["name"] and one["status"] and "features" in one for one in languages)
    body = {
        "text": ['Hello <x id="7"></x>, it is <x id="23"></x>.'],
        "source_lang": "EN",
        "target_lang": "DE",
        "tag_handling": "xml",
        "ignore_tags": ["x"],
    }
    (found,) = asked(client, "POST", "/v2/translate", body, **key)["translations"]
    assert found["text"] == 'HELLO <x id="7"></x>, IT IS <x id="23"></x>.'
    assert asked(client, "GET", "/v3/glossaries", **key) == {"glossaries": []}
    assert asked(client, "GET", "/v2/languages?type=source", **key)[0]["language"] == "EN"
    assert {"language": "DE", "name": "German", "supports_formality": False} in asked(
        client, "GET", "/v2/languages?type=target", **key
    )


def test_weblate_as_a_client_of_apertium(client: TestClient) -> None:
    """Its trial request is of the first pair that is listed."""
    listed = asked(client, "GET", "/listPairs")
    assert listed["responseStatus"] == 200
    first = listed["responseData"][0]
    pair = quote(f"{first['sourceLanguage']}|{first['targetLanguage']}", safe="")
    found = asked(client, "GET", f"/translate?langpair={pair}&q=test&markUnknown=no")
    assert found["responseData"]["translatedText"] == "TEST"


def test_weblate_as_a_client_of_tmserver(client: TestClient) -> None:
    assert asked(client, "GET", "/tm/languages/") == {"sourceLanguages": ["en"], "targetLanguages": ["de"]}
    (found,) = asked(client, "GET", f"/tm/en/de/unit/{quote('The cat sat on a mat.', safe='')}")
    assert set(found) == {"source", "target", "quality"} and found["target"] == "Die Katze saß auf der Matte."


def test_omegat_with_a_server_of_its_own_for_apertium(client: TestClient) -> None:
    """It encodes as forms do, sends an empty key, and reads the status from the body."""
    path = "/translate?q=Open+the+%22file%22+%7B0%7D%26+go&markUnknown=no&langpair=en%7Cde&key="
    found = asked(client, "GET", path, **OMEGAT)
    assert found["responseStatus"] == 200
    assert found["responseData"]["translatedText"] == 'OPEN THE "FILE" {0}& GO'
    wrong = client.get("/translate?q=a&markUnknown=no&langpair=en%7Czz&key=", headers=OMEGAT).json()
    assert wrong["responseStatus"] == 400 and wrong["responseDetails"] == "zz is not supported"

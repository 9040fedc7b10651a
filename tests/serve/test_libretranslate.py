"""LibreTranslate's dialect: what its clients send, and the words of its errors."""

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import Options
from serve.standin import client_of, service_of


def test_one_text_as_a_form_and_several_as_json(client: TestClient) -> None:
    form = client.post("/translate", data={"q": "Hello\r\nyou", "source": "en", "target": "de"})
    assert form.json() == {"translatedText": "HELLO\nYOU"}
    asked = {"api_key": "", "q": ["one", "two"], "source": "en", "target": "de"}  # as Weblate sends it
    assert client.post("/translate", json=asked).json() == {"translatedText": ["ONE", "TWO"]}


def test_detected_languages_and_alternatives_only_if_asked_for(client: TestClient) -> None:
    asked = {"q": "der Hund", "source": "auto", "target": "en", "alternatives": 1}
    answer = client.post("/translate", json=asked).json()
    detected = answer.pop("detectedLanguage")
    assert answer == {"translatedText": "DER HUND", "alternatives": ["DER HUND #2"]}
    assert detected["language"] == "de" and 10 < detected["confidence"] <= 100
    several = client.post("/translate", json={**asked, "q": ["der Hund", "le chat"]}).json()
    assert [one["language"] for one in several["detectedLanguage"]] == ["de", "fr"]
    assert several["alternatives"] == [["DER HUND #2"], ["LE CHAT #2"]]


def test_html(client: TestClient) -> None:
    asked = {"q": "<p>a <b>b</b></p>", "source": "en", "target": "de", "format": "html"}
    assert client.post("/translate", json=asked).json() == {"translatedText": "<p>A <b>B</b></p>"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "", "source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "a", "target": "de"}, "Invalid request: missing source parameter"),
        ({"q": "a", "source": "en"}, "Invalid request: missing target parameter"),
        ({"q": "a", "source": "en", "target": "zz"}, "zz is not supported"),
        ({"q": "a", "source": "en", "target": "de", "format": "html5"}, "html5 format is not supported"),
        (
            {"q": "a", "source": "de", "target": "fr"},
            "French (fr) is not available as a target language from German (de)",
        ),
    ],
)
def test_its_words_for_mistakes(client: TestClient, asked: dict[str, str], said: str) -> None:
    response = client.post("/translate", json=asked)
    assert (response.status_code, response.json()) == (400, {"error": said})


def test_languages_detection_settings_health(client: TestClient) -> None:
    languages = client.get("/languages").json()
    assert {"code": "fr", "name": "French", "targets": ["en", "de"]} in languages
    assert client.post("/detect", data={"q": "the cat and the dog"}).json()[0]["language"] == "en"
    settings = client.get("/frontend/settings").json()
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert settings["charLimit"] == 5000 and ".po" in settings["supportedFilesFormat"]
    assert client.get("/health").json() == {"status": "ok"}
    assert client.post("/suggest", data={"q": "a"}).status_code == 403
    assert client.put("/translate").status_code == 405


def test_without_its_package_a_language_is_not_guessed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.serve.service.can_identify", lambda: False)
    answer = client.post("/detect", data={"q": "the cat"})
    assert answer.status_code == 501 and "py3langid" in answer.json()["error"]


def test_a_file_is_fetched_where_it_says(client: TestClient) -> None:
    file = {"file": ("a.po", b'msgid "hi"\nmsgstr ""\n')}
    response = client.post("/translate_file", data={"source": "en", "target": "de"}, files=file)
    address = response.json()["translatedFileUrl"]
    assert address.startswith("http://127.0.0.1/download_file/") and address.endswith(".po")
    assert client.get(address).content == b'#, fuzzy\nmsgid "hi"\nmsgstr "HI"\n'
    assert client.get("/download_file/0123.po").status_code == 404
    bad = {"file": ("a.txt", b"\xff\xff")}
    response = client.post("/translate_file", data={"source": "en", "target": "de"}, files=bad)
    assert response.status_code == 400 and "not valid UTF-8" in response.json()["error"]


def test_the_trial_request_of_weblate() -> None:
    asked = {"q": ["test"], "source": "en", "target": "de"}
    deepl = {"text": ["test"], "source_lang": "EN", "target_lang": "DE"}
    with client_of(service_of(("fr", "en"))) as client:
        assert client.post("/translate", json=asked).status_code == 400
        assert client.post("/v2/translate", json=deepl).status_code == 400
    with client_of(service_of(("fr", "en")), Options(probe=True)) as client:
        assert client.post("/translate", json=asked).json() == {"translatedText": ["test"]}
        assert client.post("/v2/translate", json=deepl).json()["translations"][0]["text"] == "test"
        assert client.post("/translate", json={**asked, "q": ["tests"]}).status_code == 400


def test_a_form_may_have_letters_that_are_not_escaped(client: TestClient) -> None:
    """As `curl -d "q=Öl ändern"` sends it."""
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for body in ("q=Öl+ändern&source=en&target=de", "q=%C3%96l%20%C3%A4ndern&source=en&target=de"):
        found = client.post("/translate", content=body.encode(), headers=form)
        assert found.json() == {"translatedText": "ÖL ÄNDERN"}
    refused = client.post("/translate", content="q=Öl&source=en&target=de".encode("latin-1"), headers=form)
    assert refused.status_code == 400
    assert refused.json() == {"error": "Invalid request: the form cannot be read"}

"""Our own API: texts, documents, the memory, and what it says of itself."""

import pytest
from starlette.testclient import TestClient

from dragoman.serve.limits import Limits
from dragoman.text.context import SIGN, ContextConfig
from serve.standin import client_of, service_of, shouter
from serve.test_schema import OPERATIONS


def translations(client: TestClient, **asked: object) -> list[dict[str, object]]:
    response = client.post("/api/v1/translate", json={"source": "en", "target": "de", **asked})
    assert response.status_code == 200, response.text
    return response.json()["translations"]


def test_sentences_are_split_and_white_space_stays(client: TestClient) -> None:
    text = "  Hello there.  How are you?\n\n\tFine! \n"
    (found,) = translations(client, texts=[text])
    assert found["text"] == text.upper()


def test_placeholders_and_text_without_letters_come_out_as_they_went_in(client: TestClient) -> None:
    found = translations(client, texts=["Hi {name}, see https://a.example/b.", "…", "😀 !", ""])
    assert [one["text"] for one in found] == ["HI {name}, SEE https://a.example/b.", "…", "😀 !", ""]


def test_alternatives_scores_and_alignments(client: TestClient) -> None:
    (found,) = translations(client, texts=["One. Two."], alternatives=2, details=True)
    assert found["alternatives"] == ["ONE. #2 TWO. #2", "ONE. #3 TWO. #3"]
    assert [one["source"] for one in found["sentences"]] == ["One.", "Two."]  # type: ignore[index,attr-defined]
    first = found["sentences"][0]  # type: ignore[index]
    assert (first["alignment"], first["source_words"], first["text_words"]) == ([[0, 0]], [[0, 4]], [[0, 4]])
    assert first["confidence"] == [0.9048]


def test_the_source_is_detected_among_those_that_lead_to_the_target(client: TestClient) -> None:
    texts = ["Le chat est sur la table.", "Der Hund ist in dem Haus."]
    found = translations(client, texts=texts, source="auto", target="en")
    assert [one["source"] for one in found] == ["fr", "de"]


def test_a_third_language_is_reached_through_the_pivot(client: TestClient) -> None:
    (found,) = translations(client, texts=["Bonjour"], source="fr", target="de")
    assert (found["text"], found["source"], found["target"]) == ("BONJOUR", "fr", "de")
    pairs = client.get("/api/v1/languages").json()["pairs"]
    assert {(one["source"], one["target"]): one["via"] for one in pairs} == {
        ("en", "de"): None,
        ("de", "en"): None,
        ("fr", "en"): None,
        ("fr", "de"): "en",
    }


@pytest.mark.parametrize("insists", [False, True])
def test_terms_are_called_what_the_glossary_says(insists: bool) -> None:
    service = service_of(insists=insists)
    with client_of(service) as client:
        terms = {"heart attack": "Herzinfarkt", "Levant": "Levante"}
        (found,) = translations(client, texts=["A heart attack in the Levant {k}."], glossary=terms)
    assert found["text"] == "A Herzinfarkt IN THE Levante {k}."
    asked = shouter(service).batches[0][0]
    assert ("heart attack" in asked) == insists


def test_the_memory_comes_first_if_asked_for(client: TestClient) -> None:
    (found,) = translations(client, texts=["The cat  sat on the mat."], memory=True)
    assert (found["text"], found["from_memory"]) == ("Die Katze saß auf der Matte.", True)
    (found,) = translations(client, texts=["The cat sat on a mat."], memory=True)
    assert found["text"] == "THE CAT SAT ON A MAT." and found["matches"][0]["quality"] == 87.0  # type: ignore[index]
    query = {"source": "en", "target": "de", "text": "The cat sat on the mat.", "least": 80, "most": 1}
    (match,) = client.get("/api/v1/memory", params=query).json()
    assert match["quality"] == 100


def test_html_keeps_its_tags(client: TestClient) -> None:
    text = '<p class="a">One <b>two</b>.</p><pre>code</pre>'
    (found,) = translations(client, texts=[text], format="html")
    assert found["text"] == '<p class="a">ONE <b>TWO</b>.</p><pre>code</pre>'


def test_tags_over_several_sentences_stay_nested(client: TestClient) -> None:
    (found,) = translations(client, texts=["<b>One. Two</b> three. <i>Four.</i>"])
    assert found["text"] == "<b>ONE. TWO</b> THREE. <i>FOUR.</i>"


def test_a_document_comes_back_translated(client: TestClient) -> None:
    file = {"file": ("guide.de.md", b"# Title\n\nSome *text* here.\n")}
    response = client.post("/api/v1/documents", data={"source": "en", "target": "de"}, files=file)
    assert response.content == b"# TITLE\n\nSOME *TEXT* HERE.\n"
    assert response.headers["content-disposition"] == "attachment; filename*=UTF-8''guide.de.md"
    assert (response.headers["x-units-translated"], response.headers["x-units-left"]) == ("2", "0")
    wrong = client.post(
        "/api/v1/documents", data={"source": "en", "target": "de"}, files={"file": ("a.docx", b"PK")}
    )
    assert wrong.status_code == 400 and wrong.json()["error"].startswith("a.docx: not a whole zip archive")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"texts": []}, "texts: List should have at least 1 item"),
        ({"texts": ["a"], "beam": 3}, "beam: Extra inputs are not permitted"),
        ({"texts": ["a"], "target": "xx"}, "xx is not supported"),
        ({"texts": ["a"], "source": "de", "target": "fr"}, "French (fr) is not available as a target"),
        ({"texts": ["a"], "source": "fr", "target": None}, "target: expected one of en, de"),
        ({"texts": ["a"], "alternatives": 9}, "alternatives: expected at most 8, found 9"),
        ({"texts": ["a"], "glossary": {" ": "x"}}, "a source term is empty"),
    ],
)
def test_mistakes_are_told_in_one_sentence(client: TestClient, asked: dict[str, object], said: str) -> None:
    response = client.post("/api/v1/translate", json={"source": "en", "target": "de", **asked})
    assert response.status_code == 400 and said in response.json()["error"]


def test_half_a_surrogate_pair_is_refused(client: TestClient) -> None:
    body = b'{"texts": ["\\ud800"], "source": "en", "target": "de"}'
    response = client.post("/api/v1/translate", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 400


def test_the_limits_hold() -> None:
    with client_of(service_of(limits=Limits(characters=10, texts=2))) as client:
        for texts in (["a" * 11], ["a"] * 3):
            assert client.post("/api/v1/translate", json={"texts": texts}).status_code == 413
        assert client.post("/api/v1/translate", json={"texts": ["a" * 10] * 2}).status_code == 200


def test_the_description_tells_what_is_there(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    assert sorted((way.upper(), path) for path, ways in described["paths"].items() for way in ways) == sorted(
        (way, f"/api/v1/{path}") for way, path in OPERATIONS
    )
    codes = {
        code for path in described["paths"].values() for one in path.values() for code in one["responses"]
    }
    assert "422" not in codes and {"400", "401", "413", "429", "503"} <= codes


def test_health_readiness_and_metrics(client: TestClient) -> None:
    assert client.get("/api/v1/health").json() == client.get("/api/v1/ready").json() == {"status": "ok"}
    metrics = client.get("/metrics").text
    assert 'dragoman_requests_total{dialect="own",status="200"}' in metrics
    assert "dragoman_waiting_sentences 0\n" in metrics and 'le="+Inf"' in metrics


def test_sentences_of_a_document_are_asked_for_with_those_before_them() -> None:
    """What the memory has is still answered from it; sentences outside of documents are alone."""
    service = service_of(("en", "de"))
    shouting = shouter(service)
    shouting.context = ContextConfig(source=1)
    known = "The cat sat on the mat."
    file = {"file": ("a.txt", f"One here.\n\nTwo there.\n{known}\nThree.\n...\n".encode())}
    with client_of(service) as client:
        response = client.post("/api/v1/documents", data={"source": "en", "target": "de"}, files=file)
        said = "ONE HERE.\n\nTWO THERE.\nDie Katze saß auf der Matte.\nTHREE.\n...\n"
        assert response.content.decode() == said
        asked = {text.replace(SIGN, "|") for batch in shouting.batches for text in batch}
        assert asked == {"One here.", "One here.|Two there.", f"{known}|Three."}
        shouting.batches.clear()
        translations(client, texts=["One here. Two there."])
        assert sorted(text for batch in shouting.batches for text in batch) == [
            "Two there."
        ]  # the other is known

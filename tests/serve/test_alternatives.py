"""Other translations of a sentence, and how sure a model is of each word: with a real engine, and by hand."""

import math
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.engines.opening import open_export
from dragoman.serve.confidence import word_confidences
from dragoman.serve.service import Served, Service
from serve.exported import small_export
from serve.standin import client_of, service_of

PAIR = {"source": "en", "target": "de"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    translator = open_export(small_export(tmp_path_factory.mktemp("export") / "out"))
    with client_of(Service([Served(("en", "de"), translator)])) as found:
        yield found


def ask(client: TestClient, **asked: object) -> list[dict[str, object]]:
    response = client.post("/api/v1/alternatives", json={**PAIR, **asked})
    assert response.status_code == 200, response.text
    return response.json()


def test_what_a_translation_begins_with_is_kept(client: TestClient) -> None:
    found = ask(client, text="the cat sat", prefix="a red ", count=4)
    assert 1 <= len(found) <= 4
    assert all(str(one["text"]).startswith("a red") for one in found)
    assert len({one["text"] for one in found}) == len(found)


def test_every_word_of_a_real_translation_has_a_probability(client: TestClient) -> None:
    asked = {**PAIR, "texts": ["the cat sat on the mat"], "details": True}
    (sentence,) = client.post("/api/v1/translate", json=asked).json()["translations"][0]["sentences"]
    assert sentence["confidence"] is None or len(sentence["confidence"]) == len(sentence["text_words"])
    assert all(0 <= one <= 1 for one in sentence["confidence"] or ())


def test_those_with_a_word_of_their_own_come_first() -> None:
    with client_of(service_of()) as client:
        found = ask(client, text="one two three", prefix="ONE", count=3)
        assert [one["next"] for one in found] == ["A", "B", "C"]
        assert [one["text"] for one in ask(client, text="one two", count=2)] == ["ONE TWO", "ONE TWO #2"]
        for wrong in ({"count": 9}, {"count": 0}, {"target": "xx"}, {"beam": 3}):
            asked = {**PAIR, "text": "a", **wrong}
            assert client.post("/api/v1/alternatives", json=asked).status_code == 400


def hypothesis(text: str, pieces: list[str], scores: list[float]) -> Hypothesis:
    return Hypothesis(text, -1.0, -1.0, (), tuple(pieces), (*scores, -0.5), "stop")


def test_a_word_is_as_sure_as_its_least_probable_piece() -> None:
    found = word_confidences(
        hypothesis("Ein kleines Haus", ["▁Ein", "▁klein", "es", "▁Haus"], [-1, -2, -3, 0])
    )
    assert found == pytest.approx((math.exp(-1), math.exp(-3), 1.0))
    marked = word_confidences(hypothesis("Ein Haus", ["Ein▁", "Ha", "us▁"], [-1, -2, -3]))
    assert marked == pytest.approx((math.exp(-1), math.exp(-3)))
    spelt = word_confidences(
        hypothesis("a 日", ["▁a", "▁", "<0xE6>", "<0x97>", "<0xA5>"], [-1, 0, -2, -4, 0])
    )
    assert spelt == pytest.approx((math.exp(-1), math.exp(-4)))


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Ein <b>Haus</b>", ["▁Ein", "▁Haus"]),
        ("Ein Haus", ["▁Ein"]),
        ("Ein", ["▁Ein", "▁Haus"]),
        ("é", ["<0xC3>"]),
    ],
)
def test_where_pieces_do_not_make_up_the_text_nothing_is_told(text: str, pieces: list[str]) -> None:
    assert word_confidences(hypothesis(text, pieces, [-1.0] * len(pieces))) is None


def test_documents_as_jobs_tell_their_progress() -> None:
    with client_of(service_of()) as client:
        file = {"file": ("a.txt", b"One.\nTwo.\n")}
        started = client.post("/api/v1/documents", data={**PAIR, "wait": "false"}, files=file)
        assert started.status_code == 202
        path = f"/api/v1/documents/{started.json()['id']}"
        while (told := client.get(path).json())["status"] in ("waiting", "translating"):
            pass
        assert told == {"status": "done", "done": 2, "total": 2, "error": None}
        found = client.get(f"{path}/result")
        assert (found.text, found.headers["x-units-translated"]) == ("ONE.\nTWO.\n", "2")
        assert client.get(path).status_code == client.get(f"{path}/result").status_code == 404
        wrong = client.post(
            "/api/v1/documents", data={**PAIR, "wait": "false"}, files={"file": ("a.exe", b"x")}
        )
        path = f"/api/v1/documents/{wrong.json()['id']}"
        while client.get(path).json()["status"] != "error":
            pass
        assert client.get(f"{path}/result").status_code == 404
        assert client.delete(path).status_code == 200 and client.get(path).status_code == 404

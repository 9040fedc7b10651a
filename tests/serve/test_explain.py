"""Attention over HTTP: in the turn of the batches, for those who have any."""

import threading

from dragoman.errors import UserError
from dragoman.serve.explain import MOST_CHARACTERS, Attention, Explanation
from dragoman.serve.service import Served, Service
from serve.standin import Shouter, client_of

ASKED = {"text": "a cat", "source": "en", "target": "de"}
WEIGHTS = [[[0.25, 0.75], [1.0, 0.0]]]


def explains(text: str, translation: str | None) -> Explanation:
    if text == "long":
        raise UserError("text 1: too many tokens")
    assert threading.current_thread().name.startswith("translator")
    return Explanation(
        text=translation or text.upper(),
        source=[text, "</s>"],
        read=["<s>", "CAT"],
        written=["CAT", "</s>"],
        scores=[-0.5, -0.1],
        attentions=[Attention(kind="cross", layer=1, aligns=True, weights=WEIGHTS)],
    )


def test_attention_as_json_where_there_is_some() -> None:
    served = [Served(("en", "de"), Shouter(), explains=explains), Served(("de", "fr"), Shouter(), name="x")]
    with client_of(Service(served, pivot="de")) as client:
        found = client.post("/api/v1/explain", json=ASKED).json()
        assert found["text"] == "A CAT" and found["scores"] == [-0.5, -0.1]
        assert found["attentions"] == [{"kind": "cross", "layer": 1, "aligns": True, "weights": WEIGHTS}]
        given = client.post("/api/v1/explain", json={**ASKED, "translation": "eine Katze"})
        assert given.json()["text"] == "eine Katze"
        longest = client.post("/api/v1/explain", json={**ASKED, "text": "a" * MOST_CHARACTERS})
        assert longest.json()["text"] == "A" * MOST_CHARACTERS
        for change, said in (
            ({"source": "de", "target": "fr"}, "de→fr shows no attention: it is an export"),
            ({"target": "fr"}, "en→fr shows no attention"),
            ({"text": " "}, "expected a sentence of 1 to 1000 characters"),
            ({"text": "a" * (MOST_CHARACTERS + 1)}, "expected a sentence of 1 to 1000 characters"),
            ({"text": "long"}, "too many tokens"),
            ({"target": "xx"}, "xx is not supported"),
            ({"beam": 3}, "Extra inputs are not permitted"),
        ):
            response = client.post("/api/v1/explain", json={**ASKED, **change})
            assert response.status_code == 400 and said in response.json()["error"], response.text

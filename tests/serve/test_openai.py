"""OpenAI's dialect, as its clients ask and as they read what they are answered."""

import json
from typing import Any

import pytest

from serve.standin import client_of, echoes

USER = {"role": "user", "content": "hi"}


def streamed(client: Any, path: str, fields: dict[str, Any]) -> list[Any]:
    with client.stream("POST", path, json=fields) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        events = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    if path.startswith("/v1/"):
        assert events.pop() == "[DONE]"
    return [json.loads(event) for event in events]


def test_a_client_that_sends_all_its_fields_is_answered() -> None:
    fields = {
        **{"model": "a", "prompt": ["one two", "three"], "n": 2, "max_tokens": 5, "user": "me", "best_of": 1},
        **{
            "presence_penalty": 0.0,
            "frequency_penalty": 0,
            "logit_bias": {},
            "logprobs": None,
            "suffix": None,
        },
    }
    with client_of(None, models=echoes("a", "b")) as client:
        found = client.post("/v1/completions", json=fields).json()
        assert [(one["index"], one["text"]) for one in found["choices"]] == [
            *((0, " one two"), (1, " one two"), (2, " three"), (3, " three")),
        ]
        assert found["usage"] == {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9}
        assert [one["id"] for one in client.get("/v1/models").json()["data"]] == ["a", "b"]
        assert client.get("/v1/models/b").json()["id"] == "b"
        assert client.get("/v1/models/c").status_code == 404
        parts = streamed(client, "/v1/completions", {"model": "b", "prompt": "x y", "stream": True})
        assert [part["choices"][0]["text"] for part in parts] == [" x", " y", ""]
        assert [part["choices"][0]["finish_reason"] for part in parts] == [None, None, "stop"]
        vectors = client.post("/v1/embeddings", json={"model": "a", "input": ["xy", "z"]}).json()
        assert [one["embedding"] for one in vectors["data"]] == [[2.0, 0.1], [1.0, 0.1]]
        assert vectors["usage"] == {"prompt_tokens": 2, "total_tokens": 2}


def test_a_chat_is_lines_and_the_answer_is_the_next_one() -> None:
    parts = [{"type": "text", "text": "hi"}, {"type": "text", "text": " there"}]
    messages = [{"role": "system", "content": "be\n\nkind", "name": "x"}, {"role": "user", "content": parts}]
    with client_of(None, models=echoes("a")) as client:
        asked = {"model": "a", "messages": messages, "temperature": 0.5, "n": 2, "max_completion_tokens": 9}
        found = client.post("/v1/chat/completions", json=asked).json()
        assert found["object"] == "chat.completion" and found["usage"]["prompt_tokens"] == 4
        assert [one["message"] for one in found["choices"]] == [
            {"role": "assistant", "content": " be\nkind\nhi there\n", "refusal": None}
        ] * 2
        told = streamed(client, "/v1/chat/completions", {"model": "a", "messages": messages, "stream": True})
        assert {part["object"] for part in told} == {"chat.completion.chunk"}
        deltas = [part["choices"][0]["delta"] for part in told]
        assert deltas[0]["role"] == "assistant" and "role" not in deltas[1] and deltas[-1] == {}
        assert "".join(delta.get("content", "") for delta in deltas) == " be\nkind\nhi there\n"
        assert told[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("path", "fields", "status", "message"),
    [
        ("completions", {"model": "a", "prompt": "x", "logprobs": 6}, 400, "logprobs"),
        ("completions", {"model": "a", "prompt": "x", "logprobs": 1, "echo": True}, 400, "leave echo out"),
        (
            "completions",
            {"model": "a", "prompt": "x", "logprobs": 1, "stream": True},
            400,
            "without logprobs",
        ),
        ("completions", {"model": "a", "prompt": "x", "tools": True}, 400, "'tools': this server cannot"),
        ("completions", {"model": "a", "prompt": []}, 400, "expected a text or several"),
        ("completions", {"model": "a", "prompt": [1, 2]}, 400, "prompt"),
        ("completions", {"prompt": "x"}, 400, "model"),
        ("completions", {"model": "c", "prompt": "x"}, 404, "it is not served; expected a"),
        ("completions", {"model": "a", "prompt": ["x", "y"], "stream": True}, 400, "one prompt"),
        (
            "completions",
            {"model": "a", "prompt": "x", "stop": ["y"] * 9},
            400,
            "stop: at most 8 texts, found 9",
        ),
        ("completions", {"model": "a", "prompt": "x", "stop": "y" * 5001}, 413, "stop: a text exceeds"),
        ("embeddings", {"model": "a", "input": "x", "dimensions": 5}, 400, "'dimensions'"),
        ("chat/completions", {"model": "a", "messages": []}, 400, "messages"),
        (
            "chat/completions",
            {"model": "a", "messages": [{"role": "tool", "content": "x"}]},
            400,
            "'system', 'developer'",
        ),
        ("chat/completions", {"model": "a", "messages": [USER | {"content": " "}]}, 400, "expected text"),
        ("chat/completions", {"model": "a", "messages": [USER], "top_logprobs": 2}, 400, "set logprobs"),
        ("chat/completions", {"model": "a", "messages": [USER], "tools": [{}]}, 400, "'tools': this server"),
        ("chat/completions", {"model": "a", "messages": [USER], "n": 2, "stream": True}, 400, "one answer"),
        ("chat/completions", {"model": "b", "messages": [USER]}, 404, "it is not served"),
    ],
)
def test_what_cannot_be_answered_is_told(
    path: str, fields: dict[str, Any], status: int, message: str
) -> None:
    with client_of(None, models=echoes("a")) as client:
        response = client.post(f"/v1/{path}", json=fields)
    error = response.json()["error"]
    assert response.status_code == status and message in error["message"]
    assert error["type"] == "invalid_request_error"

"""A question to the studio, without a browser."""

from typing import Any

from starlette.testclient import TestClient

TEXT = "abc de ab"


def ask(client: TestClient, path: str, status: int = 200, **body: Any) -> Any:
    answer = client.post(f"/api/studio/{path}", json={"run": "transformer", "text": TEXT, **body})
    assert answer.status_code == status, answer.text
    return answer.json()

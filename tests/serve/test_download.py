"""Large answers go out in pieces, at the pace of whoever reads them; names of files are letters, no code."""

import asyncio
import re
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from dragoman.serve.documents import name_with_suffix
from dragoman.serve.download import PIECE, Download, InPieces

SCOPE: dict[str, Any] = {"type": "http", "method": "GET", "path": "/"}


async def nothing() -> dict[str, Any]:
    return {"type": "http.disconnect"}


def test_who_does_not_read_holds_one_piece() -> None:
    """The second piece is not made before the first is taken, and the end is told if nobody takes it."""
    content = bytes(16 << 20)
    sent: list[dict[str, Any]] = []
    ended: list[bool] = []

    async def story() -> None:
        async def send(message: Any) -> None:
            sent.append(message)
            if message["type"] == "http.response.body":
                await asyncio.Event().wait()  # the client reads nothing

        response = InPieces(content, "application/json", ended=lambda: ended.append(True))
        task = asyncio.ensure_future(response(SCOPE, nothing, send))
        while len(sent) < 2:
            await asyncio.sleep(0)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not ended
        task.cancel()
        await asyncio.wait({task})

    asyncio.run(story())
    start, piece = sent
    assert (b"content-length", b"%d" % len(content)) in start["headers"]
    assert len(piece["body"]) == PIECE and piece["more_body"] and ended == [True]


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 5])
def test_all_of_it_comes(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    received: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        received.append(message)

    asyncio.run(InPieces(content, "text/plain")(SCOPE, nothing, send))
    assert b"".join(one["body"] for one in received[1:]) == content
    assert [one["more_body"] for one in received[1:]] == [True] * (len(received) - 2) + [False]


NAMES = [
    'a"; filename="b.html', "a\r\nSet-Cookie: x=1\r\n\r\n<script>", "<img src=x onerror=alert(1)>",
    "../../etc/x", "a\\b\\c", "naïve – 船", "a\0b", "a;b", "'", "\u202etxt.exe", "a" * 5000,
]  # fmt: skip


@given(st.one_of(st.sampled_from(NAMES), st.text(max_size=40)))
def test_a_name_in_a_header_is_letters_and_percent_signs(name: str) -> None:
    plain = name_with_suffix(name.encode("utf-8", "replace").decode("utf-8"), b"")
    assert "/" not in plain and plain not in ("", ".", "..")
    headers = dict(Download(b"", plain).raw_headers)
    value = headers[b"content-disposition"].decode("latin-1")
    assert re.fullmatch(r"attachment; filename\*=UTF-8''[A-Za-z0-9%._~-]+", value)
    assert unquote(value.partition("''")[2]) == plain
    assert headers[b"content-type"] == b"application/octet-stream"


@pytest.mark.parametrize("name", [r"<img src=x onerror=alert(1)>.txt", r"..%2F..%2Fa.txt", r"a'b;c.txt"])
def test_hostile_names_of_uploads(client: TestClient, name: str) -> None:
    body = (
        f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\nhi\r\n'
        '--x\r\nContent-Disposition: form-data; name="source"\r\n\r\nen\r\n'
        '--x\r\nContent-Disposition: form-data; name="target"\r\n\r\nde\r\n--x--\r\n'
    )
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    response = client.post("/api/v1/documents", content=body.encode(), headers=kind)
    assert response.content == b"HI" and response.headers["x-content-type-options"] == "nosniff"
    header = response.headers["content-disposition"]
    assert header.startswith("attachment; filename*=UTF-8''")
    assert not set("<>\"; /'") & set(header.partition("''")[2])
    stored = client.post("/translate_file", content=body.encode(), headers=kind).json()["translatedFileUrl"]
    assert re.fullmatch(r"http://127\.0\.0\.1/download_file/[0-9a-f]{32}\.txt", stored)
    assert client.get(stored).headers["content-disposition"] == header


def test_an_error_about_a_file_is_json_whatever_its_name_is(client: TestClient) -> None:
    sent = {"source": "en", "target": "de"}
    response = client.post("/api/v1/documents", data=sent, files={"file": ("<b>x.exe", b"a")})
    assert response.status_code == 400 and response.headers["content-type"] == "application/json"
    assert response.json()["error"].startswith("<b>x.exe: expected a document")

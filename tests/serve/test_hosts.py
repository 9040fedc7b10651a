"""Who may ask without a key: no page but our own, and nobody by a name that is made to point here.

The same gate stands before the service and the studio.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import Options
from dragoman.serve.keys import Keys
from dragoman.studio.app import build as build_studio
from dragoman.studio.subjects import Subjects
from serve.standin import ADDRESS, client_of, service_of

KEY = "the-key-of-a-healthy-client"
SERVICE, STUDIO = "/languages", "/api/studio/runs"

ADDRESSES = {
    "127.0.0.1": 200,
    "127.0.0.1:5000": 200,
    "localhost": 200,
    "LocalHost:5000": 200,
    " localhost ": 200,
    "[::1]": 200,
    "[::1]:5000": 200,
    "10.0.0.1:80": 200,
    "": 421,
    "evil.example": 421,
    "evil.example:5000": 421,
    "localhost.evil.example": 421,
    "127.0.0.1.evil.example": 421,
    "127.0.0.1@evil.example": 421,
    "evil.example#127.0.0.1": 421,
    "localhost.": 421,
    "127.1": 421,
    "0x7f000001": 421,
    "2130706433": 421,
    "[::1": 421,
    "[::1]evil.example": 421,
    "127.0.0.1:evil": 421,
    "[evil.example]": 421,
    "127.0.0.1, evil.example": 421,
}
"""What is in `Host`, and the answer."""

PAGES: list[tuple[dict[str, str], int]] = [
    ({}, 200),
    ({"Origin": "http://127.0.0.1:5000"}, 200),
    ({"Origin": "HTTP://127.0.0.1:5000"}, 200),
    ({"Sec-Fetch-Site": "same-origin"}, 200),
    ({"Sec-Fetch-Site": "none"}, 200),
    ({"Origin": "https://evil.example"}, 403),
    ({"Origin": "http://127.0.0.1"}, 403),
    ({"Origin": "http://127.0.0.1:5001"}, 403),
    ({"Origin": "http://localhost:5000"}, 403),
    ({"Origin": "http://127.0.0.1:5000.evil.example"}, 403),
    ({"Origin": "http://evil.example/127.0.0.1:5000"}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": ""}, 403),
    ({"Origin": "127.0.0.1:5000"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Sec-Fetch-Site": "something new"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
    ({"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Origin": "http://127.0.0.1:5000"}, 403),
]
"""What a browser says of the page that asks 127.0.0.1:5000, and the answer."""


class NoRuns:
    unreadable: ClassVar[dict[str, str]] = {}
    tests: ClassVar[dict[str, Any]] = {}

    def describe(self) -> list[Any]:
        return []


@pytest.fixture(scope="module", params=[SERVICE, STUDIO])
def asked(request: pytest.FixtureRequest) -> Iterator[tuple[TestClient, str]]:
    studio = TestClient(build_studio(cast(Subjects, NoRuns())), base_url=ADDRESS)
    with client_of(service_of()) if request.param == SERVICE else studio as client:
        yield client, request.param


@pytest.mark.parametrize("host", ADDRESSES)
def test_names_in_host(asked: tuple[TestClient, str], host: str) -> None:
    client, path = asked
    assert client.get(path, headers={"Host": host}).status_code == ADDRESSES[host]


@pytest.mark.parametrize(("headers", "status"), PAGES)
def test_pages_elsewhere(asked: tuple[TestClient, str], headers: dict[str, str], status: int) -> None:
    client, path = asked
    headers = {"Host": "127.0.0.1:5000", **headers}
    for method in ("GET", "HEAD"):
        assert client.request(method, path, headers=headers).status_code == status
    if status == 403:
        assert client.post("/translate", headers=headers, data={"q": "a"}).status_code == 403
        assert client.options(path, headers=headers).status_code == 403


def test_a_link_to_the_page_may_be_anywhere(asked: tuple[TestClient, str]) -> None:
    client, path = asked
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    page = client.get("/", headers=followed)
    assert page.status_code == 200 and page.headers["x-frame-options"] == "DENY"
    assert client.get(path, headers=followed).status_code == 403
    head = client.head("/", headers=followed)
    assert head.status_code == 200 and not head.content
    assert "access-control-allow-origin" not in page.headers


def test_with_keys_any_page_may_ask() -> None:
    with client_of(service_of(), Options(keys=Keys([KEY]))) as client:
        assert client.options(SERVICE).headers["access-control-allow-origin"] == "*"
        named = {"Host": "translate.example", "Origin": "https://other.example"}
        named |= {"Sec-Fetch-Site": "cross-site"}
        assert client.get(SERVICE, headers={**named, "X-API-Key": KEY}).status_code == 200
        assert client.get(SERVICE, headers=named).status_code == 400


def test_the_address_that_is_printed_can_be_opened() -> None:
    from dragoman.serve.run import address_to_open

    told = {
        host: address_to_open(host) for host in ("127.0.0.1", "localhost", "0.0.0.0", "::", "::1", "10.0.0.7")
    }
    assert list(told.values()) == ["127.0.0.1", "localhost", "127.0.0.1", "[::1]", "[::1]", "10.0.0.7"]

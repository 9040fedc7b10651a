"""A service of three directions, and a client that asks it without a network."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from serve.standin import ALL, client_of, service_of


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with client_of(service_of(("en", "de"), ("de", "en"), ("fr", "en"), pivot="en")) as found:
        yield found


@pytest.fixture(autouse=True)
def nobody_waits() -> Iterator[None]:
    """A test that fails leaves no thread that waits for ever."""
    yield
    for one in ALL:
        one.go_on.set()

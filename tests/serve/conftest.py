"""A service of three directions, and a client that asks it without a network."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from serve.standin import client_of, service_of


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with client_of(service_of(("en", "de"), ("de", "en"), ("fr", "en"), pivot="en")) as found:
        yield found

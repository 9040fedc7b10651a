"""A service of three directions, and a client that asks it without a network."""

import resource
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from serve.standin import ALL, client_of, service_of


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with client_of(service_of(("en", "de"), ("de", "en"), ("fr", "en"), pivot="en")) as found:
        yield found


@pytest.fixture
def many_files() -> Iterator[None]:
    """Both ends of some hundred connections are in this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip("this machine allows fewer than 2,048 open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(autouse=True)
def nobody_waits() -> Iterator[None]:
    """A test that fails leaves no thread that waits for ever."""
    yield
    for one in ALL:
        one.go_on.set()

"""Whatever is sent that our description of the API allows, the answer is as the description says."""

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dragoman.serve.app import build
from serve.standin import service_of

schemathesis = pytest.importorskip("schemathesis", minversion="4.0")
HOST = {"Host": "127.0.0.1"}
PATHS = ["health", "ready", "languages", "detect", "translate", "memory", "documents", "explain"]


@pytest.mark.parametrize("path", PATHS)
def test_answers_are_as_described(path: str) -> None:
    """Statuses, types and bodies. That a language is not served is no fault of the description."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    schema = schemathesis.openapi.from_asgi("/openapi.json", build(service_of()), headers=HOST)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert {one.path for one in operations} == {f"/api/v1/{name}" for name in PATHS}
    (operation,) = [one for one in operations if one.path == f"/api/v1/{path}"]
    held = [not_a_server_error, checks.status_code_conformance, checks.content_type_conformance]
    held += [checks.response_schema_conformance]

    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy())
    def holds(case) -> None:  # type: ignore[no-untyped-def]
        case.call_and_validate(headers=HOST, checks=held)

    holds()

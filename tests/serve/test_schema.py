"""Whatever is sent that our description of the API allows, the answer is as the description says."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from dragoman.serve.app import build
from dragoman.serve.corrections import Corrections
from serve.standin import echoes, service_of

schemathesis = pytest.importorskip("schemathesis", minversion="4.0")
HOST = {"Host": "127.0.0.1"}
OPERATIONS = [
    *(("GET", name) for name in ("health", "ready", "languages", "memory", "corrections")),
    *(
        ("POST", name)
        for name in ("detect", "translate", "documents", "explain", "alternatives", "corrections")
    ),
    ("DELETE", "corrections"),
    ("GET", "documents/{id}"),
    ("DELETE", "documents/{id}"),
    ("GET", "documents/{id}/result"),
]
OF_MODELS = [("GET", "models"), *(("POST", name) for name in ("predict", "generate", "fill", "embed"))]


@pytest.mark.parametrize(("method", "path"), OPERATIONS + OF_MODELS)
def test_answers_are_as_described(tmp_path: Path, method: str, path: str) -> None:
    """Statuses, types and bodies. That a language is not served is no fault of the description."""
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    service = service_of()
    service.corrections = Corrections(service.limits, tmp_path / "corrections.tmx")
    schema = schemathesis.openapi.from_asgi(
        "/openapi.json", build(service, models=echoes("echo")), headers=HOST
    )
    operations = {
        (one.method.upper(), one.path): one for one in (o.ok() for o in schema.get_all_operations())
    }
    assert set(operations) == {(way, f"/api/v1/{name}") for way, name in OPERATIONS + OF_MODELS}
    operation = operations[method, f"/api/v1/{path}"]
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

"""What a client says is its own: no text, term or key of it is in a log, a metric or an error."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dragoman.serve.app import Options, build
from dragoman.serve.corrections import Corrections
from dragoman.serve.keys import Guesses, Keys
from dragoman.serve.limits import Limits
from fuzz_serve import KEY
from serve.standin import ADDRESS, client_of, service_of, shouter

CANARY = "Kanarienvogel7391"
WRONG_KEY = f"key-{CANARY}-that-is-wrong"
PAIR = {"source": "en", "target": "de"}
DEEPL = {"source_lang": "en", "target_lang": "de"}
ENTRIES = f"{CANARY}\t{CANARY}"

Asked = tuple[str, str, dict[str, Any]]
RIGHT: list[Asked] = [
    ("POST", "/api/v1/translate", {"json": {**PAIR, "texts": [CANARY], "details": True, "memory": True}}),
    ("POST", "/api/v1/translate", {"json": {**PAIR, "texts": [f"<b>{CANARY}</b>"], "format": "html"}}),
    ("POST", "/api/v1/translate", {"json": {**PAIR, "texts": ["a"], "glossary": {CANARY: CANARY}}}),
    ("POST", "/api/v1/detect", {"json": {"text": CANARY}}),
    ("GET", "/api/v1/memory", {"params": {**PAIR, "text": CANARY}}),
    ("POST", "/api/v1/documents", {"data": PAIR, "files": {"file": (f"{CANARY}.txt", CANARY.encode())}}),
    ("POST", "/translate", {"json": {**PAIR, "q": CANARY}}),
    ("GET", "/translate", {"params": {"langpair": "en|de", "q": CANARY}}),
    ("POST", "/detect", {"data": {"q": CANARY}}),
    ("POST", "/translate_file", {"data": PAIR, "files": {"file": (f"{CANARY}.txt", CANARY.encode())}}),
    ("GET", "/identifyLang", {"params": {"q": CANARY}}),
    ("GET", f"/tm/en/de/unit/{CANARY}", {}),
    ("POST", "/api/v1/alternatives", {"json": {**PAIR, "text": CANARY, "prefix": CANARY}}),
    ("POST", "/api/v1/corrections", {"json": {**PAIR, "text": CANARY, "translation": CANARY}}),
    ("POST", "/suggest", {"data": {**PAIR, "q": CANARY, "s": CANARY}}),
    ("POST", "/v2/translate", {"json": {**DEEPL, "text": [CANARY], "tag_handling": "xml"}}),
    ("POST", "/v2/document", {"data": DEEPL, "files": {"file": (f"{CANARY}.txt", CANARY.encode())}}),
    ("POST", "/v2/glossaries", {"json": {**DEEPL, "name": CANARY, "entries": ENTRIES}}),
    ("POST", "/v3/glossaries", {"json": {"name": CANARY, "dictionaries": [{**DEEPL, "entries": ENTRIES}]}}),
]
WRONG: list[Asked] = [
    ("POST", "/api/v1/translate", {"json": {**PAIR, "texts": [CANARY], "beam": CANARY}}),
    ("POST", "/api/v1/translate", {"json": {**PAIR, "texts": CANARY}}),
    ("POST", "/api/v1/translate", {"json": {**PAIR, "texts": [CANARY * 1000]}}),
    ("POST", "/api/v1/translate", {"json": {**PAIR, "texts": ["a"], "glossary": {CANARY: 1}}}),
    ("POST", "/api/v1/translate", {"json": {**PAIR, "texts": ["a"], "glossary": {CANARY: CANARY * 99}}}),
    ("POST", "/api/v1/translate", {"content": f'{{"texts": ["{CANARY}'.encode()}),
    ("POST", "/api/v1/explain", {"json": {**PAIR, "text": CANARY}}),
    ("POST", "/api/v1/corrections", {"json": {**PAIR, "text": CANARY, "translation": f"{CANARY}\1"}}),
    ("DELETE", "/api/v1/corrections", {"json": {**PAIR, "text": f"{CANARY} unknown"}}),
    ("GET", f"/api/v1/documents/{CANARY}", {}),
    ("GET", "/api/v1/memory", {"params": {**PAIR, "text": CANARY, "least": CANARY}}),
    ("POST", "/translate", {"json": {**PAIR, "q": [CANARY, 1]}}),
    ("POST", "/translate", {"json": {**PAIR, "q": f"{CANARY}\0"}}),
    ("POST", "/translate", {"content": f"q={CANARY}%".encode()}),
    ("POST", "/v2/translate", {"json": {**DEEPL, "text": [CANARY], "formality": "more"}}),
    ("POST", "/v2/glossaries", {"json": {**DEEPL, "name": "g", "entries": f"{ENTRIES}\n{ENTRIES}"}}),
    ("POST", "/v2/glossaries", {"json": {**DEEPL, "name": "g", "entries": CANARY}}),
    ("POST", "/v2/glossaries", {"json": {**DEEPL, "name": "g", "entries": f"{CANARY} a\tb\n{CANARY}  a\tc"}}),
    ("POST", f"/v2/document/{CANARY}", {"json": {"document_key": CANARY}}),
    ("GET", f"/v2/glossaries/{CANARY}", {}),
    ("GET", f"/nothing/{CANARY}", {"params": {"q": CANARY}}),
    ("PUT", f"/translate?q={CANARY}", {}),
]


@contextmanager
def written(capfd: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """Whatever is logged by anybody on this side, at the most verbose level, and what is printed."""
    lines: list[str] = []

    class Everything(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if not record.name.startswith(("httpx", "httpcore")):  # the client's own
                told = logging.Formatter("%(name)s %(message)s %(pathname)s").format(record)
                lines.append(f"{told} {record.args!r} {record.__dict__!r}")

    handler, root = Everything(level=1), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        out, err = capfd.readouterr()
        lines += [out, err]


def ask(client: TestClient, asked: Asked, **headers: str) -> Any:
    method, path, how = asked
    return client.request(method, path, headers=headers, **how)


@pytest.mark.parametrize("keyed", [False, True])
def test_nothing_that_is_said_is_written_down(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keyed: bool
) -> None:
    monkeypatch.setattr(Guesses, "DELAY_S", 0.0)
    options = Options(Keys([KEY, CANARY * 2]) if keyed else None, tmp_path / "glossaries.json")
    service = service_of(("en", "de"), ("de", "en"))
    service.corrections = Corrections(service.limits, tmp_path / "corrections.tmx")
    with written(capfd) as lines, client_of(service, options) as client:
        client.headers.update({"Authorization": f"Bearer {CANARY * 2}"} if keyed else {})
        for asked in RIGHT:
            assert ask(client, asked).status_code < 300, asked
        errors = [ask(client, asked) for asked in WRONG]
        metrics = client.get("/metrics").text
        if keyed:
            del client.headers["Authorization"]
            for headers in ({"Authorization": f"DeepL-Auth-Key {WRONG_KEY}"}, {"X-API-Key": WRONG_KEY}):
                errors += [ask(client, asked, **headers) for asked in RIGHT]
            errors += [ask(client, ("POST", "/translate", {"data": {"q": "a", "api_key": WRONG_KEY}}))]
    assert len(lines) > len(RIGHT) + len(WRONG)
    assert [line for line in lines if CANARY in line] == []
    assert CANARY not in metrics
    for response in errors:
        assert 400 <= response.status_code < 500, response.text
        assert CANARY not in response.text


def test_a_fault_is_written_down_without_what_it_says(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An exception of a translator, and one of a document: both hold text."""
    service = service_of()
    shouter(service).error = RuntimeError(f"could not translate {CANARY}")
    with written(capfd) as lines, client_of(service, Options(glossaries=tmp_path / "g.json")) as client:
        told = client.post("/api/v1/translate", json={**PAIR, "texts": [f"bad {CANARY}"]})
        assert told.status_code == 500 and CANARY not in told.text
        file = {"file": ("a.txt", f"bad {CANARY}".encode())}
        sent = client.post("/v2/document", data=DEEPL, files=file).json()
        key = {"document_key": sent["document_key"]}
        while (status := client.post(f"/v2/document/{sent['document_id']}", json=key).json())["status"] in (
            "queued",
            "translating",
        ):
            pass
        assert status["error_message"] == "The document could not be translated"
    assert any("RuntimeError at " in line for line in lines)
    assert [line for line in lines if CANARY in line] == []


def test_an_object_that_is_shown_shows_no_secret() -> None:
    """Whoever writes a job or the keys into a log by mistake."""
    from dragoman.serve.jobs import DocumentJob

    job = DocumentJob(f"{CANARY}.txt", 3, 3, result=CANARY.encode())
    assert CANARY not in repr(job) and job.key not in repr(job) and job.id not in repr(job)
    assert CANARY not in repr(Keys([CANARY])) and CANARY not in repr(vars(Keys([CANARY])))
    with TestClient(build(service_of(limits=Limits()))) as client:
        assert ADDRESS not in client.get("/metrics").text

"""What the page asks for, without a browser: held against the library, and against bad requests."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from dragoman.decode.rules.constraints import Constraints
from dragoman.decode.search.job import Job
from dragoman.errors import UserError
from dragoman.probe.attention_steps import steps_of
from dragoman.probe.heads import importance, mask_heads
from dragoman.probe.inputs import inputs_of
from dragoman.probe.inside import look_inside
from dragoman.probe.vectors import vectors_of
from dragoman.runs.records import read_samples
from dragoman.studio.api import Worker, router_of
from dragoman.studio.app import POLICY, _files, build
from dragoman.studio.limits import MOST_PIECES
from dragoman.studio.packing import MOST_WEIGHTS
from dragoman.studio.subject import Subject
from dragoman.studio.subjects import Subjects
from studio.asking import TEXT, ask


def weights_of(entry: dict[str, Any], rows: int, columns: int) -> np.ndarray:
    found = np.frombuffer(base64.b64decode(entry["weights"]), dtype=np.uint8)
    return found.reshape(entry["heads"], rows, columns) / 255


def test_the_runs_are_told(client: TestClient) -> None:
    found = {run["name"]: run for run in client.get("/api/studio/runs").json()["runs"]}
    assert list(found) == ["transformer", "lstm", "gpt", "markov"]
    assert found["transformer"]["attentions"] == 6 and found["lstm"]["attentions"] == 0
    assert found["gpt"]["generates"] and not found["transformer"]["generates"]
    assert {"0000004", "0000008", "0000012"} <= set(found["transformer"]["checkpoints"])
    assert found["lstm"]["text"] == TEXT


def test_the_first_sentence_is_one_of_the_validation_set(runs: Path) -> None:
    (told,) = Subjects([runs / "transformer"], device="cpu").describe()
    assert set(told["text"]) <= set("abcde ")


def test_translations_are_those_of_the_search(client: TestClient, subject: Subject) -> None:
    found = ask(client, "translate", beam=3, n_best=3, alpha=0.5)
    own = subject.translator.hypotheses([TEXT], search=subject.settings(3, 3, 0.5))[0]
    assert [each["text"] for each in found["hypotheses"]] == [each.text for each in own]
    assert [each["score"] for each in found["hypotheses"]] == pytest.approx([h.score for h in own], abs=1e-4)
    scores = [piece["score"] for piece in found["pieces"]]
    assert scores == pytest.approx(list(own[0].token_scores), abs=2e-4)
    for piece in found["pieces"]:
        others = [other["score"] for other in piece["others"]]
        assert others == sorted(others, reverse=True)
        assert piece["score"] <= others[0] + 1e-4


def test_a_forced_piece_stays(client: TestClient, subject: Subject) -> None:
    free = ask(client, "translate", beam=2)
    other = free["pieces"][0]["others"][3]["id"]
    found = ask(client, "translate", beam=2, n_best=2, head=[other])
    source = (*subject.source(TEXT), subject.tokenizers[0].eos_id)
    job = Job(source, Constraints(head=(other,), spelling=subject.tokenizers[1].spelling))
    own = subject.translator.search_jobs([job], subject.settings(2, 2, 1.0))[0]
    assert [each["ids"] for each in found["hypotheses"]] == [list(each.tokens) for each in own]
    assert all(each["ids"][0] == other for each in found["hypotheses"])
    told = ask(client, "positions", target=found["hypotheses"][0]["ids"])
    assert told["pieces"] == found["pieces"]


def test_weights_are_those_that_were_recorded(client: TestClient, subject: Subject) -> None:
    found = ask(client, "attention", beam=2)
    seen = look_inside(subject.translator.model, subject.source(TEXT), found["ids"])
    assert len(found["attentions"]) == len(seen.attentions) == 6
    for entry, own in zip(found["attentions"], seen.attentions, strict=True):
        assert (entry["module"], entry["kind"], entry["layer"]) == (own.module, own.kind, own.layer)
        weights = weights_of(entry, *own.weights.shape[1:])
        assert np.abs(weights - own.weights.numpy()).max() <= 0.5 / 255 + 1e-6
        assert (weights[own.weights.numpy() == 0] == 0).all()
    for side in found["sides"].values():
        assert len(side["pieces"]) == len(side["shares"])
        assert {word for row in side["shares"] for word, _ in row} == set(range(len(side["words"])))
    assert found["start"]["module"] in [entry["module"] for entry in found["attentions"]]


def test_a_head_is_switched_off(client: TestClient, subject: Subject) -> None:
    free = ask(client, "attention", beam=1)
    module, model = free["attentions"][-1]["module"], subject.translator.model
    found = ask(client, "attention", beam=1, target=free["ids"], masked={module: [1]})
    with mask_heads(model, {module: [1]}):
        without = look_inside(model, subject.source(TEXT), free["ids"])
        anew = subject.search(TEXT, subject.settings(1, 1, 1.0))[0]
    assert found["effect"]["after"] == pytest.approx(without.log_prob, abs=1e-3)
    assert found["effect"]["anew"]["text"] == anew.text
    assert found["scores"] == free["scores"]
    assert ask(client, "attention", beam=1) == free  # nothing of it stays
    falls = ask(client, "heads", target=free["ids"])["falls"]
    own = importance(model, subject.source(TEXT), free["ids"])
    assert falls[module] == pytest.approx(own[module], abs=1e-3)


def test_the_tree_is_that_of_the_search(client: TestClient, subject: Subject) -> None:
    found = ask(client, "beam", beam=3, alpha=0.7)
    own = subject.translator.hypotheses([TEXT], search=subject.settings(3, 3, 0.7, record=True))[0]
    assert own[0].trace is not None
    assert [len(step) for step in found["steps"]] == [len(step) for step in own[0].trace.steps]
    for final, hypothesis in zip(found["finals"], own, strict=True):
        assert final["normalised"] == pytest.approx(hypothesis.score, abs=1e-4)
        assert final["raw"] == pytest.approx(hypothesis.log_prob, abs=1e-4)
        pieces = [found["steps"][step][at]["piece"] for step, at in enumerate(final["path"])]
        assert pieces == [*hypothesis.pieces, "</s>"]
    assert {each["fate"] for step in found["steps"] for each in step} >= {"kept", "pruned"}


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_six_steps_are_the_models_own(kind: str, client: TestClient, subject: Subject) -> None:
    shown = ask(client, "attention", beam=1)
    entry = next(each for each in shown["attentions"] if each["kind"] == kind)
    found = ask(client, "head", target=shown["ids"], module=entry["module"], head=1, position=1)
    model, pair = subject.translator.model, (subject.source(TEXT), shown["ids"])
    own = steps_of(vectors_of(model, *pair)[entry["module"]], 1, 1)
    assert found["weights"] == pytest.approx(own.weights.tolist(), abs=1e-4)
    assert found["summed"] == pytest.approx(own.summed.tolist(), abs=1e-4)
    assert [score is None for score in found["scaled"]] == np.isneginf(own.scaled).tolist()
    assert found["visible"][1] == np.isfinite(own.scaled).tolist()
    assert found["matrix"][1] == pytest.approx(own.weights.tolist(), abs=1e-3)
    inputs = inputs_of(model, *pair, entry["module"])
    if kind == "encoder":
        assert inputs.embedded is not None and inputs.position is not None
        np.testing.assert_allclose(inputs.embedded + inputs.position, inputs.read, atol=1e-6)
    assert found["inputs"]["read"] == pytest.approx(inputs.read[1].tolist(), abs=1e-3)


def test_long_sentences_come_kind_by_kind(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.studio.packing.MOST_WEIGHTS", 10)
    for kind in (None, "encoder"):
        found = ask(client, "attention", beam=1, kind=kind)
        sent = {each["kind"] for each in found["attentions"] if each["weights"] is not None}
        assert sent == {kind or "cross"}
    assert MOST_WEIGHTS / 3 * 4 < 1e6  # as base64


@pytest.mark.parametrize("run", ["lstm", "gpt", "markov"])
def test_models_of_other_kinds(run: str, client: TestClient) -> None:
    best = ask(client, "translate", run=run, beam=2)["hypotheses"][0]
    found = ask(client, "attention", run=run, beam=2)
    assert found["ids"] == best["ids"]
    if run == "lstm":
        assert found["attentions"] == [] and found["start"] is None
        error = ask(client, "heads", 400, run=run, target=best["ids"])["error"]
        assert "no attention whose heads" in error
    else:
        entry = found["attentions"][0]
        assert entry["maskable"] == (run == "gpt")
        assert run == "markov" or best["text"].startswith(TEXT)
        told = ask(client, "head", run=run, target=best["ids"], module=entry["module"], head=0, position=2)
        assert sum(told["weights"]) == pytest.approx(1, abs=1e-3)
    assert ask(client, "beam", run=run, beam=2)["finals"][0]["text"] == best["text"]


def test_other_checkpoints(client: TestClient) -> None:
    first = ask(client, "attention", beam=1, checkpoint="0000004")
    last = ask(client, "attention", beam=1, checkpoint="0000012", target=first["ids"])
    assert first["attentions"][0]["weights"] != last["attentions"][0]["weights"]
    assert "not there any more" in ask(client, "attention", 400, checkpoint="../../x")["error"]


def test_training_goes_on_from_what_is_known(client: TestClient, runs: Path) -> None:
    asked = {"run": "transformer"}
    found = client.post("/api/studio/training", json=asked).json()
    assert {point["kind"] for point in found["points"]} == {"train", "valid"}
    assert [sample["update"] for sample in found["samples"]] == [6, 12]
    assert found["samples"][0]["samples"][0].keys() == {"src", "tgt", "out"}
    again = client.post("/api/studio/training", json=asked | {"since": found["records"]}).json()
    assert again["points"] == [] and again["samples"] is None and again["records"] == found["records"]
    assert client.post("/api/studio/training", json=asked | {"since": 999}).json()["since"] == 0
    assert read_samples(runs / "transformer" / "samples.jsonl") == found["samples"]


@pytest.mark.parametrize(
    ("path", "body", "part"),
    [
        ("translate", {"text": " "}, "it is blank"),
        ("translate", {"text": "a" * 2001}, "at most 2000 characters"),
        ("translate", {"text": "x" * (MOST_PIECES + 9)}, f"at most {MOST_PIECES} pieces"),
        ("translate", {"run": "other"}, "'other' was not opened"),
        ("translate", {"beam": 17}, "less than or equal to 16"),
        ("translate", {"beam": "2"}, "valid integer"),
        ("translate", {"alpha": -1.0}, "greater than or equal to 0"),
        ("translate", {"head": [1]}, "no piece that can be written"),
        ("translate", {"head": [10**9]}, "no piece that can be written"),
        ("translate", {"colour": 1}, "Extra inputs are not permitted"),
        ("attention", {"masked": {"nothing": [0]}}, "no attention 'nothing'"),
        ("attention", {"masked": {"decoder.layers.0.cross_attention": [9]}}, "has no head 9"),
        ("attention", {"kind": "odd"}, "'encoder', 'decoder', 'cross', 'joint' or 'copy'"),
        ("head", {"target": [], "module": "odd", "head": 0, "position": 0}, "has no 'odd'"),
        (
            "head",
            {"target": [], "module": "encoder.layers.0.self_attention", "head": 0, "position": 99},
            "99 is not there",
        ),
    ],
)
def test_bad_requests_are_refused_in_one_sentence(
    path: str, body: dict[str, Any], part: str, client: TestClient
) -> None:
    assert part in ask(client, path, 400, **body)["error"]


def test_the_page_and_its_files(client: TestClient) -> None:
    page = client.get("/")
    assert page.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY and "script-src 'self'" in POLICY
    assert client.get("/assets/app.js").headers["content-type"].startswith("text/javascript")
    for name in ("nothing.js", "..%2fapp.py", "%2e%2e/subject.py"):
        assert client.get(f"/assets/{name}").status_code == 404
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client.get("/api/studio/runs", headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/api/studio/translate", content=b"x" * (2 << 20)).status_code == 413


ASKED = {
    "/": "GET", "/assets/app.js": "GET", "/api/studio/runs": "GET",
    **dict.fromkeys(
        (f"/api/studio/{name}" for name in (
            "translate", "positions", "attention", "heads", "beam", "head", "training",
            "read", "fill", "layers", "walk", "data", "nearest", "picture", "series",
        )),
        "POST",
    ),
}  # fmt: skip
STRANGERS = [
    {"Host": "evil.example"},
    {"Host": "evil.example:5001"},
    {"Host": "127.0.0.1.evil.example"},
    {"Host": ""},
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "http://localhost"},
]


@pytest.mark.parametrize("headers", STRANGERS)
def test_a_page_of_a_stranger_is_answered_nowhere(client: TestClient, headers: dict[str, str]) -> None:
    """By no name that points here, and to no page of another server, whichever route it asks."""
    body = {"run": "transformer", "text": "abc"}
    for path, method in ASKED.items():
        response = client.request(method, path, json=body if method == "POST" else None, headers=headers)
        assert response.status_code == (421 if "Host" in headers else 403), path
        assert set(response.json()) == {"error"} and "access-control-allow-origin" not in response.headers


def test_every_route_of_the_studio_is_asked() -> None:
    """A route that is added has to stand behind the gate as well."""
    worker = Worker()
    routes = [*_files().routes, *router_of(Subjects([]), worker).routes]
    worker.close()
    paths = {route.path.replace("{name}", "app.js") for route in routes if isinstance(route, APIRoute)}
    assert paths - {"/favicon.ico"} == set(ASKED)


def test_scripts_make_no_markup_and_name_no_address() -> None:
    folder = Path(build.__code__.co_filename).with_name("assets")
    for path in folder.iterdir():
        text = path.read_text("utf-8")
        for forbidden in (
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "eval(",
            "new Function",
        ):
            assert forbidden not in text, path.name
        assert "http" not in text.replace("http://www.w3.org/2000/svg", ""), path.name
        assert len(text.splitlines()) <= 350


def test_a_run_that_cannot_be_read_is_left_out(runs: Path, tmp_path: Path) -> None:
    found = Subjects([tmp_path, runs / "lstm"], device="cpu")
    assert list(found.runs) == ["lstm"]
    assert "not a run directory" in found.unreadable[tmp_path.name]
    with pytest.raises(UserError, match="not a run directory"):
        Subjects([tmp_path])

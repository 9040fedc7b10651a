"""What the views Translate, Whole model and Data ask for beyond the best translation."""

import json
import re
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from dragoman.errors import UserError
from dragoman.evaluate.metrics import sentence_chrf
from dragoman.runs.directory import Run
from dragoman.studio.history import history
from dragoman.studio.subject import Subject
from dragoman.studio.subjects import Subjects
from studio.asking import TEXT, ask


def test_a_translation_begins_with_a_text(client: TestClient) -> None:
    found = ask(client, "translate", beam=2, begin="ab")
    assert found["hypotheses"][0]["text"].startswith("ab") and found["head"]
    assert ask(client, "translate", beam=2, head=found["head"])["hypotheses"] == found["hypotheses"]


def test_a_language_model_draws(client: TestClient, subjects: Subjects) -> None:
    draw = {"temperature": 0.8, "top_k": 5, "top_p": 0.9, "seed": 3}
    found = ask(client, "translate", run="gpt", n_best=3, draw=draw)
    assert len(found["hypotheses"]) == 3
    assert ask(client, "translate", run="gpt", n_best=3, draw=draw) == found
    gpt = subjects.get("gpt")
    assert isinstance(gpt, Subject)
    own = gpt.search(TEXT, gpt.draws(3, 0.8, 5, 0.9, 3))
    assert [each["text"] for each in found["hypotheses"]] == [each.text for each in own]
    assert "greater than 0" in ask(client, "translate", 400, run="gpt", draw={"temperature": 0.0})["error"]


def test_the_whole_model_is_walked_through(client: TestClient) -> None:
    best = ask(client, "translate", beam=1)
    ids = best["hypotheses"][0]["ids"]
    found = ask(client, "walk", target=ids, position=1)
    assert found["written"] == best["pieces"][1]["piece"]
    assert found["logits"][0]["piece"] == best["pieces"][1]["others"][0]["piece"]
    kinds = [stage["kind"] for stage in found["stages"]]
    assert {"embedding", "positions", "self_attention", "cross_attention", "feedforward", "norm"} <= set(
        kinds
    )
    for stage in found["stages"]:
        assert len(stage["rows"]) == len(stage["given"]) and len(stage["given"][0]) <= 8
    whole = ask(client, "walk", target=ids, position=1, stage=0)
    assert len(whole["given"][0]) == whole["width"] == 16
    assert "99 is not there" in ask(client, "walk", 400, target=ids, position=99)["error"]
    assert "999 is not there" in ask(client, "walk", 400, target=ids, stage=999)["error"]
    for run in ("lstm", "gpt", "markov"):
        own = ask(client, "translate", run=run, beam=1)["hypotheses"][0]["ids"]
        assert ask(client, "walk", run=run, target=own)["stages"]


def test_the_gates_of_a_cell_are_among_the_stages(client: TestClient) -> None:
    ids = ask(client, "translate", run="lstm", beam=1)["hypotheses"][0]["ids"]
    found = ask(client, "walk", run="lstm", target=ids)["stages"]
    cells = [stage for stage in found if stage["kind"] == "cell"]
    assert [(cell["half"], cell["backward"]) for cell in cells] == [
        ("encoder", False),
        ("encoder", True),
        ("decoder", False),
    ]
    gates = cells[-1]["gates"]
    assert gates["state"] == cells[-1]["given"] and len(gates["forget gate"]) == len(ids) + 1
    number = found.index(cells[-1])
    whole = ask(client, "walk", run="lstm", target=ids, stage=number)
    assert len(whole["gates"]["cell"][0]) == whole["width"] == 8


def test_the_validation_set_is_measured(client: TestClient, subject: Subject) -> None:
    found = ask(client, "data", count=6, beam=2)
    assert len(found["rows"]) == 6 <= found["all"]
    settings = subject.settings(2, 1, 1.0)
    for row in found["rows"]:
        own = subject.translator.hypotheses([row["source"]], search=settings)[0][0]
        assert row["output"] == own.text
        assert row["chrf"] == pytest.approx(sentence_chrf(own.text, row["reference"]), abs=1e-3)
        assert row["log_prob"] == pytest.approx(own.log_prob / len(own.token_scores), abs=1e-3)
    assert "only for runs that translate" in ask(client, "data", 400, run="gpt")["error"]


def test_a_test_set_is_measured_in_its_place(client: TestClient, subjects: Subjects, tmp_path: Path) -> None:
    (tmp_path / "t.tsv").write_text("src\ttgt\nabc\tcba\nde\ted\n", encoding="utf-8")
    name = subjects.add_test([str(tmp_path / "t.tsv")])
    assert client.get("/api/studio/runs").json()["tests"] == [name] == ["t.tsv"]
    found = ask(client, "data", beam=2, test=name)
    assert [(row["source"], row["reference"]) for row in found["rows"]] == [("abc", "cba"), ("de", "ed")]
    assert "'other' was not opened" in ask(client, "data", 400, test="other")["error"]
    with pytest.raises(UserError, match="there is no such file"):
        subjects.add_test([str(tmp_path / "none.tsv")])


def test_a_training_pair_is_nearest_to_itself(client: TestClient, subject: Subject) -> None:
    store = subject.run.prepared().train
    text = subject.tokenizers[0].decode(store.src(3).tolist())
    (best, *rest) = ask(client, "nearest", text=text)["pairs"]
    assert best["share"] == pytest.approx(1, abs=1e-3) and sorted(best["source"]) == sorted(text)
    assert [pair["share"] for pair in rest] == sorted((pair["share"] for pair in rest), reverse=True)
    assert re.fullmatch(r"a\.\w+:\d+", best["origin"])


def test_a_run_tells_its_pace(runs: Path, tmp_path: Path) -> None:
    """By the last records of updates; nothing is left of a run that has ended."""
    shutil.copytree(runs / "transformer", tmp_path / "run")
    run = Run.open(tmp_path / "run")
    records = [
        {"kind": "train", "update": 2 * n, "tokens_per_second": 50.0, "elapsed": 3.0 * n} for n in range(5)
    ]
    timing = tmp_path / "run" / "timing.jsonl"
    timing.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
    told = history(run)
    assert told["unit"] == "tokens"
    assert (told["speed"], told["left"]) == (50.0, 6)  # 4 of 12 updates, each 1.5 seconds
    timing.write_text(f"{json.dumps(records[-1] | {'update': 12})}\n", "utf-8")
    assert history(run)["left"] is None

"""The Read view: without a browser held against the library, and in one."""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from audit import serious
from browser import find
from dragoman.cli.main import app
from dragoman.data.labelled.example import Example
from dragoman.probe.fill import Filler
from dragoman.probe.heads import mask_heads
from dragoman.probe.reader import RunReader
from dragoman.runs.directory import Run
from dragoman.studio.app import build
from dragoman.studio.subjects import Subjects
from studio.browsing import Page, opened, running

NAMES = ("bert", "t5", "elmo", "labels", "tags")
TEXT = "abc de ab"
needs_browser = pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")


@pytest.fixture(scope="module")
def client(readers: Path, runs: Path) -> Iterator[TestClient]:
    subjects = Subjects([*(readers / name for name in NAMES), runs / "gpt"], device="cpu")
    with TestClient(build(subjects), base_url="http://127.0.0.1", raise_server_exceptions=False) as found:
        yield found


def ask(client: TestClient, path: str, run: str, status: int = 200, text: str = TEXT, **body: Any) -> Any:
    answer = client.post(f"/api/studio/{path}", json={"run": run, "text": text, **body})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_every_run_says_what_it_is_and_begins_with_a_text(client: TestClient) -> None:
    found = {run["name"]: run for run in client.get("/api/studio/runs").json()["runs"]}
    assert [name for name, run in found.items() if run["reads"]] == ["bert", "elmo", "labels", "tags"]
    assert found["t5"]["fills"] and "<mask>" in found["t5"]["text"]
    assert found["gpt"]["generates"] and found["labels"]["task"] == "classify"
    assert all(run["text"].strip() for run in found.values())


@pytest.mark.parametrize("name", ["bert", "elmo"])
def test_pieces_are_guessed_as_by_the_library(client: TestClient, readers: Path, name: str) -> None:
    reader = RunReader(Run.open(readers / name), device="cpu")
    seen = reader.read(TEXT).seen
    found = ask(client, "read", name)
    assert found["mode"] == "guess"
    assert [piece["score"] for piece in found["pieces"]] == pytest.approx(seen.token_scores, abs=1e-4)
    assert ("left" in found["pieces"][0]) == (name == "elmo")
    gap = ask(client, "read", name, text="abc <mask> ab")["pieces"]
    assert [piece["gap"] for piece in gap].count(True) == 1
    fillings = ask(client, "fill", name, text="abc <mask> ab")["fillings"]
    own = Filler(Run.open(readers / name), device="cpu").fill("abc <mask> ab", 8)
    assert [each["text"] for each in fillings] == [each.text for each in own]
    at = next(number for number, piece in enumerate(gap) if piece["gap"])
    assert fillings[0]["probability"] == pytest.approx(math.exp(gap[at]["others"][0]["score"]), rel=1e-3)


def test_the_last_layer_guesses_as_the_network_does(client: TestClient) -> None:
    pieces = ask(client, "read", "bert")["pieces"]
    layers = ask(client, "layers", "bert", place=1)["layers"]
    assert len(layers) == 3  # the embedding and two layers
    assert layers[-1] == pieces[1]["others"]
    assert "not there" in ask(client, "layers", "bert", 400, place=99)["error"]
    assert "such as BERT" in ask(client, "layers", "elmo", 400, place=0)["error"]
    assert "such as BERT" in ask(client, "layers", "gpt", 400, place=0)["error"]


def test_gaps_are_filled_by_a_model_that_writes(client: TestClient, readers: Path) -> None:
    text = "abc <mask> ab"
    own = Filler(Run.open(readers / "t5"), device="cpu").fill(text, 8)
    found = ask(client, "fill", "t5", text=text)["fillings"]
    assert [each["gaps"] for each in found] == [list(each.gaps) for each in own]
    best = ask(client, "translate", "t5", text=text, beam=2)["hypotheses"][0]
    shown = ask(client, "attention", "t5", text=text, target=best["ids"])
    assert {each["kind"] for each in shown["attentions"]} == {"encoder", "decoder", "cross"}
    assert "does not fill gaps" in ask(client, "fill", "labels", 400, text=text)["error"]


def test_a_classifier_says_why(client: TestClient, readers: Path) -> None:
    reader = RunReader(Run.open(readers / "labels"), device="cpu")
    assert reader.predictor is not None
    said = reader.predictor.predict([Example((TEXT,), None, "a")])[0]
    found = ask(client, "read", "labels")
    assert found["value"] == said.value
    assert found["labels"] == pytest.approx(said.probabilities, abs=1e-4)
    assert [unit["text"] for unit in found["units"]][1:-1] == ["abc", "de", "ab"]
    less = ask(client, "read", "labels", text="abc <mask> ab")
    alone = reader.predictor.predict([Example(("abc  ab",), None, "a")])[0]
    assert less["labels"] == pytest.approx(alone.probabilities, abs=1e-4)


def test_a_tagger_has_labels_for_every_word(client: TestClient, readers: Path) -> None:
    found = ask(client, "read", "tags")
    assert [word["text"] for word in found["words"]] == TEXT.split()
    reader = RunReader(Run.open(readers / "tags"), device="cpu")
    assert reader.predictor is not None
    said = reader.predictor.predict([Example(tuple(TEXT.split()), None, "a")])[0]
    assert [word["label"] for word in found["words"]] == list(said.value)  # type: ignore[arg-type]
    for word in found["words"]:
        assert sum(word["labels"].values()) == pytest.approx(1, abs=1e-3)
        assert word["label"] == max(word["labels"], key=word["labels"].__getitem__)


def test_heads_of_readers_are_switched_off(client: TestClient, readers: Path) -> None:
    for name in ("bert", "labels", "tags"):
        shown = ask(client, "attention", name)
        module = shown["attentions"][0]["module"]
        assert (
            shown["attentions"][0]["maskable"]
            and shown["start"]["module"] == shown["attentions"][-1]["module"]
        )
        reader = RunReader(Run.open(readers / name), device="cpu")
        whole = reader.read(TEXT, steps=0)
        with mask_heads(reader.network, {module: [1]}):
            own = reader.read(TEXT, steps=0)
        found = ask(client, "attention", name, masked={module: [1]})["effect"]
        assert found["before"] == pytest.approx(reader.score(whole), abs=1e-3)
        if whole.said is None:
            assert found["after"] == pytest.approx(sum(own.seen.token_scores), abs=1e-3)
        falls = ask(client, "heads", name, target=[])["falls"][module]
        assert falls[1] == pytest.approx(found["before"] - found["after"], abs=2e-3)


def test_a_language_model_reads_from_the_left(client: TestClient) -> None:
    found = ask(client, "read", "gpt")
    assert found["mode"] == "left"
    assert "".join(piece["piece"] for piece in found["pieces"]).replace("▁", " ").strip() == TEXT
    assert all(piece["score"] <= piece["others"][0]["score"] + 1e-4 for piece in found["pieces"])


def test_what_a_reader_cannot_do_is_said(client: TestClient) -> None:
    assert "reads and does not write" in ask(client, "translate", "bert", 400)["error"]
    assert "it is blank" in ask(client, "read", "bert", 400, text=" ")["error"]
    assert "one text without a tab" in ask(client, "read", "labels", 400, text="a\tb")["error"]


@needs_browser
def test_words_are_taken_out_in_a_browser(
    readers: Path, runs: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    subjects = Subjects([*(readers / name for name in NAMES), runs / "gpt"], device="cpu", text=TEXT)
    with running(subjects) as address, opened(address, tmp_path_factory.mktemp("read"), ".piece") as page:
        _masked(page)
        _labelled(page)
        for width in (390, 1280):
            page.resize(width)
            for name in (*NAMES, "gpt"):
                page.show("read", f"run={name}&text=abc+de+ab", ".piece")
                assert serious(page.browser) == [], (name, width)
                wide = page.run("return [document.documentElement.scrollWidth, innerWidth]")
                assert wide[0] <= wide[1], (name, wide)
        for name in NAMES:
            page.show("training", f"run={name}&text=abc+de", ".charts svg")
            assert page.run("return document.getElementById('problem').hidden"), name
        page.show("attention", "run=labels&text=abc")
        page.show("attention", "run=t5&text=abc+%3Cmask%3E")
        severe = [entry["message"] for entry in page.browser.logs("browser") if entry["level"] == "SEVERE"]
        assert severe == [] and page.run("return window.violations") == []


def _masked(page: Page) -> None:
    """A click takes a word out; what fills the gap can be taken; keys do the same."""
    page.show("read", "run=bert&text=abc+de+ab", "#lens")
    page.click("[data-word='1']")
    page.until("return location.hash.includes('gaps=1')")
    page.until("return document.querySelectorAll('[aria-label^=\"take it\"]').length > 1")
    page.run("document.querySelector('[aria-label^=\"take it\"]').focus()")
    page.browser.press("\ue007")  # Enter
    page.until("return !location.hash.includes('gaps=') && !location.hash.includes('text=abc+de+ab')")
    page.show("read", "run=t5&text=abc+de+ab", "[data-word]")
    page.run("document.querySelector('[data-word=\"1\"]').focus()")
    page.browser.press(" ")
    page.until("return document.querySelectorAll('[aria-label^=\"take it\"]').length > 0")


def _labelled(page: Page) -> None:
    page.show("read", "run=labels&text=abc+de+ab", ".labels")
    assert page.run("return document.querySelector('[data-word]').style.background.startsWith('rgb')")
    page.click("[data-word='0']")
    page.until("return document.querySelector('.labels .number').textContent.includes('→')")
    page.show("read", "run=tags&text=abc+de+ab", ".labels")
    page.click("[data-word='2']")
    page.until("return document.querySelector('#view').textContent.includes('Labels of ab')")


def test_the_page_of_a_classifier_says_why(client: TestClient, readers: Path, tmp_path: Path) -> None:
    file = tmp_path / "labels.html"
    command = ["explain", str(readers / "labels"), "abc de", "--html", str(file), "--device", "cpu"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    data = json.loads(re.search(r'id="data">(.*?)</script>', file.read_text("utf-8"), re.DOTALL)[1])
    found = ask(client, "read", run="labels", text="abc de")
    assert dict(data["labels"]) == pytest.approx(found["labels"], abs=1e-4)
    assert [text for text, _ in data["units"]] == [unit["text"] for unit in found["units"]]
    shares = [share for _, share in data["units"]]
    assert shares == pytest.approx([unit["share"] for unit in found["units"]], abs=1e-3)
    assert data["translation"] == found["value"] and data["written"] == []

"""The Train view: what it may touch, what it starts, and that it asks for the token."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from audit import serious
from browser import Browser, find
from dragoman.errors import UserError
from dragoman.runs.records import read_records
from dragoman.studio.app import build
from dragoman.studio.subjects import Subjects
from dragoman.studio.workshop import Workshop
from studio.browsing import Page, running
from toy import toy_pairs, write_pairs

_CHILD = """
import signal, sys, time
def stop(*_):
    print("saved", flush=True)
    sys.exit(130)
signal.signal(signal.SIGINT, stop)
print("said", *sys.argv[1:], flush=True)
if sys.argv[1] == "serve":
    print("http://127.0.0.1:5999/  en→de", flush=True)
if sys.argv[1] in ("train", "resume", "serve") and "--dry-run" not in sys.argv:
    while True:
        time.sleep(0.05)
"""


class Stub(Workshop):
    """Another child in the place of dragoman: it says what it was asked, and waits to be stopped."""

    def _command(self, arguments: Any) -> list[str]:
        return [sys.executable, "-c", _CHILD, *arguments]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = tmp_path / "data"
    (data / "inner").mkdir(parents=True)
    for name in ("a.en", "a.de", "inner/b.tsv", ".hidden", "recipe.yaml"):
        (data / name).write_text("x\n")
    (tmp_path / "outside.en").write_text("x\n")
    (data / "link.en").symlink_to(tmp_path / "outside.en")
    return data


@pytest.fixture
def workshop(folder: Path) -> Iterator[Stub]:
    found = Stub([folder], folder / "runs")
    yield found
    found.close()


def until_said(workshop: Workshop, text: str) -> None:
    looks = 0
    while text not in workshop.state()["text"]:
        time.sleep(0.02)
        looks += 1
        assert looks < 10_000, f"never said: {text}"


def test_only_files_below_the_directories(workshop: Stub, folder: Path) -> None:
    names = [Path(each["path"]).name for each in workshop.files()["files"]]
    assert names == ["a.de", "a.en", "recipe.yaml", "b.tsv"]
    assert workshop.check([str(folder / "a.en")]) == [str(folder / "a.en")]
    bad = ["../outside.en", str(folder / "link.en"), str(folder / ".." / "outside.en"), "/etc/passwd"]
    for name in bad:
        with pytest.raises(UserError, match="outside the directories"):
            workshop.check([name])
    with pytest.raises(UserError, match="a recipe can name files anywhere"):
        workshop.check([str(folder / "recipe.yaml")])
    with pytest.raises(UserError, match="no such file"):
        workshop.check([str(folder / "none.en")])
    for name in ("", "../x", "a/b", "-q", ".x", "a=b"):
        with pytest.raises(UserError, match="letter or digit first"):
            workshop.directory(name)


def test_a_child_is_started_stopped_and_resumed(workshop: Stub, folder: Path) -> None:
    files = [str(folder / "a.en"), str(folder / "a.de")]
    plan = workshop.plan(files, "m", 5.0)["text"]
    given = " ".join(files)
    assert plan.strip() == f"said train {given} --out {folder / 'runs/m'} --minutes 5 --dry-run"
    assert workshop.report(files)["text"].strip() == f"said corpus {given}"
    assert workshop.start(files, "m", 5.0)["running"]
    until_said(workshop, "said train")
    with pytest.raises(UserError, match="train m: it is still running"):
        workshop.resume("m")
    workshop.stop()
    until_said(workshop, "saved")
    workshop.close()
    state = workshop.state()
    assert not state["running"] and state["code"] == 130
    assert workshop.resume("m")["what"] == "resume m"
    until_said(workshop, "said resume")
    workshop.close()
    workshop.export("m")
    until_said(workshop, f"said export {folder / 'runs/m'} --quantize int8")
    workshop.close()
    workshop.serve("m")
    until_said(workshop, f"said serve {folder / 'runs/m'} --port 0\nhttp")
    assert workshop.state()["address"] == "http://127.0.0.1:5999/"
    workshop.close()
    assert workshop.state()["address"] is None


def test_nothing_is_done_without_the_token(workshop: Stub, folder: Path) -> None:
    with TestClient(build(Subjects([]), workshop=workshop), base_url="http://127.0.0.1") as client:
        body = {"files": [str(folder / "a.en")], "name": "m", "minutes": 1.0}
        named = ("resume", "open", "export", "serve")
        paths = ("files", "state", "report", "plan", "start", "stop", "evaluate", "test", *named)
        for path in paths:
            for token in ({}, {"X-Studio-Token": "wrong"}):
                own = {one: {"name": "m"} for one in named}
                own |= {one: {"files": body["files"]} for one in ("report", "test")}
                own["evaluate"] = {"name": "m", "files": body["files"]}
                answer = client.post(f"/api/studio/workshop/{path}", json=own.get(path, body), headers=token)
                assert answer.status_code == 403, path
            for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
                answer = client.post(f"/api/studio/workshop/{path}", json=body, headers=headers)
                assert answer.status_code in (403, 421), path
        right = {"X-Studio-Token": workshop.token}
        assert len(client.post("/api/studio/workshop/files", json={}, headers=right).json()["files"]) == 4
        bad = client.post("/api/studio/workshop/report", json={"files": ["/etc/passwd"]}, headers=right)
        assert bad.status_code == 400 and "outside the directories" in bad.json()["error"]
        assert not workshop.state()["running"]


def test_without_being_asked_for_it_is_not_there() -> None:
    with TestClient(build(Subjects([])), base_url="http://127.0.0.1") as client:
        assert client.post("/api/studio/workshop/state", json={}).status_code == 404


@pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")
def test_a_model_is_trained_in_the_page(workshop: Stub, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Without any run: files are chosen, the plan is read, a child is started and stopped."""
    home = tmp_path_factory.mktemp("browser")
    with running(Subjects([]), workshop) as address, Browser(home) as browser:
        page = Page(browser, address)
        browser.open(f"{address}#train?token={workshop.token}")
        page.until("return document.querySelectorAll('.files input').length === 4")
        assert "token" not in page.run("return location.hash")
        assert serious(browser) == []
        for number in (1, 2):
            page.click(f".files label:nth-child({number}) input")
        page.click("#plan")
        page.until("return document.querySelector('.said').textContent.includes('--dry-run')")
        page.click("#start")
        page.until("return document.querySelector('.said').textContent.startsWith('said train')")
        page.until("return !document.getElementById('stop').disabled")
        page.click("#stop")
        page.until("return document.querySelector('[role=status]').textContent.endsWith('stopped ')")
        page.resize(390)
        wide = page.run("return [document.documentElement.scrollWidth, innerWidth]")
        assert wide[0] <= wide[1]
        assert [entry["message"] for entry in browser.logs("browser") if entry["level"] == "SEVERE"] == []


class Small(Workshop):
    """The real commands, and a model as small as can be, which trains until it is stopped."""

    def _train(self, files: Any, name: str, minutes: float) -> list[str]:
        fields = ["tokenizer.kind=char", "model.preset=transformer-tiny", "model.num_layers=1"]
        fields += ["model.model_dim=16", "model.num_heads=2", "model.ff_dim=16", "train.device=cpu"]
        fields += ["train.max_updates=1000000", "train.log_every=1", "train.batch_tokens=200"]
        fields += ["data.valid_size=8", "train.validate_every=1000000", "train.metric=loss"]
        return [*super()._train(files, name, minutes), *fields]


@pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")
@pytest.mark.slow
def test_a_real_training_is_stopped_and_goes_on(tmp_path: Path) -> None:
    """Start, watch, stop, resume, stop, and look inside, all in the page."""
    data = tmp_path / "data"
    data.mkdir()
    write_pairs(data, toy_pairs(60))
    workshop = Small([data], tmp_path / "runs")
    said = "document.querySelector('.said').textContent"
    stopped = "return document.querySelector('[role=status]').textContent.endsWith('stopped ')"
    ended = "document.querySelector('[role=status]').textContent.includes('ended')"
    metrics = tmp_path / "runs" / "model" / "metrics.jsonl"
    try:
        with running(Subjects([], device="cpu"), workshop) as address, Browser(tmp_path) as browser:
            page = Page(browser, address)
            browser.open(f"{address}#train?token={workshop.token}")
            page.until("return document.querySelectorAll('.files input').length === 2")
            page.run("document.querySelectorAll('.files input').forEach((box) => box.click())")
            page.click("#start")
            page.until(f"return /update \\d+\\//.test({said}) || {ended}")
            assert "update" in page.text(".said"), page.text(".said")
            page.click("#stop")
            page.until(stopped)
            updates = [record["update"] for record in read_records(metrics)]
            page.click("[data-act=Resume]")
            page.until(
                f"return Number({said}.match(/update (\\d+)\\//)?.[1]) > values[0] || {ended}", max(updates)
            )
            page.click("#stop")
            page.until(stopped)
            after = [record["update"] for record in read_records(metrics)]
            assert after[: len(updates)] == updates, "it goes on from where it was"
            assert after == sorted(set(after)) and len(after) > len(updates)
            page.click("[data-act='Look inside']")
            page.until("return document.getElementById('title').textContent === 'Translate: model'")
            page.show("training", "run=model")
            assert f"Update {max(after)}" in page.text("#view")
    finally:
        workshop.close()

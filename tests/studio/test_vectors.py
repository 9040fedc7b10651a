"""Runs on images and series in the studio: held against the predictors, and in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from audit import out_of_reach, serious, severe, too_wide
from browser import find
from dragoman.data.vectors.series import read_series
from dragoman.probe.patches import look_at
from dragoman.runs.directory import Run
from dragoman.runs.opening import open_vector_predictor
from dragoman.studio.app import build
from dragoman.studio.subjects import Subjects
from studio.browsing import opened, running
from training.test_vectors import FILES, folder, trained

assert folder  # a fixture


@pytest.fixture(scope="module")
def vectors(folder: Path) -> dict[str, Run]:
    quantiles = {"task.series.quantiles": [0.1, 0.5, 0.9], "task.series.season": 12}
    return {
        kind: trained(folder, kind, **(quantiles if kind == "forecast" else {"seed": 3})) for kind in FILES
    }


@pytest.fixture(scope="module")
def subjects(vectors: dict[str, Run]) -> Subjects:
    found = Subjects([run.directory for run in vectors.values()], device="cpu")
    assert not found.unreadable
    return found


@pytest.fixture(scope="module")
def client(subjects: Subjects) -> Iterator[TestClient]:
    with TestClient(build(subjects), base_url="http://127.0.0.1", raise_server_exceptions=False) as found:
        yield found


def ask(client: TestClient, path: str, run: Run, status: int = 200, **body: Any) -> Any:
    answer = client.post(f"/api/studio/{path}", json={"run": run.directory.name, **body})
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.parametrize("kind", ["image", "caption"])
def test_a_picture_is_looked_at_as_by_explain(client: TestClient, vectors: dict[str, Run], kind: str) -> None:
    run = vectors[kind]
    for chosen in ({}, {"layer": 1, "head": 2}):
        found = ask(client, "picture", run, example=2, **chosen)
        own = look_at(run, found["name"], device="cpu", **chosen)
        assert found["maps"] == pytest.approx(own.maps, abs=1e-4)
        assert np.array(found["maps"]).sum(axis=(1, 2)) == pytest.approx(np.ones(len(own.said)), abs=1e-3)
        assert [each["piece"] for each in found["said"]] == list(own.said)
        assert np.exp([each["score"] for each in found["said"]]) == pytest.approx(own.probabilities)
        assert (found["layers"], found["heads"]) == (1, 2)
    assert bool(found["labels"]) == (kind == "image")
    assert "99999 is not there" in ask(client, "picture", run, 400, example=99999)["error"]
    assert "has 1, numbered from 1" in ask(client, "picture", run, 400, layer=7)["error"]


def test_a_window_is_forecast_as_by_predict(client: TestClient, vectors: dict[str, Run]) -> None:
    run = vectors["forecast"]
    found = ask(client, "series", run, example=1)
    predictor = open_vector_predictor(run, device="cpu")
    past, future = np.array(found["past"], dtype=float).T, np.array(found["future"], dtype=float).T
    said = predictor.forecast(past, "the window")  # H C Q
    lines = {name: np.array(line).T for name, line in found["lines"].items()}
    assert lines["model"] == pytest.approx(said[:, :, 1], abs=1e-3)
    assert pytest.approx(said[:, :, 2], abs=1e-3) == np.array(found["quantiles"]["0.9"]).T
    assert lines["naive"] == pytest.approx(np.repeat(past[-1:], len(future), axis=0), abs=1e-3)
    assert lines["seasonal naive"] == pytest.approx(past[-12:-8], abs=1e-3)
    whole = read_series(str(run.directory.parents[1] / FILES["forecast"]), ()).values
    part = np.concatenate([past, future])
    places = [
        at for at in range(len(whole) - len(part)) if np.allclose(whole[at : at + len(part)], part, atol=1e-3)
    ]
    assert len(places) == 1, "these are steps of the data, in their units"
    std = np.array(predictor.task.vectors.std)
    for name, line in lines.items():
        missed = (line - future) / std
        assert found["errors"][name]["mse"] == pytest.approx(np.square(missed).mean(), rel=0.01)
        assert found["errors"][name]["mae"] == pytest.approx(np.abs(missed).mean(), rel=0.01)


def test_a_labelled_series_has_its_labels(client: TestClient, vectors: dict[str, Run]) -> None:
    found = ask(client, "series", vectors["series"], example=0)
    assert sum(found["labels"].values()) == pytest.approx(1) and found["expected"] in found["labels"]
    assert len(found["past"]) == len(found["channels"]) == 1 and len(found["past"][0]) == 5


def test_what_such_a_run_cannot_do_is_said(client: TestClient, vectors: dict[str, Run]) -> None:
    assert "open the view Picture" in ask(client, "translate", vectors["image"], 400, text="a")["error"]
    assert "open the view Series" in ask(client, "read", vectors["forecast"], 400, text="a")["error"]
    assert "reads series" in ask(client, "picture", vectors["series"], 400)["error"]
    assert "reads images" in ask(client, "series", vectors["image"], 400)["error"]


@pytest.mark.skipif(find() is None, reason="no chromium and chromedriver")
def test_pictures_and_series_in_a_browser(subjects: Subjects, tmp_path: Path) -> None:
    first = next(iter(subjects.runs))
    with running(subjects) as address, opened(address, tmp_path, "svg") as page:
        for width in (1280, 390):
            page.resize(width)
            for name, run in subjects.runs.items():
                view = "picture" if run.config.task and run.config.task.image else "series"
                page.show(view, f"run={name}&example=1", "svg")
                assert page.text("#view output").startswith("2 of ")
                assert serious(page.browser) == [], (name, width)
                assert not too_wide(page.browser), (name, width)
                if width == 1280:
                    assert out_of_reach(page.browser) == [], name
                page.show("training", f"run={name}", ".charts svg")
                assert page.run("return document.getElementById('problem').hidden"), name
        page.show("picture", f"run={first}", "svg")
        page.run("document.querySelector('#view svg[tabindex]').focus()")
        page.browser.press("\ue014")
        assert "Patch in row 1, column 1" in page.text(".readout")
        assert page.saved("svg").startswith("<?xml")
        assert severe(page.browser) == [] and page.run("return window.violations") == []

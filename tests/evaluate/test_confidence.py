"""The confidence of translations: fitted, kept in a run and in an export, asked for on the command line."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dragoman.checkpoint.model import load_model
from dragoman.cli.main import app
from dragoman.decode.confidence import FEATURES, Calibration, features
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.engines.ctranslate2 import CTranslate2Translator
from dragoman.engines.export import export_ctranslate2
from dragoman.errors import UserError
from dragoman.evaluate.confidence import (
    CONFIDENCE,
    auc,
    calibrate,
    measure,
    read_calibration,
    stored_calibration,
    write_calibration,
)
from dragoman.runs.directory import Run
from dragoman.serve.service import Served, Service
from given import given_run
from serve.standin import client_of
from toy import toy_config, toy_pairs, write_pairs

SOURCE = "some source text"


def hypothesis(scores: list[float], text: str = "a target text .") -> Hypothesis:
    pieces = tuple(text.split())
    return Hypothesis(text, sum(scores), sum(scores), (), pieces, tuple(scores), "stop")


def made_up(count: int, seed: int) -> tuple[list[Hypothesis], list[float]]:
    """Translations whose quality shows in the scores of their tokens, but for noise."""
    chance = np.random.default_rng(seed)
    quality = chance.uniform(0, 1, count)
    rows = [
        hypothesis((-chance.exponential(0.05 + 1.5 * (1 - own), size=chance.integers(4, 20))).tolist())
        for own in quality
    ]
    return rows, (100 * quality).tolist()


@pytest.fixture(scope="module")
def calibration() -> Calibration:
    found, scores = made_up(600, seed=1)
    return Calibration.fitted([features(SOURCE, one) for one in found], scores)


def test_it_is_calibrated_and_finds_the_worst(calibration: Calibration) -> None:
    found, scores = made_up(2000, seed=2)
    sure = [calibration.confidence(SOURCE, one) for one in found]
    measured = measure(sure, scores, calibration.threshold)
    assert measured.spearman > 0.6 and measured.auc_worst_tenth > 0.8
    assert measured.calibration_error < 0.1
    assert np.mean(sure) == pytest.approx(0.75, abs=0.05)
    assert calibration.confidence("  ", found[0]) == 1.0


def test_the_fit_is_the_best_of_a_penalised_logistic_regression(calibration: Calibration) -> None:
    """No other weights nearby have a higher likelihood less the penalty: a ridge of 1, and a tenth of it for
    the bias."""
    found, scores = made_up(600, seed=1)
    rows = np.array([features(SOURCE, one) for one in found])
    inputs = np.clip((rows - calibration.centres) / np.array(calibration.scales), -4, 4)
    inputs[:, FEATURES.index("ratio")] = np.abs(inputs[:, FEATURES.index("ratio")])
    inputs = np.concatenate([np.ones((600, 1)), inputs], axis=1)
    good = np.array(scores) > calibration.threshold

    def worth(weights: np.ndarray) -> float:
        logits = inputs @ weights
        likelihood = -np.logaddexp(0, np.where(good, -logits, logits)).sum()
        return likelihood - (0.1 * weights[0] ** 2 + (weights[1:] ** 2).sum()) / 2

    best = np.array([calibration.bias, *calibration.weights])
    for step in np.eye(len(best)) * 1e-3:
        assert worth(best) > worth(best + step) and worth(best) > worth(best - step)


def test_auc_counts_ties_half() -> None:
    bad = np.array([True, False, False, False])
    assert auc(np.array([0.1, 0.2, 0.3, 0.4]), bad) == 1.0
    assert auc(np.array([0.9, 0.2, 0.3, 0.4]), bad) == 0.0
    assert auc(np.array([0.3, 0.2, 0.3, 0.4]), bad) == 0.5


def test_too_few_sentences_and_damaged_numbers_are_refused(calibration: Calibration, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="confidence: needs 40 validation sentences, and there are 3"):
        Calibration.fitted([[0.0] * len(FEATURES)] * 3, [1.0, 2.0, 3.0])
    path = tmp_path / CONFIDENCE
    write_calibration(path, "1", calibration)
    assert read_calibration(path, "1") == calibration
    assert read_calibration(path, "2") is None
    assert read_calibration(tmp_path / "none", "1") is None
    whole = path.read_bytes()
    for damaged in (b"{", b"[]", whole.replace(b'"sentences": 600', b'"sentences": 601')):
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"confidence\.json: damaged; remove it, and it is computed"):
            read_calibration(path, "1")
    with pytest.raises(UserError, match="calibration: damaged"):
        replace(calibration, weights=(1.0,))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """It says words in capitals, but for those with an e in their source, of which it knows nothing."""
    directory = tmp_path_factory.mktemp("confidence")
    pairs = [(src, src.upper()) for src, _ in toy_pairs(500)]
    config = toy_config(write_pairs(directory, pairs))
    config["data"]["valid_size"] = 50
    config["train"] |= {"max_updates": 1, "validate_every": 1}
    return given_run(directory / "run", config, pairs)


def asked(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout, result.stderr


def test_a_run_makes_its_own_when_first_asked_and_an_export_takes_it_along(run: Run, tmp_path: Path) -> None:
    assert stored_calibration(run) is None
    line, _ = asked("translate", run.directory, "abc", "--confidence", "--device", "cpu")
    text, sure = line.rstrip("\n").split("\t")
    assert text == "ABC" and 0 < float(sure) < 1
    stored = stored_calibration(run)
    assert stored is not None and stored.sentences >= 40
    told = json.loads(
        asked("translate", run.directory, "abc", "--confidence", "--json", "--device", "cpu")[0]
    )
    assert told["translations"][0]["confidence"] == pytest.approx(float(sure), abs=0.005)
    flagged, summary = asked("translate", run.directory, "abc", "--flag-below", "1", "--device", "cpu")
    assert flagged.rstrip("\n").endswith("\tcheck") and summary == "1 of 1 translations below 1\n"
    (tmp_path / "a.txt").write_text("abc\n", encoding="utf-8")
    document = (
        "translate",
        run.directory,
        tmp_path / "a.txt",
        "--out",
        tmp_path / "b.txt",
        "--device",
        "cpu",
    )
    assert f"{float(sure):.2f}\tabc\tABC" in asked(*document, "--flag-below", "1")[1]
    exported = tmp_path / "exported"
    asked("export", run.directory, "--out", exported)
    assert float(asked("translate", exported, "abc", "--confidence")[0].split("\t")[1]) == pytest.approx(
        float(sure), abs=0.011
    )


def test_an_export_without_one_says_so(run: Run, tmp_path: Path) -> None:
    bare = export_ctranslate2(load_model(run.directory), tmp_path / "bare", search=run.config.search)
    assert CTranslate2Translator.open(bare).export.calibration is None
    result = CliRunner().invoke(app, ["translate", str(bare), "abc", "--confidence"])
    assert result.exit_code != 0
    with pytest.raises(UserError, match="--confidence: it is calibrated for one run"):
        command = ["translate", str(run.directory), "abc", "--confidence", "--with", str(run.directory)]
        CliRunner().invoke(app, command, catch_exceptions=False, standalone_mode=False)


def test_the_own_api_tells_the_confidence_of_sentences(run: Run, calibration: Calibration) -> None:
    translator = run.translator(device="cpu")
    sources = [src for src, _ in toy_pairs(45, seed=3)]
    assert calibrate(translator, sources, [src.upper() for src in sources]).sentences == 45
    service = Service([Served(("en", "de"), translator, calibration=calibration)])
    with client_of(service) as client:
        body = {"texts": ["abc"], "source": "en", "target": "de", "details": True}
        (found,) = client.post("/api/v1/translate", json=body).json()["translations"]
    (best,) = translator.hypotheses(["abc"])[0]
    expected = round(calibration.confidence("abc", best), 4)
    assert found["sentences"][0]["sentence_confidence"] == pytest.approx(expected, abs=1e-3)

"""ROUGE is that of the package `rouge-score`, with sacreBLEU's intervals and tests."""

import sys

import numpy as np
import pytest

from dragoman.errors import UserError
from dragoman.evaluate.lengths import compare_by_length, make_buckets, paired_bootstrap
from dragoman.evaluate.metrics import SCORES, Rouge, corpus_metrics, further_score

rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")

REFERENCES = ["we train larger models on fewer images", "A cat sat on the mat.", "nothing is shared here"] * 4
HYPOTHESES = ["we trained a large model", "on the mat a cat sat", "Ünrelated words"] * 4


def test_equal_to_the_package() -> None:
    scorer = rouge_scorer.RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    rows = [scorer.score(ours, theirs) for theirs, ours in zip(HYPOTHESES, REFERENCES, strict=True)]
    found = {metric.name: metric for metric in corpus_metrics(HYPOTHESES, REFERENCES, further=["rouge"])}
    for kind, name in (("rouge1", "ROUGE-1"), ("rouge2", "ROUGE-2"), ("rougeL", "ROUGE-L")):
        expected = 100 * np.mean([row[kind].fmeasure for row in rows])
        assert found[name].value == pytest.approx(expected)
        assert found[name].higher_is_better
        assert "stem:yes|rouge-score:" in found[name].signature
    assert SCORES["rouge"](HYPOTHESES, REFERENCES) == found["ROUGE-L"].value
    assert found["ROUGE-1"].value > found["ROUGE-2"].value > 0


def test_the_interval_is_that_of_resampled_sentences() -> None:
    metric = next(
        m
        for m in corpus_metrics(HYPOTHESES, REFERENCES, bootstrap=500, further=["rouge"])
        if m.name == "ROUGE-1"
    )
    scorer = rouge_scorer.RougeScorer(["rouge1"], use_stemmer=True)
    values = np.array(
        [scorer.score(r, h)["rouge1"].fmeasure for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
    )
    draws = np.random.default_rng(12345).choice(len(values), size=(500, len(values)), replace=True)
    means = np.sort(100 * values[draws].mean(axis=1))
    assert metric.mean == pytest.approx(means.mean(), abs=1e-3)
    assert metric.half_width == pytest.approx((means[-13] - means[12]) / 2, abs=1e-3)
    assert "bs:500" in metric.signature


def test_runs_are_compared_by_it() -> None:
    buckets = make_buckets([1] * 6 + [9] * 6, [5])
    found = compare_by_length(
        {"a": HYPOTHESES, "b": REFERENCES}, REFERENCES, buckets, metric="rouge", bootstrap=100
    )
    assert [metric.name for metric in found.runs[1].overall.values()] == ["BLEU", "chrF2", "ROUGE-L"]
    assert [metric.value for metric in found.runs[1].by_length] == [100.0, 100.0]
    assert found.runs[1].p_value == paired_bootstrap(HYPOTHESES, REFERENCES, REFERENCES, "rouge", samples=100)
    assert found.runs[1].p_value is not None
    assert found.runs[1].p_value < 0.05


def test_outputs_without_letters_score_nothing() -> None:
    assert further_score("rouge", ["", "...", "日本"], ["a b", "a b", "日本"]) == 0


def test_without_the_package_the_command_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rouge_score.rouge_scorer", None)
    monkeypatch.setitem(sys.modules, "rouge_score", None)
    with pytest.raises(UserError, match=r"ROUGE needs the package 'rouge_score': .*pip install .*\[rouge\]"):
        Rouge()

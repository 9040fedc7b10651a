"""Minimum Bayes risk: utilities equal to sacreBLEU's, choices equal to a sum written out."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from dragoman.decode.search.config import SearchConfig
from dragoman.decode.translator.hypothesis import Hypothesis
from dragoman.decode.translator.mbr import bleu_pairs, by_expected_utility, chrf_pairs
from dragoman.errors import UserError

TEXTS = [
    "The cat sat on the mat.",
    "The cat sat on a mat.",
    "A cat is sitting on the mat!",
    "the the the the the the",
    "cat",
    "",
    "  \t",
    "I, he said, don't know: 3,000.50 «ça»",
    "don't",
    "mat mat cat mat",
    "Größe 漢字 שלום 🙂",
    "漢字",
    "ab",
    "The cat sat on the mat. ",
]


def test_chrf_of_all_pairs_is_that_of_sacrebleu() -> None:
    found, metric = chrf_pairs(TEXTS), CHRF()
    for i, ours in enumerate(TEXTS):
        for j, reference in enumerate(TEXTS):
            assert found[i, j] == pytest.approx(metric.sentence_score(ours, [reference]).score, abs=1e-6)


def test_bleu_of_all_pairs_is_that_of_sacrebleu() -> None:
    found, metric = bleu_pairs(TEXTS), BLEU(effective_order=True)
    for i, ours in enumerate(TEXTS):
        for j, reference in enumerate(TEXTS):
            expected = metric.sentence_score(ours, [reference]).score
            assert found[i, j] == pytest.approx(expected, abs=1e-6), (ours, reference)


def test_random_texts_too() -> None:
    generator = np.random.default_rng(0)
    words = ["a", "bb", "ccc", "bb.", "d-e", "(a)", "1,5"]
    texts = [" ".join(generator.choice(words, generator.integers(0, 12))) for _ in range(24)]
    chrf, bleu = chrf_pairs(texts), bleu_pairs(texts)
    for i in range(24):
        for j in range(24):
            one, other = texts[i], [texts[j]]
            assert chrf[i, j] == pytest.approx(CHRF().sentence_score(one, other).score, abs=1e-6)
            expected = BLEU(effective_order=True).sentence_score(one, other).score
            assert bleu[i, j] == pytest.approx(expected, abs=1e-6)


def candidate(text: str, log_prob: float) -> Hypothesis:
    return Hypothesis(text, log_prob, log_prob, (7,), ("x",), (log_prob, 0.0), "stop")


SAMPLES = [
    candidate("the cat sat", -2.0),
    candidate("the cat sat", -1.5),
    candidate("the cat sits", -1.0),
    candidate("dogs run", -0.5),
    candidate("the cat sat down", -4.0),
]


@pytest.mark.parametrize("utility", ["chrf", "bleu"])
def test_samples_count_as_often_as_they_were_drawn(utility: str) -> None:
    config = SearchConfig(method="mbr", n_best=5, utility=utility)  # type: ignore[arg-type]
    metric = CHRF() if utility == "chrf" else BLEU(effective_order=True)
    found = by_expected_utility(SAMPLES, config)
    assert len(found) == 4
    for hypothesis in found:
        scores = [metric.sentence_score(hypothesis.text, [other.text]).score for other in SAMPLES]
        assert hypothesis.score == pytest.approx(sum(scores) / len(scores), abs=1e-6)
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert {h.text: h.log_prob for h in found}["the cat sat"] == -1.5  # its most probable segmentation


def test_an_n_best_list_counts_by_probability() -> None:
    config = SearchConfig(method="mbr", n_best=4, candidates="n_best")
    found = by_expected_utility(SAMPLES, config)
    weights = [math.exp(other.log_prob) for other in SAMPLES]
    for hypothesis in found:
        scores = [CHRF().sentence_score(hypothesis.text, [other.text]).score for other in SAMPLES]
        expected = sum(w * s for w, s in zip(weights, scores, strict=True)) / sum(weights)
        assert hypothesis.score == pytest.approx(expected, abs=1e-6)


def test_one_candidate_wins() -> None:
    (only,) = by_expected_utility(SAMPLES[:1], SearchConfig(method="mbr", samples=1))
    assert only.score == pytest.approx(100.0)


def test_settings() -> None:
    config = SearchConfig(method="mbr", samples=8, top_p=0.9, n_best=2, utility="bleu")
    drawn = config.for_candidates()
    assert (drawn.method, drawn.n_best, drawn.top_p) == ("sample", 8, 0.9)
    listed = SearchConfig(method="mbr", candidates="n_best", beam=6, groups=3).for_candidates()
    assert (listed.method, listed.n_best, listed.groups) == ("beam", 6, 3)
    with pytest.raises(UserError, match=r"n_best.*raise samples"):
        replace(config, n_best=9)
    with pytest.raises(UserError, match=r"n_best.*raise beam"):
        SearchConfig(method="mbr", candidates="n_best", n_best=6)
    with pytest.raises(UserError, match=r"samples: the method mbr with candidates n_best has no such field"):
        SearchConfig(method="mbr", candidates="n_best", samples=8)
    with pytest.raises(UserError, match=r"utility: the method beam has no such field; it belongs to mbr"):
        SearchConfig(utility="bleu")


def test_another_method_forgets_what_is_not_for_it() -> None:
    sampled = SearchConfig(method="sample", top_p=0.9, n_best=40, alpha=0.5)
    assert sampled.with_method("beam") == SearchConfig(n_best=5, alpha=0.5)
    assert sampled.with_method("mbr") == SearchConfig(method="mbr", top_p=0.9, n_best=32, alpha=0.5)
    diverse = SearchConfig(beam=4, groups=2, diversity=0.3, coverage=0.1, n_best=4)
    assert diverse.with_method("sample") == SearchConfig(method="sample", n_best=4)
    assert diverse.with_method("beam") is diverse
    lists = SearchConfig(method="mbr", candidates="n_best", beam=4, groups=2, diversity=0.3)
    assert lists.with_method("beam") == SearchConfig(beam=4, groups=2, diversity=0.3)
